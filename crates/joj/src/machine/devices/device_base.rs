//! Which whole disk a block device is part of, and where it begins there: requests are counted on the whole disk.

use std::fs;
use std::path::PathBuf;

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::ftrace::volume::Base;

use crate::machine::devices::disks::parse_number;

/// The whole disk of a device, and where the device begins on it; `None` where it is no block device.
pub fn base(device: DeviceNumber) -> Option<Base> {
    let directory = PathBuf::from(format!("/sys/dev/block/{device}"));
    let text = |name: &str| fs::read_to_string(directory.join(name)).ok();
    if !directory.exists() {
        return None;
    }
    let Some(start) = text("start").filter(|_| directory.join("partition").exists()) else {
        return Some(Base { disk: device, start_sector: 0 });
    };
    let disk = fs::canonicalize(&directory).ok()?.parent()?.join("dev");
    Some(Base {
        disk: parse_number(&fs::read_to_string(disk).ok()?)?,
        start_sector: start.trim().parse().ok()?,
    })
}

/// A whole disk's number and those of its partitions.
pub fn with_partitions(disk: DeviceNumber) -> Vec<DeviceNumber> {
    let mut all = vec![disk];
    for entry in fs::read_dir(format!("/sys/dev/block/{disk}/")).into_iter().flatten().flatten() {
        if entry.path().join("partition").exists() {
            all.extend(fs::read_to_string(entry.path().join("dev")).ok().as_deref().and_then(parse_number));
        }
    }
    all
}
