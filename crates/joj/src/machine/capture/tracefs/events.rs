//! Which events of this kernel are switched on in an instance, and what is missed for those that are not there.

use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::ftrace::decoder::{self, Decoder};
use joj_analysis::trace::ftrace::format::Format;
use joj_analysis::trace::ftrace::known::Known;

use crate::machine::capture::error::TracefsError;
use crate::machine::capture::selection::Selection;
use crate::machine::capture::tracefs::filesystems::volumes::Mounted;
use crate::machine::capture::tracefs::instance::Instance;
use crate::machine::devices::device_base;

/// Without these there is no block trace.
const REQUIRED: [&str; 2] = ["block_rq_issue", "block_rq_complete"];

/// What was switched on.
#[derive(Debug, Default)]
pub struct Enabled {
    /// Reads its records.
    pub decoder: Decoder,
    /// Directories of its events, below the instance.
    pub events: Vec<String>,
    /// What a trace lacks, a sentence each.
    pub limits: Vec<String>,
}

/// Switches on what this kernel has, for these devices (all, where there are none) and these kinds of filesystems.
/// # Errors
/// What is missing without which nothing can be captured.
pub fn enable(
    instance: &Instance,
    devices: &[DeviceNumber],
    kinds: &[&str],
) -> Result<Enabled, TracefsError> {
    let mut enabled = Enabled::default();
    for known in decoder::known() {
        if is_filesystem(known.system) && !kinds.contains(&known.system) {
            continue;
        }
        if let Err(reason) = switch_on(instance, known, devices, &mut enabled) {
            if known.names.iter().any(|name| REQUIRED.contains(name)) {
                return Err(reason);
            }
            enabled.limits.push(format!("{reason}; not captured: {}", known.without));
        }
    }
    Ok(enabled)
}

/// Events of filesystems that are not there are not missed.
fn is_filesystem(system: &str) -> bool {
    matches!(system, "ext4" | "jbd2" | "xfs" | "btrfs" | "f2fs")
}

fn switch_on(
    instance: &Instance,
    known: &'static Known,
    devices: &[DeviceNumber],
    enabled: &mut Enabled,
) -> Result<(), TracefsError> {
    let path = |name: &&&str| format!("events/{}/{name}", known.system);
    let path = known.names.iter().find(|name| instance.path(&path(name)).is_dir()).map(|name| path(&name));
    let path = path.ok_or_else(|| TracefsError::NoEvent(known.names.join(" or ")))?;
    let format = instance.text(&format!("{path}/format"))?;
    let format = Format::parse(&format);
    let format = format.map_err(|fault| TracefsError::Format { path: path.clone(), fault })?;
    enabled.decoder.learn(&format)?;
    let wanted = filter(known, devices);
    if !wanted.is_empty() {
        // More records than wanted are no harm: they are sorted out when they are read.
        let _ = instance.set(&format!("{path}/filter"), &wanted);
    }
    instance.set(&format!("{path}/enable"), "1")?;
    enabled.events.push(path);
    Ok(())
}

/// In the kernel's filter language.
fn filter(known: &Known, devices: &[DeviceNumber]) -> String {
    let chosen = devices.iter().map(|device| format!("{} == {}", known.device_field, device.0));
    let chosen = chosen.collect::<Vec<_>>().join(" || ");
    match (known.filter, known.device_field.is_empty() || chosen.is_empty()) {
        (filter, true) => filter.to_owned(),
        ("", false) => chosen,
        (filter, false) => format!("({filter}) && ({chosen})"),
    }
}

/// What events may have as their device: disks, their partitions, and what filesystems call themselves; empty for all.
pub fn wanted_devices(selection: &Selection, volumes: &[Mounted]) -> Vec<DeviceNumber> {
    if selection.devices.is_empty() {
        return Vec::new();
    }
    let disks = selection.devices.iter().flat_map(|disk| device_base::with_partitions(*disk));
    let mut all: Vec<DeviceNumber> =
        disks.chain(volumes.iter().map(|mounted| mounted.volume.device)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Which of our events' systems these filesystems have.
pub fn kinds<'a>(mounted: impl Iterator<Item = &'a str>) -> Vec<&'static str> {
    let mut kinds = Vec::new();
    for kind in mounted {
        match kind {
            "ext2" | "ext3" | "ext4" => kinds.extend(["ext4", "jbd2"]),
            "xfs" => kinds.push("xfs"),
            "btrfs" => kinds.push("btrfs"),
            "f2fs" => kinds.push("f2fs"),
            _ => {}
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_asks_for_the_devices_and_for_what_the_event_wants() {
        let of = |name: &str, devices: &[DeviceNumber]| {
            filter(decoder::known().find(|known| known.names.contains(&name)).unwrap(), devices)
        };
        let two = [DeviceNumber(8), DeviceNumber(9)];
        assert_eq!(of("block_rq_issue", &two), "dev == 8 || dev == 9");
        assert_eq!(of("iomap_dio_rw_begin", &two), "(ki_flags & 2) && (dev == 8 || dev == 9)");
        assert_eq!(
            (of("sys_enter_pwritev2", &two), of("block_rq_issue", &[])),
            ("flags & 6".into(), "".into())
        );
    }
}
