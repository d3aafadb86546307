//! Results that a report can use: format and version are looked at before anything else.

use serde::Deserialize;

use crate::lab::result::{LabResult, RESULT_FORMAT, RESULT_VERSION};

/// What says which format it is.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// The result in this text.
/// # Errors
/// Where it is none, is a newer one, or is damaged: what to do about it.
pub fn parse(text: &str) -> Result<LabResult, String> {
    let none = |found: String| {
        Err(format!(
            "it is no result of the lab ({found}); give a file that `joj lab run PLAN --json FILE` wrote"
        ))
    };
    let head: Head = match serde_json::from_str(text) {
        Ok(head) => head,
        Err(error) => return none(error.to_string()),
    };
    if head.format != RESULT_FORMAT {
        return none(format!("its format is {:?}", head.format));
    }
    if head.version == 0 || head.version > RESULT_VERSION {
        return Err(format!(
            "its version is {}, this joj reads up to {RESULT_VERSION}: take the joj that wrote it, or a newer one",
            head.version
        ));
    }
    serde_json::from_str(text).map_err(|error| {
        format!("it is damaged: {error}; measure its plan again with `joj lab run PLAN --json FILE`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::key::JournalMode;
    use crate::lab::report::facts::sample;

    #[test]
    fn what_joj_wrote_is_read_back() {
        let result = sample::result(vec![sample::at(JournalMode::Wal, 500)]);
        assert_eq!(parse(&serde_json::to_string(&result).unwrap()), Ok(result));
    }

    #[test]
    fn other_files_newer_versions_and_damaged_results_are_refused() {
        let whole = serde_json::to_value(sample::result(Vec::new())).unwrap();
        let with = |field: &str, value: serde_json::Value| {
            let mut changed = whole.clone();
            changed[field] = value;
            parse(&changed.to_string()).unwrap_err()
        };
        assert!(with("format", "joj-trace".into()).contains("\"joj-trace\""));
        assert!(with("version", (RESULT_VERSION + 1).into()).contains("a newer one"));
        assert!(with("version", 0.into()).contains("version is 0"));
        assert!(with("cells", "none".into()).contains("damaged"));
        for text in ["", "{", "[]", "{\"format\": \"joj-lab-result\"}"] {
            assert!(parse(text).unwrap_err().contains("joj lab run"), "{text}");
        }
    }
}
