//! Which bytes and names of a simulated disk are durable, and which could still go either way.
//!
//!   floor (on the medium for certain) <- pending versions, oldest first <- current (what reads see)
//!
//! Rules, each with where it comes from:
//! 1. A version of a sector becomes the floor when a sync that began after the write returned has returned, or when
//!    the write itself was durable. Until then the medium may hold any version since the floor: the page cache writes
//!    whole pages back whenever it likes, and a power cut tears a block at sector borders.
//! 2. After a failed sync the versions it should have written are *abandoned*: a later sync does not write them
//!    (Linux marks the pages clean), only a later write of the same sector does.
//! 3. A size is durable with the data that needs it: any successful sync of the file, or durable write to it.
//! 4. Truncation is one step. Bytes that it cuts come back only if the truncation itself is lost.
//! 5. A name is durable once its directory was synced.
//! 6. (journal) In the ordered model a commit of the file system's journal carries every earlier change of names and
//!    sizes with it, as in ext4.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use crate::simulated::image::{Content, Image, SECTOR_BYTES, in_memory};
use crate::simulated::log::{Inode, Op, Record, Tick, WriteFlags};

const SECTOR: u64 = SECTOR_BYTES as u64;

/// A content of one sector that may or may not have reached the medium.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    pub tick: Tick,
    pub abandoned: bool,
    pub bytes: [u8; SECTOR_BYTES],
}

/// A change of a file's size that may or may not have reached the medium.
#[derive(Debug, Clone)]
pub(crate) struct SizeChange {
    pub tick: Tick,
    pub size_bytes: u64,
    /// Where bytes were cut off, of a truncation to a smaller size.
    pub cut: Option<u64>,
}

/// One file between its floor and its current content.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileHistory {
    pub floor: Content,
    current: Content,
    pub sectors: BTreeMap<u64, Vec<Version>>,
    pub sizes: Vec<SizeChange>,
    created: Tick,
}

/// A change of names.
#[derive(Debug, Clone)]
pub(crate) enum NameChange {
    Bind(PathBuf, Inode),
    Move(PathBuf, PathBuf, Inode),
    Unbind(PathBuf, Inode),
}

/// A walk through a log. Between [`Replay::begin`] and [`Replay::end`] of a record the operation is under way.
#[derive(Debug, Clone)]
pub struct Replay {
    pub(crate) files: BTreeMap<Inode, FileHistory>,
    pub(crate) names_floor: BTreeMap<PathBuf, Inode>,
    pub(crate) names: Vec<(Tick, NameChange)>,
    /// In the ordered model, changes of names and sizes up to this moment are on the medium.
    pub(crate) journal_floor: Tick,
}

impl NameChange {
    pub(crate) fn apply(&self, names: &mut BTreeMap<PathBuf, Inode>) {
        match self {
            NameChange::Bind(path, inode) => {
                names.insert(path.clone(), *inode);
            }
            NameChange::Move(from, to, inode) if names.get(from) == Some(inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
            NameChange::Unbind(path, inode) if names.get(path) == Some(inode) => {
                names.remove(path);
            }
            NameChange::Move(..) | NameChange::Unbind(..) => {}
        }
    }

    pub(crate) fn inode(&self) -> Inode {
        let (NameChange::Bind(_, inode) | NameChange::Move(_, _, inode) | NameChange::Unbind(_, inode)) =
            self;
        *inode
    }

    fn is_in(&self, dir: &Path) -> bool {
        let (NameChange::Bind(path, _) | NameChange::Move(path, _, _) | NameChange::Unbind(path, _)) = self;
        path.parent() == Some(dir)
    }
}

impl Version {
    /// The bytes after truncations that came later and are on the medium.
    pub(crate) fn bytes_after(&self, sector: u64, sizes: &[SizeChange], until: Tick) -> [u8; SECTOR_BYTES] {
        let mut bytes = self.bytes;
        for change in sizes.iter().filter(|change| change.tick > self.tick && change.tick <= until) {
            if let Some(cut) = change.cut {
                let kept = cut.saturating_sub(sector * SECTOR).min(SECTOR);
                bytes[in_memory(kept)..].fill(0);
            }
        }
        bytes
    }
}

impl FileHistory {
    fn write(&mut self, tick: Tick, data: &[u8], offset: u64) {
        if data.is_empty() {
            return;
        }
        self.current.write(data, offset);
        let last = (offset + data.len() as u64 - 1) / SECTOR;
        for sector in offset / SECTOR..=last {
            self.add_version(tick, sector);
        }
        self.add_size(tick, None);
    }

    fn add_version(&mut self, tick: Tick, sector: u64) {
        let bytes = self.current.sector(sector);
        let versions = self.sectors.entry(sector).or_default();
        let unchanged = match versions.last() {
            Some(last) => !last.abandoned && last.bytes == bytes,
            None => self.floor.sector(sector) == bytes,
        };
        // A truncation between the two versions makes equal bytes unequal in time; keep both then.
        let cut_since = self.sizes.iter().any(|change| change.cut.is_some());
        if !unchanged || cut_since {
            versions.push(Version { tick, abandoned: false, bytes });
        } else if versions.is_empty() {
            self.sectors.remove(&sector);
        }
    }

    fn add_size(&mut self, tick: Tick, cut: Option<u64>) {
        let size_bytes = self.current.size_bytes();
        let last = self.sizes.last().map_or(self.floor.size_bytes(), |change| change.size_bytes);
        if last != size_bytes || cut.is_some() {
            self.sizes.push(SizeChange { tick, size_bytes, cut });
        }
    }

    fn resize(&mut self, tick: Tick, size_bytes: u64) {
        let shrinks = size_bytes < self.current.size_bytes();
        self.current.set_size(size_bytes);
        self.add_size(tick, shrinks.then_some(size_bytes));
    }

    /// Everything that returned before `begin` goes to the floor, but for abandoned versions; of the sectors only those
    /// in `range`.
    fn settle(&mut self, begin: Tick, range: RangeInclusive<u64>) {
        let mut promoted = Vec::new();
        for (sector, versions) in self.sectors.range_mut(range) {
            let Some(newest) = versions.iter().rposition(|version| version.tick < begin) else { continue };
            if versions[newest].abandoned {
                continue;
            }
            promoted.push((*sector, versions[newest].bytes_after(*sector, &self.sizes, begin - 1)));
            versions.drain(..=newest);
        }
        self.sectors.retain(|_, versions| !versions.is_empty());
        self.settle_sizes(begin);
        // After the cuts: these bytes are newer than every truncation that settled, or were masked by it above.
        for (sector, bytes) in promoted {
            self.floor.write_raw(&bytes, sector * SECTOR);
        }
    }

    fn settle_sizes(&mut self, begin: Tick) {
        let settled = self.sizes.iter().take_while(|change| change.tick < begin).count();
        let settled: Vec<SizeChange> = self.sizes.drain(..settled).collect();
        for (sector, versions) in &mut self.sectors {
            for version in versions {
                version.bytes = version.bytes_after(*sector, &settled, begin);
            }
        }
        for change in settled {
            if let Some(cut) = change.cut {
                self.floor.cut(cut);
            }
            self.floor.set_size_raw(change.size_bytes);
        }
    }

    fn abandon(&mut self, until: Tick) {
        for version in self.sectors.values_mut().flatten().filter(|version| version.tick < until) {
            version.abandoned = true;
        }
    }

    /// Whether syncing this file needs a commit of the file system's journal.
    fn needs_journal(&self, begin: Tick, journal_floor: Tick) -> bool {
        let unwritten = |tick: Tick| tick < begin && tick > journal_floor;
        unwritten(self.created) || self.sizes.iter().any(|change| unwritten(change.tick))
    }
}

impl Replay {
    /// Stands before the first operation on a disk that held `base`.
    pub(crate) fn new(base: &Image) -> Self {
        let mut replay = Replay {
            files: BTreeMap::new(),
            names_floor: BTreeMap::new(),
            names: Vec::new(),
            journal_floor: 0,
        };
        for (inode, (path, content)) in (1..).zip(&base.files) {
            let file =
                FileHistory { floor: content.clone(), current: content.clone(), ..FileHistory::default() };
            replay.files.insert(inode, file);
            replay.names_floor.insert(path.clone(), inode);
        }
        replay
    }

    /// Takes in everything that `record` did before it returned.
    pub fn begin(&mut self, record: &Record) {
        let tick = record.end;
        match &record.op {
            Op::Create { path, inode } => {
                self.files.insert(*inode, FileHistory { created: tick, ..FileHistory::default() });
                self.names.push((tick, NameChange::Bind(path.clone(), *inode)));
            }
            Op::Rename { from, to, inode } => {
                self.names.push((tick, NameChange::Move(from.clone(), to.clone(), *inode)));
            }
            Op::Remove { path, inode } => self.names.push((tick, NameChange::Unbind(path.clone(), *inode))),
            Op::Write { inode, offset, data, .. } => self.file(*inode).write(tick, data, *offset),
            Op::Truncate { inode, size_bytes } => self.file(*inode).resize(tick, *size_bytes),
            Op::Extend { inode, size_bytes, overwritten } => {
                if let Some((from, to)) = overwritten {
                    let zeros = vec![0; in_memory(to - from)];
                    self.file(*inode).write(tick, &zeros, *from);
                }
                self.file(*inode).resize(tick, *size_bytes);
            }
            Op::SyncDir { .. } | Op::SyncData { .. } | Op::Mark(_) | Op::Ack(_) => {}
        }
    }

    /// Draws the consequences of the return of `record`.
    pub fn end(&mut self, record: &Record) {
        match &record.op {
            Op::SyncData { inode } if record.failed => self.file(*inode).abandon(record.begin),
            Op::SyncData { inode } => self.settle(*inode, record.begin, 0..=u64::MAX),
            Op::Write { inode, flags, .. } if record.failed && *flags != WriteFlags::Cached => {
                self.file(*inode).abandon(record.end + 1);
            }
            Op::Write { inode, offset, data, flags: WriteFlags::Durable } => {
                let last = (offset + data.len() as u64).saturating_sub(1) / SECTOR;
                self.settle(*inode, record.end + 1, offset / SECTOR..=last);
            }
            Op::SyncDir { dir } if !record.failed => {
                let (settled, pending) = std::mem::take(&mut self.names)
                    .into_iter()
                    .partition(|(tick, change)| *tick < record.begin && change.is_in(dir));
                self.names = pending;
                for (_, change) in settled as Vec<(Tick, NameChange)> {
                    change.apply(&mut self.names_floor);
                }
                self.journal_floor = self.journal_floor.max(record.begin);
            }
            _ => {}
        }
    }

    fn settle(&mut self, inode: Inode, begin: Tick, range: RangeInclusive<u64>) {
        let journal_floor = self.journal_floor;
        let file = self.file(inode);
        if file.needs_journal(begin, journal_floor) {
            self.journal_floor = journal_floor.max(begin - 1);
        }
        self.file(inode).settle(begin, range);
    }

    fn file(&mut self, inode: Inode) -> &mut FileHistory {
        self.files.get_mut(&inode).expect("the log creates a file before it uses it")
    }
}
