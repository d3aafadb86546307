//! Filesystems that are unmounted while they are captured, and those that come in their place: with the same device, and with files of
//! the same numbers. Until the capture knows the new one, nothing that is told of it has a name or a place.
//!
//! ```text
//! mounted --a look misses it--> ending --a call that mounts--> gone --a look finds another--> coming --the records get there--> mounted
//! ```
//!
//! What is told while a filesystem is ending is its own still: its last writes come after it has left the list of mounts. But others may
//! write to the disk by then. So nothing holds from before the umount began, and a place that it names for its last writes holds for one.

use joj_analysis::trace::event::{Content, DeviceNumber, Event, EventKind, Operation};
use joj_analysis::trace::ftrace::record::{Record, RequestRecord, What};
use joj_analysis::trace::ftrace::volume::{Addressing, Base, Place, Volume};
use rustc_hash::FxHashSet;

use crate::machine::capture::tracefs::files::{Files, Known};
use crate::machine::capture::tracefs::filesystems::sources::Source;
use crate::machine::capture::tracefs::filesystems::volumes::{self, Mounted};
use crate::machine::devices::disks;
use crate::machine::files::mounts::{self, Mount, MountsOfOne};
use crate::machine::proc::clock;

/// Without these nobody tells when something is mounted or unmounted.
const TELLING: [&str; 3] =
    ["events/syscalls/sys_enter_mount", "events/syscalls/sys_exit_mount", "events/syscalls/sys_enter_umount"];
/// A call that unmounts has done so after this time.
const UNMOUNTING_NS: u64 = 100_000_000;

/// More than any partition has, and few enough to be counted in bytes.
const ALL_BYTES: u64 = 1 << 62;

/// What has a device.
#[derive(Debug)]
enum Stage {
    Mounted(MountsOfOne),
    Ending {
        /// When it was seen last.
        until_ns: u64,
        /// When something else was seen.
        another_ns: Option<u64>,
        /// What lay where until then was forgotten.
        is_told: bool,
    },
    /// Nobody knows.
    Gone,
    /// A filesystem that is known from `since_ns` on.
    Coming {
        since_ns: u64,
        volume: Box<Volume>,
        mounts: MountsOfOne,
    },
}

#[derive(Debug)]
struct Filesystem {
    device: DeviceNumber,
    kind: String,
    stage: Stage,
}

impl Filesystem {
    /// Learns what has the device now, if that is of the same kind: of another kind nothing is captured but its requests. Returns what is
    /// missed, a sentence each.
    fn seek(
        &mut self,
        mounted: &[Mount],
        disks: &[DeviceNumber],
        files: &mut Files,
        events: &[String],
    ) -> Vec<String> {
        let same = mounted.iter().find(|mount| mount.device == self.device && mount.kind == self.kind);
        let Some(one) = same.and_then(|mount| volumes::of(mount, mounted, disks)) else { return Vec::new() };
        let mut limits = one.limits.clone();
        limits.extend(files.learn_filesystem(&one, mounted, events));
        let since_ns = clock::shared_ns();
        if !one.mounts.is_there() {
            files.forget_filesystem(self.device);
            return Vec::new();
        }
        self.stage = Stage::Coming { since_ns, volume: Box::new(one.volume), mounts: one.mounts };
        limits
    }
}

/// The filesystems that were mounted at the start.
#[derive(Debug, Default)]
pub struct Remounts {
    filesystems: Vec<Filesystem>,
    /// The whole disks that are captured; none for all.
    disks: Vec<DeviceNumber>,
    /// Directories of the events that are captured.
    events: Vec<String>,
    /// Calls that mount are among them.
    tells_mounts: bool,
    /// When the last look began.
    looked_ns: u64,
    /// What is missed of filesystems that were found, yet to be told.
    limits: Vec<String>,
    /// Threads that may be mounting something.
    mounting: FxHashSet<u32>,
    /// When a filesystem was last unmounted whose files may be in use still.
    lazily_ns: Option<u64>,
    /// When records were lost last, perhaps those of such a thread.
    lost_ns: u64,
}

impl Remounts {
    /// For these filesystems, which were mounted at `listed_ns`.
    pub fn new(volumes: &[Mounted], disks: &[DeviceNumber], events: &[String], listed_ns: u64) -> Self {
        let filesystem = |mounted: &Mounted| Filesystem {
            device: mounted.volume.device,
            kind: mounted.mount.kind.clone(),
            stage: Stage::Mounted(mounted.mounts.clone()),
        };
        let is_captured = |path: &&str| events.iter().any(|event| event == path);
        Self {
            tells_mounts: TELLING.iter().all(is_captured),
            filesystems: volumes.iter().map(filesystem).collect(),
            disks: disks.to_vec(),
            events: events.to_vec(),
            looked_ns: listed_ns,
            ..Self::default()
        }
    }

    /// Looks what is mounted. To be called before records are used that are later than the last look. Returns what is missed of a filesystem
    /// that was found, a sentence each.
    pub fn look(&mut self, files: &mut Files) -> Vec<String> {
        let now_ns = clock::shared_ns();
        let Ok(mounted) = mounts::list() else { return Vec::new() };
        let mut limits = std::mem::take(&mut self.limits);
        for filesystem in &mut self.filesystems {
            let another = mounted.iter().find(|mount| mount.device == filesystem.device);
            match &mut filesystem.stage {
                Stage::Mounted(mounts) if !mounts.is_among(&mounted) => {
                    let another_ns = another.map(|_| now_ns);
                    filesystem.stage = Stage::Ending { until_ns: self.looked_ns, another_ns, is_told: false };
                }
                Stage::Ending { another_ns, .. } if another.is_some() => {
                    another_ns.get_or_insert(now_ns);
                }
                Stage::Coming { mounts, .. } if !mounts.is_among(&mounted) => {
                    files.forget_filesystem(filesystem.device);
                    filesystem.stage = Stage::Gone;
                }
                Stage::Gone => limits.extend(filesystem.seek(&mounted, &self.disks, files, &self.events)),
                _ => {}
            }
        }
        self.looked_ns = now_ns;
        limits
    }

    /// Records were lost.
    pub fn lost(&mut self) {
        self.lost_ns = clock::shared_ns();
    }

    /// To be called before the next record is used. Returns events that belong beside those of the record.
    pub fn pass(&mut self, record: &Record, files: &mut Files, volumes: &mut Vec<Volume>) -> Vec<Event> {
        let begins = match record.what {
            What::Mounting { begins } => Some(begins),
            What::Unmounting { lazily: true } => {
                self.lazily_ns = Some(record.time_ns);
                None
            }
            _ if self.filesystems.iter().all(|one| matches!(one.stage, Stage::Mounted(_) | Stage::Gone)) => {
                return Vec::new();
            }
            _ => None,
        };
        if begins == Some(true) {
            self.mounting.insert(record.thread);
        }
        let mut told = Vec::new();
        for at in 0..self.filesystems.len() {
            self.pass_one(at, record, files, volumes, &mut told);
        }
        if begins == Some(false) {
            self.mounting.remove(&record.thread);
        }
        told
    }

    fn pass_one(
        &mut self,
        at: usize,
        record: &Record,
        files: &mut Files,
        volumes: &mut Vec<Volume>,
        told: &mut Vec<Event>,
    ) {
        let Record { time_ns, .. } = *record;
        let Some(filesystem) = self.filesystems.get_mut(at) else { return };
        let device = filesystem.device;
        let place = volumes.iter().position(|volume| volume.device == device);
        match &mut filesystem.stage {
            Stage::Ending { until_ns, another_ns, is_told } if time_ns > *until_ns => {
                let is_over = !self.mounting.is_empty()
                    || !self.tells_mounts
                    || self.lost_ns > *until_ns
                    || self.lazily_ns.is_some_and(|lazily_ns| lazily_ns + UNMOUNTING_NS > *until_ns)
                    || another_ns.is_some_and(|another_ns| time_ns > another_ns);
                let is_unmounting = matches!(record.what, What::Unmounting { .. });
                if is_over || is_unmounting || !std::mem::replace(is_told, true) {
                    let volume = place.and_then(|place| volumes.get(place));
                    told.extend(volume.iter().flat_map(|volume| nobodys(volume, time_ns)));
                }
                if is_over {
                    place.map(|place| volumes.remove(place));
                    files.forget_filesystem(device);
                    filesystem.stage = Stage::Gone;
                    let mounted = mounts::list().unwrap_or_default();
                    self.limits.extend(filesystem.seek(&mounted, &self.disks, files, &self.events));
                } else {
                    told.extend(written(record));
                }
            }
            Stage::Coming { since_ns, volume, mounts } if time_ns > *since_ns => {
                told.extend(volume.tree_places().iter().map(|place| tree_block(place, time_ns)));
                volumes.push((**volume).clone());
                files.knows_again(device);
                filesystem.stage = Stage::Mounted(std::mem::take(mounts));
            }
            _ => {}
        }
    }
}

/// What a write wrote is nobody's behind it, if there is one.
fn written(record: &Record) -> Option<Event> {
    let What::Request(request) = record.what else { return None };
    let RequestRecord { kind, operation, device, sector, bytes, .. } = request;
    (kind == EventKind::Queue && operation == Operation::Write).then_some(())?;
    let time_ns = record.time_ns.saturating_add(1);
    Some(Event { time_ns, kind: EventKind::Extent, device, sector, bytes, ..Event::default() })
}

impl Files {
    /// A filesystem is gone, and what is told of its device from now on is of another, nobody knows which.
    fn forget_filesystem(&mut self, device: DeviceNumber) {
        self.sources.retain(|source| source.mounted.volume.device != device);
        self.watcher.change(|names| names.remove(device));
        for (key, gone) in self.known.extract_if(|(of, _), _| *of == device) {
            self.ended.insert(key, gone.generation);
        }
        self.young.retain(|(of, _)| *of != device);
        self.doubtful.retain(|(_, seen)| seen.device != device);
        self.changes.forget(device);
        self.creations.forget(device);
        self.doubts.forget_filesystem(device);
        self.subvolumes.forget(device);
        self.forgotten += 1;
        let generation = u32::MAX - self.forgotten;
        self.unknown.insert(device, Known { generation, ..Known::default() });
    }

    /// Another filesystem has the device of one that is gone. Returns what is missed of it, a sentence each. What it is asked for counts
    /// from [`Files::knows_again`] on.
    fn learn_filesystem(&mut self, mounted: &Mounted, mounts: &[Mount], events: &[String]) -> Vec<String> {
        let (source, unplaced) = Source::of(mounted, &disks::list(), events);
        let unwatched = self.watcher.change(|names| names.add(mounted));
        self.mounts = mounts.to_vec();
        self.sources.push(source);
        if mounted.has_subvolumes {
            self.subvolumes.of(mounted.volume.device);
        }
        [unplaced, unwatched].into_iter().flatten().collect()
    }

    /// What is told of the device from now on is of the filesystem that was learned.
    fn knows_again(&mut self, device: DeviceNumber) {
        self.unknown.remove(&device);
    }
}

/// Events that say that nothing on the disks of a filesystem is a file's any more.
fn nobodys(volume: &Volume, time_ns: u64) -> Vec<Event> {
    let mut bases: Vec<Base> = match &volume.addressing {
        Addressing::Blocks { base, .. } | Addressing::Groups { base, .. } => vec![*base],
        Addressing::Chunks(chunks) => {
            chunks.iter().flat_map(|chunk| &chunk.copies).map(|(base, _)| *base).collect()
        }
    };
    bases.sort_unstable_by_key(|base| (base.disk, base.start_sector));
    bases.dedup();
    let disks = disks::list();
    let event = |base: Base| {
        let disk =
            disks.iter().find(|disk| (disk.whole, disk.start_sector) == (base.disk, base.start_sector));
        let bytes = disk.map_or(ALL_BYTES, |disk| disk.sectors.saturating_mul(512));
        Event {
            time_ns,
            kind: EventKind::Extent,
            device: base.disk,
            sector: base.start_sector,
            bytes,
            ..Event::default()
        }
    };
    bases.into_iter().map(event).collect()
}

/// A place where blocks of trees are, nobody knows of which.
pub fn tree_block(place: &Place, time_ns: u64) -> Event {
    let Place { disk: device, sector, bytes, .. } = *place;
    let content = Content::BtrfsTree;
    Event { time_ns, kind: EventKind::Extent, device, sector, bytes, content, ..Event::default() }
}
