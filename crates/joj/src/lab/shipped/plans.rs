//! Plans: those that joj brings, and files.

use std::fs;

use joj_analysis::lab::plan::Plan;
use joj_analysis::lab::report::paper::PaperTable;

use crate::lab::shipped::error::ShippedError;
use crate::lab::shipped::papers;

/// Name and text of each plan that joj brings.
const SHIPPED: [(&str, &str); 18] = [
    ("smoke", include_str!("../../../../../lab/plans/smoke.toml")),
    ("filesystems", include_str!("../../../../../lab/plans/filesystems.toml")),
    ("writers", include_str!("../../../../../lab/plans/writers.toml")),
    ("block-counts", include_str!("../../../../../lab/plans/block-counts.toml")),
    ("record-cost", include_str!("../../../../../lab/plans/record-cost.toml")),
    ("atc13-fig5", include_str!("../../../../../lab/plans/atc13-fig5.toml")),
    ("atc13-fig7", include_str!("../../../../../lab/plans/atc13-fig7.toml")),
    ("atc13-table1", include_str!("../../../../../lab/plans/atc13-table1.toml")),
    ("atc13-fig10", include_str!("../../../../../lab/plans/atc13-fig10.toml")),
    ("atc13-table2", include_str!("../../../../../lab/plans/atc13-table2.toml")),
    ("fast12-fig4", include_str!("../../../../../lab/plans/fast12-fig4.toml")),
    ("fast12-fig5", include_str!("../../../../../lab/plans/fast12-fig5.toml")),
    ("fast12-fig7", include_str!("../../../../../lab/plans/fast12-fig7.toml")),
    ("fast12-fig10", include_str!("../../../../../lab/plans/fast12-fig10.toml")),
    ("fast12-fig12", include_str!("../../../../../lab/plans/fast12-fig12.toml")),
    ("fast12-fig13-guest", include_str!("../../../../../lab/plans/fast12-fig13-guest.toml")),
    ("fast12-table3-guest", include_str!("../../../../../lab/plans/fast12-table3-guest.toml")),
    ("waldio-table2", include_str!("../../../../../lab/plans/waldio-table2.toml")),
];

/// The plan of this name, the one that serves the paper's table of this name, or the one in this file.
/// # Errors
/// Where there is none of them, or it is no plan: where in the file, and what is wrong.
pub fn read(name: &str) -> Result<Plan, ShippedError> {
    let shipped = |name: &str| SHIPPED.iter().find(|(shipped, _)| *shipped == name);
    if let Some((name, text)) = shipped(name) {
        return parse(name, text);
    }
    if let Some(table) = papers::all()?.into_iter().find(|table| table.name == name) {
        let Some((name, text)) = table.plan.as_deref().and_then(shipped) else {
            return Err(ShippedError::NeedsNoPlan(name.to_owned()));
        };
        return parse(name, text);
    }
    let text = fs::read_to_string(name).map_err(|error| {
        let names: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        ShippedError::NoPlan { name: name.to_owned(), error, known: names.join(", ") }
    })?;
    parse(name, &text)
}

fn parse(name: &str, text: &str) -> Result<Plan, ShippedError> {
    toml::from_str(text).map_err(|error| ShippedError::Plan { name: name.to_owned(), error })
}

/// The shipped plans, a line each, and the papers' tables that they serve.
/// # Errors
/// Where one is damaged.
pub fn list() -> Result<String, ShippedError> {
    let tables = papers::all()?;
    let mut lines = String::new();
    for (name, text) in SHIPPED {
        let plan = parse(name, text)?;
        let cells = plan.cells().map_err(|error| ShippedError::Cells { name: name.to_owned(), error })?;
        let cells = cells.len();
        lines.push_str(&format!("{name:<16} {cells:>3} cells  {}\n", plan.title));
        let served = tables.iter().filter(|table| table.plan.as_deref() == Some(name));
        let served: Vec<&str> = served.map(|table| table.name.as_str()).collect();
        if !served.is_empty() {
            lines.push_str(&format!("{:<16}            for {}\n", "", served.join(", ")));
        }
    }
    let of_device: Vec<&PaperTable> = tables.iter().filter(|table| table.plan.is_none()).collect();
    for table in of_device {
        lines.push_str(&format!("{:<16}  no guest  {}\n", table.name, table.title));
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use joj_analysis::lab::cell::Cell;

    #[test]
    fn every_plan_that_joj_brings_has_cells() {
        for (name, _) in SHIPPED {
            assert!(!read(name).unwrap().cells().unwrap().is_empty(), "{name}");
        }
        let list = list().unwrap();
        assert!(SHIPPED.iter().all(|(name, _)| list.contains(name)), "{list}");
    }

    /// The cells of all shipped plans, each once: a report may be given the results of several.
    fn all_cells() -> Vec<Cell> {
        let mut cells = Vec::new();
        for (name, _) in SHIPPED {
            for cell in read(name).unwrap().cells().unwrap() {
                if !cells.contains(&cell) {
                    cells.push(cell);
                }
            }
        }
        cells
    }

    #[test]
    fn each_value_of_a_paper_is_served_by_one_cell_of_its_plan_and_no_other() {
        let all = all_cells();
        for table in papers::all().unwrap() {
            let Some(plan) = &table.plan else {
                assert!(table.column.iter().all(|column| column.metric.is_of_device()), "{}", table.name);
                assert!(read(&table.name).unwrap_err().to_string().contains("device model"));
                continue;
            };
            let plan = read(plan).unwrap();
            assert_eq!(plan, read(&table.name).unwrap());
            let needs_trace = table.column.iter().any(|column| column.metric.is_of_trace());
            assert!(plan.trace || !needs_trace, "{}: its columns need the trace", table.name);
            let cells = plan.cells().unwrap();
            for row in table.row.iter().filter(|row| row.absent.is_none()) {
                for column in &table.column {
                    let selector = table.selector(row, column);
                    let found: Vec<&Cell> = all.iter().filter(|cell| selector.matches(cell)).collect();
                    assert_eq!(found.len(), 1, "{}, {}: {found:#?}", table.name, row.name());
                    assert!(cells.contains(found[0]), "{}, {}: not in its plan", table.name, row.name());
                }
            }
        }
    }

    #[test]
    fn a_wrong_word_is_told_with_its_line() {
        let text = "format = 'joj-lab-plan'\nversion = 2\ntitle = 't'\n[[matrix]]\nfilesystem = ['ext5']\ndevice = []\n";
        let message = parse("p.toml", text).unwrap_err().to_string();
        assert!(message.contains("line 5") && message.contains("ext5"), "{message}");
    }
}
