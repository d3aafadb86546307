//! What `joj whatif` found on emulated disks: its JSON, as docs/whatif.md describes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::filesystem::Filesystem;
use crate::lab::result::LabMachine;
use crate::recording::whatif::outcome::WhatifResult;

/// First word of a result.
pub const WHATIF_LAB_FORMAT: &str = "joj-lab-whatif";
/// Version that this joj writes.
pub const WHATIF_LAB_VERSION: u32 = 1;

/// The result of `joj whatif` with --device or --filesystem.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WhatifLabResult {
    /// Always `joj-lab-whatif`.
    pub format: String,
    /// Version of the format, 1 or more.
    pub version: u32,
    /// The recording's file, as it was given, or the command.
    pub recording: String,
    /// What it ran on.
    pub machine: LabMachine,
    /// Devices in the order in which they were given, and on each the filesystems.
    pub disks: Vec<WhatifLabDisk>,
}

/// All configurations on one emulated disk.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct WhatifLabDisk {
    /// The filesystem.
    pub filesystem: Filesystem,
    /// The emulated device below, by its name or file.
    pub device: String,
    /// What came of it.
    pub outcome: WhatifLabOutcome,
}

/// What came of one disk.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhatifLabOutcome {
    /// A table as on a disk of this machine.
    Measured(Box<WhatifResult>),
    /// There is no result, for this reason.
    Failed(String),
}

impl WhatifLabResult {
    /// True where a disk has no result.
    pub fn has_failed(&self) -> bool {
        self.disks.iter().any(|disk| matches!(disk.outcome, WhatifLabOutcome::Failed(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_back_as_it_was_written() {
        let disk =
            |outcome| WhatifLabDisk { filesystem: Filesystem::F2fs, device: "kingston".to_owned(), outcome };
        let result = WhatifLabResult {
            format: WHATIF_LAB_FORMAT.to_owned(),
            version: WHATIF_LAB_VERSION,
            recording: "app.joj".to_owned(),
            machine: LabMachine::default(),
            disks: vec![
                disk(WhatifLabOutcome::Measured(Box::default())),
                disk(WhatifLabOutcome::Failed("the guest ended in it".to_owned())),
            ],
        };
        let text = serde_json::to_string(&result).unwrap();
        assert_eq!(serde_json::from_str::<WhatifLabResult>(&text).unwrap(), result, "{text}");
        assert!(result.has_failed());
    }
}
