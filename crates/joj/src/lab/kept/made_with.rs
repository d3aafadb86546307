//! What a recording was made with: another command takes it only where all of this is the same.

use std::collections::BTreeMap;
use std::hash::Hasher;

use fnv::FnvHasher;
use joj_device::assembly::Assembly;
use joj_device::description::DescriptionError;
use serde::{Deserialize, Serialize};

use crate::lab::job::Setting;

/// Options and files by their names; what is a long text or a file has a checksum.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MadeWith(BTreeMap<String, String>);

/// By this name the command stands among the options.
const COMMAND: &str = "command";

impl MadeWith {
    /// What `command` makes, whose files another command does not know.
    pub fn by(command: &str) -> MadeWith {
        MadeWith::default().with(COMMAND, command)
    }

    /// How this is another command's than what is `wanted`, if it is.
    pub fn by_other_than(&self, wanted: &MadeWith) -> Option<String> {
        let own = |made: &MadeWith| made.0.get(COMMAND).map(|command| MadeWith::by(command));
        own(self)?.other_than(&own(wanted)?)
    }

    /// With `option`, which has this value.
    pub fn with(mut self, option: &str, value: impl ToString) -> MadeWith {
        self.0.insert(option.to_owned(), value.to_string());
        self
    }

    /// With the option that names a device, by its name and what its description says: a file of that name may have another one later.
    /// # Errors
    /// The setting does not have it.
    pub fn with_device(
        self,
        option: &str,
        name: &str,
        setting: &Setting,
    ) -> Result<MadeWith, DescriptionError> {
        Ok(self.with(option, format!("{name} as described by {}", description_checksum(name, setting)?)))
    }

    /// How this differs from what is `wanted`, if it does.
    pub fn other_than(&self, wanted: &MadeWith) -> Option<String> {
        let value =
            |of: &MadeWith, option| of.0.get(option).map_or("none".to_owned(), |text| format!("`{text}`"));
        let mut options: Vec<&String> = self.0.keys().chain(wanted.0.keys()).collect();
        options.sort();
        options.dedup();
        let others = options.into_iter().filter(|option| self.0.get(*option) != wanted.0.get(*option));
        let told: Vec<String> = others
            .map(|option| {
                format!("another {option} ({}, not {})", value(self, option), value(wanted, option))
            })
            .collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

/// A checksum of the descriptions that the device `name` is put together from.
/// # Errors
/// The setting does not have one of them.
fn description_checksum(name: &str, setting: &Setting) -> Result<String, DescriptionError> {
    let mut texts = Vec::new();
    Assembly::read(name, &mut |part| {
        let text = setting.devices.get(part).cloned();
        texts.extend(text.clone());
        text
    })?;
    Ok(text_checksum(texts.iter().map(String::as_str)))
}

/// A checksum of texts, for any build of joj: FNV-1a of 64 bits.
pub fn text_checksum<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = FnvHasher::default();
    for text in texts {
        hasher.write(text.as_bytes());
        hasher.write(&(text.len() as u64).to_le_bytes());
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_named_with_both_values() {
        let made = MadeWith::default().with("--mode", "delete").with("--commits", 6);
        assert_eq!(made.other_than(&made), None);
        let other = made.clone().with("--mode", "wal");
        assert_eq!(made.other_than(&other).as_deref(), Some("another --mode (`delete`, not `wal`)"));
        let more = made.clone().with("waldio", "12");
        assert_eq!(made.other_than(&more).as_deref(), Some("another waldio (none, not `12`)"));
        assert_eq!(more.other_than(&made).as_deref(), Some("another waldio (`12`, not none)"));
    }

    /// A file with another description takes the place of one, and has its name; so do both parts of a device that is two.
    #[test]
    fn a_device_is_its_description_and_not_its_name_alone() {
        let text = joj_device::shipped::text("galaxy-s5-emmc").unwrap();
        let other = joj_device::shipped::text("ufs3").unwrap();
        let made = |device: &str, text: &str| {
            let devices =
                BTreeMap::from(["dev.toml", "kingston"].map(|name| (name.to_owned(), text.to_owned())));
            let setting = Setting { sqlite: String::new(), devices, device_bytes: 1 };
            MadeWith::default().with_device("--device", device, &setting).unwrap()
        };
        for device in ["dev.toml", "2xkingston"] {
            assert_eq!(made(device, text).other_than(&made(device, text)), None);
            let said = made(device, text).other_than(&made(device, other)).unwrap();
            assert!(said.starts_with(&format!("another --device (`{device} as described by ")), "{said}");
        }
    }
}
