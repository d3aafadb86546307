//! The devices that come with joj.

use crate::description::{Description, DescriptionError, DescriptionFault};

/// (name, TOML text) of each, as `joj device list` has them.
const DEVICES: [(&str, &str); 15] = [
    ("a-data", include_str!("../devices/a-data.toml")),
    ("galaxy-s3-emmc", include_str!("../devices/galaxy-s3-emmc.toml")),
    ("galaxy-s5-emmc", include_str!("../devices/galaxy-s5-emmc.toml")),
    ("kingston", include_str!("../devices/kingston.toml")),
    ("nvme-consumer", include_str!("../devices/nvme-consumer.toml")),
    ("patriot", include_str!("../devices/patriot.toml")),
    ("pcm-16mb", include_str!("../devices/pcm-16mb.toml")),
    ("pny", include_str!("../devices/pny.toml")),
    ("ram", include_str!("../devices/ram.toml")),
    ("ridata", include_str!("../devices/ridata.toml")),
    ("sandisk", include_str!("../devices/sandisk.toml")),
    ("transcend", include_str!("../devices/transcend.toml")),
    ("transcend-card-s3", include_str!("../devices/transcend-card-s3.toml")),
    ("ufs3", include_str!("../devices/ufs3.toml")),
    ("wintec", include_str!("../devices/wintec.toml")),
];

/// Names of the shipped devices, in alphabetical order.
pub fn names() -> impl Iterator<Item = &'static str> {
    DEVICES.iter().map(|(name, _)| *name)
}

/// The file of a shipped device, to be copied and changed.
pub fn text(name: &str) -> Option<&'static str> {
    DEVICES.iter().find(|(shipped, _)| *shipped == name).map(|(_, text)| *text)
}

impl Description {
    /// A shipped device.
    ///
    /// # Errors
    /// No device of that name; the error lists the names there are.
    pub fn named(name: &str) -> Result<Description, DescriptionError> {
        match text(name) {
            Some(text) => Description::parse(text, name),
            None => {
                let known = names().collect::<Vec<_>>().join(", ");
                Err(DescriptionFault::NoDevice { known }.at(name))
            }
        }
    }
}
