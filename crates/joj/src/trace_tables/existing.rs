//! Which labels a table has that is there already.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde::Deserialize;

use super::error::TableError;
use super::seal;
use super::writer::HEADER_KEY;

/// What is asked of a header.
#[derive(Debug, Deserialize)]
struct Labelled {
    labels: BTreeMap<String, String>,
}

/// Ends an export that would put itself in place of the same trace with other labels. A file that is not whole may go.
/// # Errors
/// [`TableError::OtherLabels`].
pub fn check_labels(
    path: &Path,
    other: &'static str,
    labels: &BTreeMap<String, String>,
) -> Result<(), TableError> {
    match labels_of(path) {
        Some(found) if found != *labels => Err(TableError::OtherLabels {
            path: path.to_owned(),
            other,
            labels: serde_json::to_string(&found)?,
        }),
        _ => Ok(()),
    }
}

fn labels_of(path: &Path) -> Option<BTreeMap<String, String>> {
    let file = File::open(path).ok()?;
    if !seal::is_whole(&file).ok()? {
        return None;
    }
    let reader = SerializedFileReader::new(file).ok()?;
    let entries = reader.metadata().file_metadata().key_value_metadata()?;
    let header = entries.iter().find(|entry| entry.key == HEADER_KEY)?.value.as_deref()?;
    serde_json::from_str::<Labelled>(header).ok().map(|header| header.labels)
}
