//! What lies where on the disks of a trace: partitions, filesystems, and the regions that filesystems reserve.

use crate::filesystem::Filesystem;
use crate::filesystem::region::Region;
use crate::trace::event::{Backing, Content, DeviceNumber, Event, EventKind, FileKey, SECTOR_BYTES, UNLOCK};
use crate::trace::header::{Header, MountedFilesystem};

/// Sectors of a whole disk that belong to something.
#[derive(Debug, Clone, Copy)]
struct Stretch<T> {
    disk: DeviceNumber,
    first: u64,
    end: u64,
    /// Place of its filesystem in the trace's head.
    owner: usize,
    what: T,
}

/// Looks up disks, filesystems and regions by number and sector.
#[derive(Debug, Default)]
pub struct Places {
    /// (number, whole disk, first sector) in order of number.
    disks: Vec<(DeviceNumber, DeviceNumber, u64)>,
    regions: Vec<Stretch<Region>>,
    filesystems: Vec<Stretch<()>>,
    /// Device number of each filesystem's files, its kind, and whether its layout is known.
    kinds: Vec<(DeviceNumber, Option<Filesystem>, bool)>,
    /// Until when filesystems are known that are not to the end, and their devices.
    ends: Vec<(u64, DeviceNumber)>,
    /// Those of which that time is over.
    ended: Vec<DeviceNumber>,
    /// Their sectors: whole disk, first, end.
    nobodys: Vec<(DeviceNumber, u64, u64)>,
}

impl Places {
    /// The places that a trace's head names.
    pub fn new(header: &Header) -> Self {
        let mut places = Self::default();
        for disk in &header.disks {
            places.disks.push((disk.number, disk.whole, disk.start_sector));
        }
        places.disks.sort_unstable();
        for (index, filesystem) in header.filesystems.iter().enumerate() {
            let has_layout = !filesystem.regions.is_empty();
            places.kinds.push((filesystem.device, Filesystem::of_mount(&filesystem.kind), has_layout));
            places.add(header, index, filesystem);
            places.ends.extend(filesystem.until_ns.map(|until_ns| (until_ns, filesystem.device)));
        }
        places.regions.sort_by_key(|stretch| (stretch.disk, stretch.first));
        places.filesystems.sort_by_key(|stretch| (stretch.disk, stretch.first));
        places
    }

    fn add(&mut self, header: &Header, index: usize, filesystem: &MountedFilesystem) {
        for disk in filesystem.disks.iter().filter_map(|&number| header.disk(number)) {
            let end = disk.start_sector.saturating_add(disk.sectors);
            let first = disk.start_sector;
            self.filesystems.push(Stretch { disk: disk.whole, first, end, owner: index, what: () });
        }
        for &region in &filesystem.regions {
            let end = region.sector.saturating_add(region.sectors);
            let (disk, first) = (region.disk, region.sector);
            self.regions.push(Stretch { disk, first, end, owner: index, what: region });
        }
    }

    /// From then on nothing is known of the filesystem whose files have this device, and of its disks.
    pub fn ends(&mut self, device: DeviceNumber, until_ns: u64) {
        self.ends.push((until_ns, device));
    }

    /// Time goes on: forgets what lay where in filesystems of which nothing is known any more. Their sectors: whole disk, first, end.
    pub fn pass(&mut self, time_ns: u64) -> Vec<(DeviceNumber, u64, u64)> {
        let is_over = |(until_ns, _): &mut (u64, DeviceNumber)| *until_ns <= time_ns;
        // In nearly every trace there is none.
        let gone: Vec<DeviceNumber> = self.ends.extract_if(.., is_over).map(|(_, device)| device).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let kinds = &self.kinds;
        let is_gone = |owner: usize| kinds.get(owner).is_some_and(|(device, ..)| gone.contains(device));
        let own = self.filesystems.extract_if(.., |stretch| is_gone(stretch.owner));
        let mut over: Vec<_> = own.map(|stretch| (stretch.disk, stretch.first, stretch.end)).collect();
        // A journal may be on another disk.
        let regions = self.regions.extract_if(.., |stretch| is_gone(stretch.owner));
        over.extend(regions.map(|stretch| (stretch.disk, stretch.first, stretch.end)));
        self.ended.extend(gone);
        self.nobodys.extend(&over);
        over
    }

    /// What is known of an event after [`Places::pass`]. Of a filesystem that has ended, or of another that has its device or its disk now,
    /// only that there was a request or a call. `None` where that leaves nothing.
    pub fn known(&self, event: &Event) -> Option<Event> {
        let is_nobodys = || {
            let (disk, first, end) = (self.whole(event.device), event.sector, event.end_sector());
            self.nobodys.iter().any(|own| own.0 == disk && own.1 < end && first < own.2)
        };
        if self.ended.is_empty() || !self.ended.contains(&event.file.device) && !is_nobodys() {
            return Some(*event);
        }
        let file = FileKey { device: event.file.device, ..FileKey::NONE };
        match event.kind {
            EventKind::Queue => {
                Some(Event { file, backing: Backing::Unseen, content: Content::Unknown, ..*event })
            }
            EventKind::SyncBegin | EventKind::SyncEnd | EventKind::DurableWrite => {
                Some(Event { file, ..*event })
            }
            EventKind::Named => None,
            // What was taken before may be given back.
            EventKind::Lock => (event.detail == UNLOCK).then_some(*event),
            kind => (!kind.changes_a_file()).then_some(*event),
        }
    }

    /// The whole disk of a disk or partition; itself where the trace's head does not know it.
    pub fn whole(&self, device: DeviceNumber) -> DeviceNumber {
        self.entry(device).map_or(device, |(_, whole, _)| whole)
    }

    /// Sector of the whole disk that holds a byte of a disk or partition.
    pub fn sector_of(&self, device: DeviceNumber, byte: u64) -> u64 {
        self.entry(device).map_or(0, |(_, _, start)| start) + byte / SECTOR_BYTES
    }

    fn entry(&self, device: DeviceNumber) -> Option<(DeviceNumber, DeviceNumber, u64)> {
        let at = self.disks.binary_search_by_key(&device, |(number, ..)| *number).ok()?;
        self.disks.get(at).copied()
    }

    /// The region that holds a sector of a whole disk.
    pub fn region(&self, disk: DeviceNumber, sector: u64) -> Option<&Region> {
        find(&self.regions, disk, sector).map(|stretch| &stretch.what)
    }

    /// Where the region ends that holds a sector, or where the next begins: up to there all is alike.
    pub fn alike_until(&self, disk: DeviceNumber, sector: u64) -> u64 {
        let after = self.regions.partition_point(|stretch| (stretch.disk, stretch.first) <= (disk, sector));
        let own = find(&self.regions, disk, sector).map(|stretch| stretch.end);
        let next =
            self.regions.get(after).filter(|stretch| stretch.disk == disk).map(|stretch| stretch.first);
        own.or(next).unwrap_or(u64::MAX)
    }

    /// The filesystem on a sector of a whole disk, by its place in the trace's head; for a journal on a disk of its own,
    /// the one that it serves.
    pub fn filesystem(&self, disk: DeviceNumber, sector: u64) -> Option<usize> {
        let served = || find(&self.regions, disk, sector).map(|stretch| stretch.owner);
        find(&self.filesystems, disk, sector).map(|stretch| stretch.owner).or_else(served)
    }

    /// True for files of a filesystem that the trace is about, and where it says nothing of filesystems.
    pub fn holds_files(&self, device: DeviceNumber) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|(own, ..)| *own == device)
    }

    /// True where the layout of the filesystem on a sector is known: what lies outside of its regions is then something else.
    pub fn has_layout(&self, disk: DeviceNumber, sector: u64) -> bool {
        let known = self.filesystem(disk, sector).and_then(|filesystem| self.kinds.get(filesystem));
        known.is_some_and(|(_, _, has_layout)| *has_layout)
    }

    /// What files of a filesystem have as their device.
    pub fn file_device(&self, filesystem: usize) -> DeviceNumber {
        self.kinds.get(filesystem).map_or(DeviceNumber::NONE, |(device, ..)| *device)
    }

    /// What kind a filesystem is; `None` for one of which only page caches tell.
    pub fn kind(&self, filesystem: Option<usize>) -> Option<Filesystem> {
        filesystem.and_then(|index| self.kinds.get(index)).and_then(|(_, kind, _)| *kind)
    }
}

fn find<T>(stretches: &[Stretch<T>], disk: DeviceNumber, sector: u64) -> Option<&Stretch<T>> {
    let after = stretches.partition_point(|stretch| (stretch.disk, stretch.first) <= (disk, sector));
    stretches.get(after.checked_sub(1)?).filter(|stretch| stretch.disk == disk && sector < stretch.end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filesystem::region::RegionUse;
    use crate::trace::header::Disk;

    fn places() -> Places {
        let [whole, part] = [DeviceNumber(16), DeviceNumber(17)];
        let disk =
            |number, start_sector, sectors| Disk { number, whole, start_sector, sectors, ..Disk::default() };
        let region =
            |sector, sectors, purpose| Region { disk: whole, sector, sectors, purpose, journal_offset: 0 };
        Places::new(&Header {
            disks: vec![disk(whole, 0, 10_000), disk(part, 2048, 4096)],
            filesystems: vec![MountedFilesystem {
                device: part,
                kind: "ext4".into(),
                disks: vec![part],
                regions: vec![region(2050, 8, RegionUse::Superblock), region(3000, 100, RegionUse::Journal)],
                ..MountedFilesystem::default()
            }],
            ..Header::default()
        })
    }

    #[test]
    fn sectors_lead_to_their_filesystem_and_region() {
        let (places, disk) = (places(), DeviceNumber(16));
        let region = |sector| places.region(disk, sector).map(|region| region.purpose);
        assert_eq!((region(2049), region(2050), region(2058)), (None, Some(RegionUse::Superblock), None));
        assert_eq!((region(3099), region(3100)), (Some(RegionUse::Journal), None));
        assert_eq!((places.filesystem(disk, 2047), places.filesystem(disk, 2048)), (None, Some(0)));
        assert_eq!((places.filesystem(disk, 6143), places.filesystem(disk, 6144)), (Some(0), None));
        assert_eq!(places.kind(Some(0)), Some(Filesystem::Ext4));
        let ends = [2049, 2051, 2060, 3000, 9000].map(|sector| places.alike_until(disk, sector));
        assert_eq!(ends, [2050, 2058, 3000, 3100, u64::MAX]);
    }

    #[test]
    fn what_is_not_mounted_any_more_has_no_layout() {
        let (mut places, disk) = (places(), DeviceNumber(16));
        places.ends(DeviceNumber(17), 100);
        assert_eq!(places.pass(99), []);
        assert_eq!(places.region(disk, 3000).map(|region| region.purpose), Some(RegionUse::Journal));
        assert_eq!(places.pass(100), [(disk, 2048, 6144), (disk, 2050, 2058), (disk, 3000, 3100)]);
        assert_eq!((places.region(disk, 3000), places.filesystem(disk, 2048)), (None, None));
        assert!(places.holds_files(DeviceNumber(17)), "its files may be there again");
        assert_eq!(places.pass(101), []);
    }

    #[test]
    fn of_a_filesystem_that_ended_an_event_says_only_that_it_happened() {
        let (mut places, [disk, own]) = (places(), [DeviceNumber(16), DeviceNumber(17)]);
        let of = |device| FileKey { device, inode: 12, generation: 1 };
        let run = |file, sector| Event {
            device: disk,
            sector,
            bytes: 4096,
            file,
            backing: Backing::File,
            content: Content::SqliteLog,
            ..Event::default()
        };
        let event = |kind, detail| Event { kind, detail, file: of(own), ..Event::default() };
        let [inside, before, elsewhere] =
            [run(of(DeviceNumber(9)), 2044), run(of(own), 0), run(of(DeviceNumber(9)), 6144)];
        assert_eq!(places.known(&inside), Some(inside), "it has not ended yet");
        places.ends(own, 100);
        places.pass(100);
        for event in [inside, before] {
            let known = places.known(&event).expect("a request");
            assert_eq!((known.bytes, known.sector), (event.bytes, event.sector));
            assert!(!known.file.is_some() && (known.backing, known.content) == Default::default());
        }
        assert_eq!(places.known(&elsewhere), Some(elsewhere));
        let call = places.known(&event(EventKind::SyncBegin, 0)).expect("a call");
        assert_eq!((call.file.device, call.file.is_some()), (own, false));
        let unlocked = event(EventKind::Lock, UNLOCK);
        assert_eq!(places.known(&unlocked), Some(unlocked), "what was taken before is given back");
        for kind in [EventKind::Lock, EventKind::Named, EventKind::Unlinked, EventKind::Extent] {
            assert_eq!(places.known(&event(kind, 1)), None, "{kind:?}");
        }
        // Of another filesystem, which has the disk now.
        let extent = Event { kind: EventKind::Extent, ..inside };
        assert_eq!(places.known(&extent), None);
    }

    #[test]
    fn of_two_that_end_before_an_event_neither_has_a_layout_then() {
        let disk = DeviceNumber(16);
        let on = |device, sector, until_ns| MountedFilesystem {
            device: DeviceNumber(device),
            kind: "ext4".into(),
            regions: vec![Region {
                disk,
                sector,
                sectors: 8,
                purpose: RegionUse::Superblock,
                journal_offset: 0,
            }],
            until_ns,
            ..MountedFilesystem::default()
        };
        let mut places = Places::new(&Header {
            filesystems: vec![on(17, 8, Some(50)), on(18, 80, Some(60)), on(19, 800, Some(900))],
            ..Header::default()
        });
        places.pass(100);
        let known = [8, 80, 800].map(|sector| places.region(disk, sector).is_some());
        assert_eq!(known, [false, false, true]);
    }

    #[test]
    fn a_partition_is_part_of_its_disk() {
        let places = places();
        assert_eq!(
            (places.whole(DeviceNumber(17)), places.whole(DeviceNumber(99))),
            (DeviceNumber(16), DeviceNumber(99))
        );
        assert_eq!(places.sector_of(DeviceNumber(17), 4096), 2056);
    }
}
