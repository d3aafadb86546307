//! The head of a trace: this machine's disks, the filesystems on them, and where those keep what is not data.

use std::fs;

use joj_analysis::filesystem::layout::{self, Extent, JournalElsewhere, Layout};
use joj_analysis::filesystem::region::Region;
use joj_analysis::filesystem::{self, ext4, xfs};
use joj_analysis::trace::event::DeviceNumber;
use joj_analysis::trace::header::{
    Disk, DiskCounters, EVENTS_VERSION, Ending, Header, MountedFilesystem, Source,
};

use crate::machine::capture::error::{DiskError, MetadataError};
use crate::machine::devices::device_bytes::DeviceBytes;
use crate::machine::devices::disks;
use crate::machine::files::mounts;
use crate::machine::proc::clock;
use crate::machine::proc::interrupts::Interrupts;

/// What disks and interrupts had counted at one moment.
#[derive(Debug, Clone, Default)]
pub struct CaptureCounters {
    /// The moment, of the trace's clock. What was completed before is counted, what was completed after is not.
    pub at_ns: u64,
    disks: Vec<DiskCounters>,
    interrupts: Interrupts,
}

/// How a capture ended.
#[derive(Debug, Clone, Default)]
pub struct CaptureEnd {
    /// Events that were written.
    pub events: u64,
    /// Events that the kernel could not hand over.
    pub lost: u64,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
}

/// The header of a capture that begins now. `devices`: whole disks that are traced, `None` for all; disks that hold the
/// journals of filesystems on these are listed too, and are to be traced with them. What could not be
/// read of a filesystem is told in [`Header::inferred`]; such a filesystem has no regions.
/// # Errors
/// /proc/self/mountinfo cannot be read, or a device is no disk of this machine.
pub fn header(
    devices: Option<&[DeviceNumber]>,
    command: &[String],
    source: Source,
) -> Result<Header, DiskError> {
    let all_disks = disks::list();
    for device in devices.unwrap_or_default() {
        if all_disks.iter().all(|disk| disk.whole != *device) {
            return Err(DiskError::Unknown(*device));
        }
    }
    let chosen = |disk: &Disk| devices.is_none_or(|devices| devices.contains(&disk.whole));
    let mut filesystems = mounts::filesystems(&mounts::list()?, &all_disks);
    filesystems.retain(|filesystem| {
        let below = |disk: &&Disk| filesystem.disks.contains(&disk.number);
        all_disks.iter().filter(below).any(chosen)
    });
    let mut inferred = Vec::new();
    for filesystem in &mut filesystems {
        if let Err(problem) = read_layout(filesystem, &all_disks) {
            let MountedFilesystem { kind, mount_point, .. } = filesystem;
            inferred
                .push(format!("where {kind} on {mount_point} keeps its metadata is not known: {problem}"));
        }
    }
    // A journal on another disk belongs to the trace too.
    let has_regions = |disk: &Disk| {
        let mut regions = filesystems.iter().flat_map(|filesystem: &MountedFilesystem| &filesystem.regions);
        regions.any(|region| region.disk == disk.whole)
    };
    let disks: Vec<Disk> =
        all_disks.iter().filter(|disk| chosen(disk) || has_regions(disk)).cloned().collect();
    let wholes: Vec<DeviceNumber> = disks.iter().map(|disk| disk.whole).collect();
    if devices.is_some_and(|devices| wholes.iter().any(|whole| !devices.contains(whole))) {
        // So do the filesystems beside that journal: their requests are captured with it.
        return header(Some(&wholes), command, source);
    }
    Ok(Header {
        version: EVENTS_VERSION,
        writer: concat!("joj ", env!("CARGO_PKG_VERSION")).to_owned(),
        source,
        started_unix_ns: clock::calendar_ns(),
        started_ns: clock::shared_ns(),
        kernel: fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        command: command.to_vec(),
        process: None,
        command_process: None,
        command_processes: Vec::new(),
        disks,
        filesystems,
        inferred,
        recording: None,
        ending: None,
    })
}

/// Readings of the counters until two are the same: a disk that is never idle for some microseconds has no exact moment. Of
/// those the quickest stands then: on a busy machine this process may have stood still for milliseconds in any other.
const READINGS: u32 = 100;

/// Reads the counters of the header's whole disks, and the interrupts.
pub fn counters(header: &Header) -> CaptureCounters {
    let read = || -> Vec<DiskCounters> {
        let whole = header.disks.iter().filter(|disk| disk.number == disk.whole);
        whole.filter_map(|disk| disks::counters(disk.number)).collect()
    };
    let mut began_ns = clock::shared_ns();
    let mut last = (read(), clock::shared_ns());
    let mut quickest = (u64::MAX, last.clone());
    for _ in 1..READINGS {
        let taken_ns = last.1.saturating_sub(began_ns);
        if taken_ns < quickest.0 {
            quickest = (taken_ns, last.clone());
        }
        began_ns = clock::shared_ns();
        let again = read();
        if again == last.0 {
            quickest.1 = last;
            break;
        }
        last = (again, clock::shared_ns());
    }
    let (disks, at_ns) = quickest.1;
    CaptureCounters { at_ns, disks, interrupts: Interrupts::read() }
}

/// What is known of a capture that lasted from one reading of the counters to another.
pub fn ending(before: &CaptureCounters, after: &CaptureCounters, end: CaptureEnd) -> Ending {
    let change = |now: &DiskCounters| {
        let then = before.disks.iter().find(|then| then.disk == now.disk)?;
        Some(disks::difference(now, then))
    };
    Ending {
        ended_ns: after.at_ns,
        events: end.events,
        lost: end.lost,
        cut_short: end.cut_short,
        disks: after.disks.iter().filter_map(change).collect(),
        interrupts: after.interrupts.since(&before.interrupts),
    }
}

/// Fills in block size and regions.
fn read_layout(filesystem: &mut MountedFilesystem, all_disks: &[Disk]) -> Result<(), MetadataError> {
    let mut regions: Vec<Region> = Vec::new();
    for number in filesystem.disks.clone() {
        let Some(disk) = all_disks.iter().find(|disk| disk.number == number) else {
            return Err(MetadataError::NoDisk(number));
        };
        let device = DeviceBytes::open(disk)?;
        let found =
            filesystem::layout_of(&filesystem.kind, place(disk), &mut |at, bytes| device.read(at, bytes))
                .map_err(|error| MetadataError::Layout { disk: disk.name.clone(), error })?;
        let Some(Layout { block_bytes, regions: found, journal_elsewhere }) = found else { return Ok(()) };
        filesystem.block_bytes = block_bytes;
        regions.extend(found);
        if let Some(journal) = journal_elsewhere {
            regions.extend(read_journal(journal, filesystem, all_disks)?);
        }
    }
    filesystem.regions = layout::in_order(regions)?;
    Ok(())
}

fn place(disk: &Disk) -> Extent {
    Extent { disk: disk.whole, start_sector: disk.start_sector, sectors: disk.sectors }
}

/// The journal that a filesystem keeps on another device.
fn read_journal(
    journal: JournalElsewhere,
    filesystem: &MountedFilesystem,
    all_disks: &[Disk],
) -> Result<Vec<Region>, MetadataError> {
    match journal {
        JournalElsewhere::Ext4 { uuid } => {
            let mut damaged = Vec::new();
            for disk in all_disks {
                let Ok(device) = DeviceBytes::open(disk) else { continue };
                let read = ext4::journal_device(place(disk), &mut |at, bytes| device.read(at, bytes));
                match read {
                    Ok(Some(found)) if found.uuid == uuid => return Ok(found.regions),
                    Ok(_) => {}
                    Err(error) => damaged.push(MetadataError::Layout { disk: disk.name.clone(), error }),
                }
            }
            Err(MetadataError::NoJournal(damaged))
        }
        JournalElsewhere::Xfs { bytes } => {
            let option = filesystem.options.split(',').find_map(|option| option.strip_prefix("logdev="));
            let number = option.and_then(mounts::device_of_node);
            let disk = all_disks.iter().find(|disk| Some(disk.number) == number);
            let disk = disk.ok_or(MetadataError::NoLogDevice)?;
            xfs::log_device(place(disk), bytes).map_err(MetadataError::Log)
        }
    }
}
