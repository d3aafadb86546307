//! Results that a report can use: format and version are looked at before anything else.

use serde::Deserialize;
use thiserror::Error;

use crate::lab::result::{LabResult, RESULT_FORMAT, RESULT_VERSION};
use crate::lab::shards::plan::LAB_PART_FORMAT;

/// What says which format it is.
#[derive(Deserialize)]
struct Head {
    format: String,
    version: u32,
}

/// Why a text is no result that a report can use, and what to do about it.
#[derive(Debug, Error)]
pub enum ResultError {
    /// It does not say which format it is.
    #[error("it is no result of the lab ({0}); give a file that `joj lab run PLAN --json FILE` wrote")]
    NoHead(#[source] serde_json::Error),
    /// It is of another format.
    #[error(
        "it is no result of the lab (its format is {0:?}); give a file that `joj lab run PLAN --json FILE` wrote"
    )]
    Format(String),
    /// It is what one shard of a plan gave.
    #[error(
        "it is a part of a result; `joj lab merge PART... --json FILE` makes a result of the parts of all shards"
    )]
    Part,
    /// It is of a newer version.
    #[error(
        "its version is {0}, this joj reads up to {RESULT_VERSION}: take the joj that wrote it, or a newer one"
    )]
    Version(u32),
    /// It is not whole.
    #[error("it is damaged: {0}; measure its plan again with `joj lab run PLAN --json FILE`")]
    Damaged(#[source] serde_json::Error),
}

/// The result in this text.
/// # Errors
/// Where it is none, is a newer one, or is damaged: what to do about it.
pub fn parse(text: &str) -> Result<LabResult, ResultError> {
    let head: Head = serde_json::from_str(text).map_err(ResultError::NoHead)?;
    if head.format == LAB_PART_FORMAT {
        return Err(ResultError::Part);
    }
    if head.format != RESULT_FORMAT {
        return Err(ResultError::Format(head.format));
    }
    if head.version == 0 || head.version > RESULT_VERSION {
        return Err(ResultError::Version(head.version));
    }
    serde_json::from_str(text).map_err(ResultError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::key::JournalMode;
    use crate::lab::report::facts::sample;

    #[test]
    fn what_joj_wrote_is_read_back() {
        let result = sample::result(vec![sample::at(JournalMode::Wal, 500)]);
        assert_eq!(parse(&serde_json::to_string(&result).unwrap()).unwrap(), result);
    }

    #[test]
    fn other_files_newer_versions_and_damaged_results_are_refused() {
        let whole = serde_json::to_value(sample::result(Vec::new())).unwrap();
        let with = |field: &str, value: serde_json::Value| {
            let mut changed = whole.clone();
            changed[field] = value;
            parse(&changed.to_string()).unwrap_err().to_string()
        };
        assert!(with("format", "joj-trace".into()).contains("\"joj-trace\""));
        assert!(with("format", LAB_PART_FORMAT.into()).contains("`joj lab merge PART... --json FILE`"));
        assert!(with("version", (RESULT_VERSION + 1).into()).contains("a newer one"));
        assert!(with("version", 0.into()).contains("version is 0"));
        assert!(with("cells", "none".into()).contains("damaged"));
        for text in ["", "{", "[]", "{\"format\": \"joj-lab-result\"}"] {
            assert!(parse(text).unwrap_err().to_string().contains("joj lab run"), "{text}");
        }
    }
}
