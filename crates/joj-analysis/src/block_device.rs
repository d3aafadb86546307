//! A block device's number, and the sectors in which the kernel counts its bytes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a sector, whatever the device's own block size (Linux's block layer).
pub const SECTOR_BYTES: u64 = 512;

/// Major and minor number of a device, as the kernel's `dev_t` has them: `major << 20 | minor`. 0: none.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, JsonSchema, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct DeviceNumber(pub u32);

impl DeviceNumber {
    /// No device.
    pub const NONE: Self = Self(0);

    /// From the two numbers that `ls -l /dev` shows; `None` where the kernel has no such number.
    pub fn new(major: u32, minor: u32) -> Option<Self> {
        (major < 1 << 12 && minor < 1 << 20).then_some(Self(major << 20 | minor))
    }

    /// The two numbers.
    pub fn major_minor(self) -> (u32, u32) {
        (self.0 >> 20, self.0 & 0xf_ffff)
    }
}

impl std::fmt::Display for DeviceNumber {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = self.major_minor();
        write!(formatter, "{major}:{minor}")
    }
}
