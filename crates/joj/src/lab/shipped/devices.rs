//! The emulated devices that a job names: shipped ones by name, others by their file, several as one by `2xkingston`.

use std::collections::BTreeMap;
use std::fs;

use joj_analysis::lab::cell::Cell;
use joj_device::assembly::Assembly;
use joj_device::description::{DescriptionError, DescriptionFault};
use joj_device::shipped;

use crate::lab::shipped::error::ShippedError;

/// The devices that cells name; one may be there several times.
pub fn names(cells: &[Cell]) -> impl Iterator<Item = &String> {
    cells.iter().flat_map(|cell| [Some(&cell.device), cell.journal_device.as_ref()]).flatten()
}

/// The text of each description that `names` and their members need, checked.
/// # Errors
/// Where a device is neither shipped nor a file, or its description is none.
pub fn of<'a>(names: impl Iterator<Item = &'a String>) -> Result<BTreeMap<String, String>, ShippedError> {
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for name in names {
        let mut missing = None;
        let mut lookup = |part: &str| {
            let text = match (texts.get(part), shipped::text(part)) {
                (Some(text), _) => Some(text.clone()),
                (None, Some(text)) => Some(text.to_owned()),
                (None, None) => {
                    fs::read_to_string(part).map_err(|error| missing = Some((part.to_owned(), error))).ok()
                }
            };
            texts.extend(text.clone().map(|text| (part.to_owned(), text)));
            text
        };
        let Err(error) = Assembly::read(name, &mut lookup) else { continue };
        return Err(match (missing, error) {
            (Some((name, error)), DescriptionError { fault: DescriptionFault::NoDevice { known }, .. }) => {
                ShippedError::NoDevice { name, error, known }
            }
            (_, error) => ShippedError::Device(error),
        });
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_with_what_they_are_part_of() {
        let names = ["2x16KiB:kingston", "ram", "ram"].map(str::to_owned);
        let texts = of(names.iter()).unwrap();
        assert_eq!(texts.keys().collect::<Vec<_>>(), ["kingston", "ram"]);
    }

    #[test]
    fn a_member_that_is_nowhere_is_named() {
        let message = of([String::from("2xkingsten")].iter()).unwrap_err().to_string();
        assert!(message.contains("no device kingsten") && message.contains("sandisk"), "{message}");
    }
}
