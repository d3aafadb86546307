//! Goal: the simulated disk loses exactly what a disk may lose, no more and no less.
//! Method: logs of a few operations whose crash states were worked out by hand, compared as sets.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::aligned::AlignedBuffer;
use crate::disk::{Disk, DiskFile, Fill, OpenOptions};
use crate::simulated::crash_states::{Bounds, Metadata};
use crate::simulated::disk::SimDisk;
use crate::simulated::fault::{Counted, Fault, FaultKind, Kept};
use crate::simulated::file::SimFile;
use crate::simulated::image::{Content, Image};
use crate::simulated::log::{Op, Record, WriteFlags};
use crate::simulated::replay::Replay;
use crate::simulated::state::SimOptions;

const FILE: &str = "/d/a";
const CREATE: OpenOptions =
    OpenOptions { create: true, exclusive: false, read_only: false, mode: 0o640, owner: None };

fn disk_with(bytes: &[u8]) -> (SimDisk, SimFile) {
    let image = Image { files: [(FILE.into(), Content::of(bytes))].into() };
    let disk = SimDisk::from_image(&image, SimOptions::default());
    let file = disk.open_file(Path::new(FILE), CREATE).unwrap();
    (disk, file)
}

fn replay_all(disk: &SimDisk) -> Replay {
    let mut replay = disk.replay();
    for record in disk.records() {
        replay.begin(&record);
        replay.end(&record);
    }
    replay
}

/// For each state the first byte of every sector of `FILE` as text; `-` where there is no file.
fn sketches(replay: &Replay, metadata: Option<Metadata>) -> BTreeSet<String> {
    let sketch = |image: &Image| match image.files.get(Path::new(FILE)) {
        None => "-".to_owned(),
        Some(content) => content.bytes().chunks(512).map(|sector| char::from(b'0' + sector[0])).collect(),
    };
    let states = replay.states(&Bounds::default());
    let wanted =
        states.iter().filter(|(recipe, _)| metadata.is_none_or(|metadata| recipe.metadata == metadata));
    wanted.map(|(_, image)| sketch(image)).collect()
}

fn set<const N: usize>(sketches: [&str; N]) -> BTreeSet<String> {
    sketches.into_iter().map(str::to_owned).collect()
}

#[test]
fn unsynced_overwrite_tears_at_sectors() {
    let (disk, file) = disk_with(&[1; 1024]);
    file.write_at(&[2; 1024], 0).unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["11", "12", "21", "22"]));
}

#[test]
fn synced_write_is_certain_and_a_later_one_is_not() {
    let (disk, file) = disk_with(&[1; 1024]);
    file.write_at(&[2; 512], 0).unwrap();
    file.sync_data().unwrap();
    file.write_at(&[3; 512], 512).unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["21", "23"]));
}

#[test]
fn each_version_of_a_sector_may_be_the_one_that_survives() {
    let (disk, file) = disk_with(&[1; 512]);
    file.write_at(&[2; 512], 0).unwrap();
    file.write_at(&[3; 512], 0).unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["1", "2", "3"]));
}

#[test]
fn sync_under_way_covers_nothing_yet() {
    let (disk, file) = disk_with(&[1; 512]);
    file.write_at(&[2; 512], 0).unwrap();
    file.sync_data().unwrap();
    let records = disk.records();
    let mut replay = disk.replay();
    replay.begin(&records[0]);
    replay.end(&records[0]);
    replay.begin(&records[1]);
    assert_eq!(sketches(&replay, None), set(["1", "2"]));
    replay.end(&records[1]);
    assert_eq!(sketches(&replay, None), set(["2"]));
}

#[test]
fn sync_that_began_before_the_write_returned_does_not_cover_it() {
    let (disk, file) = disk_with(&[1; 512]);
    let write =
        Op::Write { inode: file.inode(), offset: 0, data: [2; 512].into(), flags: WriteFlags::Cached };
    let sync = Op::SyncData { inode: file.inode() };
    let mut replay = disk.replay();
    for record in [
        Record { begin: 1, end: 3, op: write, failed: false },
        Record { begin: 2, end: 4, op: sync, failed: false },
    ] {
        replay.begin(&record);
        replay.end(&record);
    }
    assert_eq!(sketches(&replay, None), set(["1", "2"]));
}

#[test]
fn durable_write_makes_only_its_own_bytes_certain() {
    let (disk, file) = disk_with(&[1; 1024]);
    file.write_at(&[2; 512], 0).unwrap();
    let mut buffer = AlignedBuffer::zeroed(512);
    buffer.bytes_mut().fill(3);
    file.write_durable(buffer.bytes(), 512).unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["13", "23"]));
}

#[test]
fn direct_write_is_undecided_until_a_sync_and_needs_alignment() {
    let (disk, file) = disk_with(&[1; 512]);
    let mut buffer = AlignedBuffer::zeroed(1024);
    buffer.bytes_mut().fill(3);
    let unaligned = file.write_direct(&buffer.bytes()[1..513], 0);
    assert_eq!(unaligned.unwrap_err().kind(), io::ErrorKind::InvalidInput);
    assert_eq!(file.write_direct(&buffer.bytes()[..512], 7).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    file.write_direct(&buffer.bytes()[..512], 0).unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["1", "3"]));
    file.sync_data().unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["3"]));
}

#[test]
fn appended_data_and_size_survive_apart_or_in_order() {
    let (disk, file) = disk_with(&[1; 512]);
    file.write_at(&[2; 512], 512).unwrap();
    let replay = replay_all(&disk);
    assert_eq!(sketches(&replay, None), set(["1", "10", "12"]), "a size without its data shows zeros");
    let undecided_size = |image: &Image| image.files[Path::new(FILE)].size_bytes();
    let ordered: BTreeSet<u64> = replay
        .states(&Bounds::default())
        .iter()
        .filter(|(recipe, _)| recipe.metadata == Metadata::Ordered)
        .map(|(_, image)| undecided_size(image))
        .collect();
    assert!(ordered.is_empty(), "ordered states are a subset of the pessimistic ones here: {ordered:?}");
    file.sync_data().unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["12"]));
}

#[test]
fn truncation_is_one_step_and_nothing_of_the_old_bytes_returns_beside_new_ones() {
    let (disk, file) = disk_with(&[1; 1024]);
    file.truncate(0).unwrap();
    file.write_at(&[2; 512], 0).unwrap();
    // Lost; done; done and the size of the new data; with the data.
    assert_eq!(sketches(&replay_all(&disk), None), set(["11", "", "0", "2"]));
    file.sync_data().unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["2"]));
    file.write_at(&[3; 512], 512).unwrap();
    file.sync_data().unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["23"]));
}

#[test]
fn truncated_tail_stays_zero_after_a_sync() {
    let (disk, file) = disk_with(&[1; 1024]);
    file.write_at(&[2; 1024], 0).unwrap();
    file.truncate(512).unwrap();
    file.extend(1024, Fill::Zeroes).unwrap();
    file.sync_data().unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["20"]));
}

#[test]
fn new_name_needs_a_sync_of_its_directory() {
    let disk = SimDisk::new();
    let file = disk.open_file(Path::new(FILE), CREATE).unwrap();
    file.write_at(&[2; 512], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(sketches(&replay_all(&disk), Some(Metadata::AnySubset)), set(["-", "2"]));
    assert_eq!(
        sketches(&replay_all(&disk), Some(Metadata::Ordered)),
        set([]),
        "nothing beyond the pessimistic states"
    );
    disk.sync_dir_of(Path::new("/e/other")).unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["-", "2"]), "another directory");
    disk.sync_dir_of(Path::new(FILE)).unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["2"]));
    assert_eq!(disk.mode_and_owner(Path::new(FILE)).unwrap(), (0o640, (0, 0)));
}

#[test]
fn rename_takes_the_file_from_one_name_to_the_other_in_one_step() {
    let (disk, _file) = disk_with(&[1; 512]);
    let other = Path::new("/d/b");
    disk.rename(Path::new(FILE), other).unwrap();
    let names = |image: &Image| image.files.keys().map(|path| path.display().to_string()).collect::<Vec<_>>();
    let states: BTreeSet<_> =
        replay_all(&disk).states(&Bounds::default()).iter().map(|(_, image)| names(image)).collect();
    assert_eq!(states, BTreeSet::from([vec![FILE.to_owned()], vec!["/d/b".to_owned()]]));
}

#[test]
fn sync_of_the_file_system_is_one_of_every_file() {
    let (disk, file) = disk_with(&[1; 512]);
    let other = disk.open_file(Path::new("/d/b"), CREATE).unwrap();
    file.write_at(&[2; 512], 0).unwrap();
    other.sync_data().unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["1", "2"]));
    other.sync_filesystem().unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["2"]));
}

#[test]
fn removal_may_be_undone_until_the_directory_is_synced() {
    let (disk, file) = disk_with(&[1; 512]);
    disk.remove(Path::new(FILE)).unwrap();
    assert_eq!(file.size().unwrap(), 512, "an open file outlives its name");
    assert_eq!(sketches(&replay_all(&disk), None), set(["-", "1"]));
    disk.sync_dir_of(Path::new(FILE)).unwrap();
    assert_eq!(sketches(&replay_all(&disk), None), set(["-"]));
}

#[test]
fn failed_sync_loses_data_for_good_that_reads_still_show() {
    let (disk, file) = disk_with(&[1; 1024]);
    file.write_at(&[2; 1024], 0).unwrap();
    disk.set_fault(Some(Fault {
        counted: Counted::Flushes,
        number: 0,
        kind: FaultKind::Io,
        kept: Kept::All,
        lasting: false,
    }));
    assert_eq!(file.sync_data().unwrap_err().raw_os_error(), Some(5));
    file.sync_data().unwrap();
    let mut bytes = [0; 512];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 512);
    assert_eq!(bytes, [2; 512]);
    assert_eq!(
        sketches(&replay_all(&disk), None),
        set(["11", "12", "21", "22"]),
        "the later sync wrote nothing"
    );
    file.write_at(&[2; 512], 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(
        sketches(&replay_all(&disk), None),
        set(["21", "22"]),
        "writing again makes the page dirty again"
    );
}

#[test]
fn each_opening_of_a_file_hears_once_of_a_sync_that_failed() {
    let (disk, file) = disk_with(&[1; 1024]);
    let other = disk.open(Path::new(FILE), OpenOptions::EXISTING).unwrap();
    disk.set_fault(Some(Fault { counted: Counted::Flushes, ..Fault::at_change(0, FaultKind::Io) }));
    assert!(file.sync_data().is_err());
    let later = disk.open(Path::new(FILE), OpenOptions::EXISTING).unwrap();
    assert!(other.sync_data().is_err() && other.sync_data().is_ok(), "once");
    assert!(file.sync_data().is_ok() && later.sync_data().is_ok(), "it was told, or came after");
}

#[test]
fn failed_write_leaves_its_first_half() {
    let (disk, file) = disk_with(&[1; 1024]);
    disk.set_fault(Some(Fault::at_change(0, FaultKind::Full)));
    assert_eq!(file.write_at(&[2; 1024], 0).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(sketches(&replay_all(&disk), None), set(["11", "21"]));
    file.write_at(&[3; 512], 512).unwrap();
    assert_eq!(disk.count(Counted::Changes), 2);
}

#[test]
fn full_disk_takes_what_fits_and_overwrites_still_work() {
    let (disk, file) = disk_with(&[1; 4096]);
    disk.set_capacity(8192);
    assert_eq!(file.write_at(&[2; 20_000], 4096).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.size().unwrap(), 8192);
    assert_eq!(file.extend(9000, Fill::Zeroes).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(file.size().unwrap(), 8192);
    file.write_at(&[3; 8192], 0).unwrap();
    assert_eq!(disk.used_bytes(), 8192);
}

#[test]
fn only_the_unsafe_fill_destroys_what_another_writer_put_there() {
    for (fill, expected) in [(Fill::Zeroes, 7), (Fill::Unwritten, 7), (Fill::WriteZeroes, 0)] {
        let (disk, file) = disk_with(&[1; 512]);
        let other = Arc::new(disk.open_file(Path::new(FILE), CREATE).unwrap());
        disk.set_extend_hook(Some(Arc::new(move || other.write_at(&[7; 512], 512).unwrap())));
        assert_eq!(file.extend(4096, fill).unwrap(), 4096);
        let mut bytes = [9; 512];
        file.read_at(&mut bytes, 512).unwrap();
        assert_eq!(bytes, [expected; 512], "{fill:?}");
    }
}

#[test]
fn restart_makes_open_files_stale_and_recipes_make_the_same_state_again() {
    let (disk, file) = disk_with(&[1; 40_000]);
    file.write_at(&[2; 40_000], 0).unwrap();
    let replay = replay_all(&disk);
    let states = replay.states(&Bounds::default());
    assert!(states.len() > 300, "78 sectors: prefixes, drops and samples, got {}", states.len());
    for (recipe, image) in &states {
        assert_eq!(replay.state(*recipe).fingerprint(), image.fingerprint(), "{recipe}");
    }
    disk.restart_from(&states[0].1);
    assert_eq!(file.size().unwrap_err().raw_os_error(), Some(9));
    assert_eq!(disk.image().fingerprint(), states[0].1.fingerprint());
    assert_eq!(disk.record_count(), 0);
}
