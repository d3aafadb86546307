//! Plans: those that joj brings, and files.

use std::fs;

use joj_analysis::lab::plan::Plan;

/// Name and text of each plan that joj brings.
const SHIPPED: [(&str, &str); 1] = [("smoke", include_str!("../../../../lab/plans/smoke.toml"))];

/// The plan of this name, or in this file.
/// # Errors
/// Where there is neither, or it is no plan: where in the file, and what is wrong.
pub fn read(name: &str) -> Result<Plan, String> {
    if let Some((_, text)) = SHIPPED.iter().find(|(shipped, _)| *shipped == name) {
        return parse(name, text);
    }
    let text = fs::read_to_string(name).map_err(|error| {
        let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        format!("there is no plan {name}, and no such file ({error}); the plans are {}", names.join(", "))
    })?;
    parse(name, &text)
}

fn parse(name: &str, text: &str) -> Result<Plan, String> {
    toml::from_str(text).map_err(|error| format!("{name} is no plan: {error}"))
}

/// The shipped plans, a line each.
/// # Errors
/// Where one is damaged.
pub fn list() -> Result<String, String> {
    let mut lines = String::new();
    for (name, text) in SHIPPED {
        let plan = parse(name, text)?;
        let cells = plan.cells().map_err(|error| format!("{name}: {error}"))?.len();
        lines.push_str(&format!("{name:<18} {cells:>4} cells  {}\n", plan.title));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_that_joj_brings_has_cells() {
        for (name, _) in SHIPPED {
            assert!(!read(name).unwrap().cells().unwrap().is_empty(), "{name}");
        }
        assert_eq!(list().unwrap().lines().count(), SHIPPED.len());
    }

    #[test]
    fn a_wrong_word_is_told_with_its_line() {
        let text = "format = 'joj-lab-plan'\nversion = 1\ntitle = 't'\n[[matrix]]\nfilesystem = ['ext5']\ndevice = []\n";
        let message = parse("p.toml", text).unwrap_err();
        assert!(message.contains("line 5") && message.contains("ext5"), "{message}");
    }
}
