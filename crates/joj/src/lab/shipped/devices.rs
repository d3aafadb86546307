//! The emulated devices that a job names: shipped ones by name, others by their file.

use std::collections::BTreeMap;
use std::fs;

use joj_analysis::lab::cell::Cell;
use joj_device::description::Description;
use joj_device::shipped;

use crate::lab::shipped::error::ShippedError;

/// The devices that cells name; one may be there several times.
pub fn names(cells: &[Cell]) -> impl Iterator<Item = &String> {
    cells.iter().flat_map(|cell| [Some(&cell.device), cell.journal_device.as_ref()]).flatten()
}

/// The text of the description of each of `names`, checked.
/// # Errors
/// Where a device is neither shipped nor a file, or its description is none.
pub fn of<'a>(names: impl Iterator<Item = &'a String>) -> Result<BTreeMap<String, String>, ShippedError> {
    let mut texts = BTreeMap::new();
    for name in names {
        if texts.contains_key(name) {
            continue;
        }
        let text = match shipped::text(name) {
            Some(text) => text.to_owned(),
            None => fs::read_to_string(name).map_err(|error| {
                let names: Vec<&str> = shipped::names().collect();
                ShippedError::NoDevice { name: name.clone(), error, known: names.join(", ") }
            })?,
        };
        Description::parse(&text, name)?;
        texts.insert(name.clone(), text);
    }
    Ok(texts)
}
