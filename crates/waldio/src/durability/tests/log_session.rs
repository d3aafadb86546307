//! Growth of a log, on a simulated disk: when it is ordered, and when it ends.

use super::*;
use crate::durability::delayed_flush::Flusher;
use crate::durability::growth::{Growth, Worker};
use crate::log::frame::Salts;
use crate::log::reserve::{FIRST_BYTES, LOG_BYTES_DEFAULT, STEP_BYTES};
use crate::options::{FillChoice, PersistChoice};
use blockio::disk::{Disk, Fill, OpenOptions};
use blockio::simulated::disk::SimDisk;
use blockio::simulated::image::Image;
use blockio::simulated::state::SimOptions;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const CREATE: OpenOptions = OpenOptions { create: true, mode: 0o600, ..OpenOptions::EXISTING };

fn session_of(file: &dyn DiskFile, options: Options) -> LogSession {
    let found = FoundLog {
        path: "/app.db-wal".into(),
        file_id: file.identity().unwrap(),
        layout: Layout::Stock,
        file_bytes: 0,
        is_new: true,
        facts: file.facts(),
    };
    LogSession::new(found, options, Arc::default(), Arc::default())
}

fn session_on(free_bytes: u64) -> (SimDisk, LogSession) {
    let disk = SimDisk::from_image(&Image::default(), SimOptions { free_bytes, ..SimOptions::default() });
    let path = PathBuf::from("/app.db-wal");
    let file = disk.open(&path, CREATE).unwrap();
    let session = session_of(&*file, Options::default());
    session.reserve_first(&*file);
    (disk, session)
}

fn log_of(disk: &SimDisk) -> Box<dyn DiskFile> {
    disk.open(Path::new("/app.db-wal"), OpenOptions::EXISTING).unwrap()
}

/// Commits that ask for growth while a log of `frames` fills up, one frame each.
fn orders(disk: &SimDisk, session: &LogSession, frames: u64) -> Vec<u64> {
    let asks = |frame: &u64| {
        let used_bytes = 32 + frame * 4120;
        session.space.note_end(used_bytes);
        session.space.note_used(used_bytes);
        let wants = session.space.wants_growth(used_bytes);
        if wants {
            session.grow(&*log_of(disk), used_bytes);
        }
        wants
    };
    (1..=frames).filter(asks).collect()
}

#[test]
fn a_nearly_full_disk_is_asked_for_room_when_the_log_doubled_or_began_anew() {
    let (disk, session) = session_on((16 << 20) - 1);
    assert_eq!(orders(&disk, &session, 40), [1, 3, 7, 15, 31]);
    // The file has 40 frames now: half of it is enough for half as many.
    assert_eq!(orders(&disk, &session, 40), [20], "after a reset");
    assert_eq!(session.stats.growths.load(Relaxed), 0);
}

#[test]
fn a_growth_that_failed_is_tried_again_when_the_log_doubled() {
    let (full, session) = session_on(0);
    let disk = SimDisk::from_image(&full.image(), SimOptions::default());
    disk.set_capacity(disk.used_bytes());
    let asked = orders(&disk, &session, 20);
    assert!((2..6).contains(&asked.len()), "in vain after {asked:?} frames");
    assert_eq!(session.stats.errors.load(Relaxed), asked.len() as u64, "each failure is told");
    disk.set_capacity(u64::MAX);
    let used_bytes = 32 + 40 * 4120;
    session.space.note_end(used_bytes);
    assert!(session.space.wants_growth(used_bytes));
    session.grow(&*log_of(&disk), used_bytes);
    assert!(session.stats.growths.load(Relaxed) > 0);
}

#[test]
fn a_log_that_was_begun_anew_grows_no_further_past_its_working_size() {
    let grown = |begun_anew: bool| {
        let (disk, session) = session_on(u64::MAX);
        let used_bytes = LOG_BYTES_DEFAULT + (512 << 10);
        session.space.note_end(used_bytes);
        session.space.note_used(used_bytes);
        assert!(session.space.wants_growth(used_bytes));
        if begun_anew {
            session.space.note_used(32 + 4120);
        }
        session.grow(&*log_of(&disk), used_bytes);
        assert!(begun_anew || !session.space.wants_growth(used_bytes), "it has room now");
        session.space.file_bytes() - used_bytes
    };
    assert_eq!((grown(false), grown(true)), (STEP_BYTES, 0));
}

#[test]
fn a_growth_syncs_no_other_generation_than_the_one_it_was_ordered_for() {
    let flushes = |begun_anew: bool| {
        let (disk, session) = session_on(u64::MAX);
        let log = log_of(&disk);
        log.write_at(&[1; 32], 0).unwrap();
        session.durability.note_generation(Some(Salts([if begun_anew { 2 } else { 1 }; 8])));
        let used_bytes = LOG_BYTES_DEFAULT + (512 << 10);
        session.space.note_end(used_bytes);
        session.space.note_used(used_bytes);
        assert!(session.space.wants_growth(used_bytes));
        session.grow(&*log_of(&disk), used_bytes);
        session.stats.growth_flushes.load(Relaxed)
    };
    assert!(flushes(false) > 0);
    assert_eq!(flushes(true), 0);
}

#[test]
fn once_there_is_room_the_log_grows_again() {
    let (full, session) = session_on(0);
    assert_eq!(orders(&full, &session, 3), [1, 3]);
    assert_eq!(session.space.text(), "none: the file system is nearly full");
    let options = SimOptions::default();
    let roomy = SimDisk::from_image(&full.image(), options);
    assert_eq!(orders(&roomy, &session, 100)[0], 2);
    assert!(session.space.file_bytes() > 32 + 100 * 4120, "{} bytes", session.space.file_bytes());
    assert_eq!(session.space.text(), "zeroes", "the status tells what is so now");
}

#[test]
fn the_first_space_is_little_where_zeroes_are_written_and_the_working_size_where_the_device_zeroes() {
    let first = |fill: Fill| {
        let disk = SimDisk::new();
        let file = disk.open(Path::new("/app.db-wal"), CREATE).unwrap();
        let options = Options { fill: FillChoice::Only(fill), ..Options::default() };
        let session = session_of(&*file, options);
        assert!(!session.space.is_settled());
        session.reserve_first(&*file);
        assert!(session.space.is_settled());
        assert_eq!(file.size().unwrap(), session.space.file_bytes());
        session.space.file_bytes()
    };
    let sizes = [Fill::Zeroes, Fill::Unwritten, Fill::WriteZeroes].map(first);
    assert_eq!(sizes, [FIRST_BYTES, FIRST_BYTES, LOG_BYTES_DEFAULT]);
}

#[test]
fn the_logs_name_is_synced_once_or_as_often_as_asked() {
    let (disk, session) = session_on(u64::MAX);
    assert!(!session.is_name_settled());
    let synced = [false, false, true].map(|again| session.sync_name(&disk, again).unwrap());
    assert_eq!(synced, [true, false, true]);
    assert_eq!(session.name(), Name::Synced);
}

#[test]
fn a_log_that_was_cut_to_nothing_has_no_reserve() {
    let (_, session) = session_on(u64::MAX);
    session.space.begin_cycle(FIRST_BYTES);
    assert!(session.space.is_settled());
    session.space.begin_cycle(0);
    assert!(!session.space.is_settled() && session.space.file_bytes() == 0);
}

#[test]
fn a_log_that_is_closed_does_not_grow() {
    let (disk, session) = session_on(u64::MAX);
    let before = session.space.file_bytes();
    assert!(session.space.wants_growth(before));
    session.space.close();
    session.grow(&*log_of(&disk), before);
    assert_eq!(session.space.file_bytes(), before);
}

#[test]
fn growth_is_made_as_was_asked_but_never_by_what_another_process_could_lose() {
    let grown = |fill: Fill| {
        let disk = SimDisk::new();
        let file = disk.open(Path::new("/app.db-wal"), CREATE).unwrap();
        let options = Options { fill: FillChoice::Only(fill), log_bytes: 64 << 10, ..Options::default() };
        let session = session_of(&*file, options);
        session.reserve_first(&*file);
        let used_bytes = session.space.file_bytes();
        assert!(session.space.wants_growth(used_bytes));
        session.grow(&*file, used_bytes);
        assert!(session.space.file_bytes() > used_bytes);
        session.space.text()
    };
    let used = [Fill::Zeroes, Fill::Unwritten, Fill::WriteZeroes].map(grown);
    assert_eq!(used, ["zeroes", "unwritten", "zeroes"]);
}

#[test]
fn a_log_that_was_cut_to_a_size_gets_no_longer_space_and_one_that_was_emptied_does() {
    for (cut_bytes, limit_bytes) in [(FIRST_BYTES / 2, FIRST_BYTES / 2), (0, LOG_BYTES_DEFAULT)] {
        let (disk, session) = session_on(1 << 40);
        let file = disk.open(Path::new("/app.db-wal"), CREATE).unwrap();
        session.space.truncate(cut_bytes, || file.truncate(cut_bytes)).unwrap();
        session.space.reserve_first(&*file).unwrap();
        assert_eq!(file.size().unwrap(), limit_bytes, "cut to {cut_bytes}");
    }
}

#[test]
fn a_direct_write_that_was_refused_is_the_last() {
    let disk = SimDisk::from_image(&Image::default(), SimOptions::default());
    let file = disk.open(&PathBuf::from("/app.db-wal"), CREATE).unwrap();
    let session = session_of(&*file, Options { persist: PersistChoice::Fua, ..Options::default() });
    assert!(session.is_fua());
    assert_eq!(session.recent_bytes_max() as u64, LOG_BYTES_DEFAULT + (256 << 10));
    session.give_up_fua();
    assert!(!session.is_fua());
}

/// A pool's connection commits and closes: those that stay open still get their space.
#[test]
fn a_growth_whose_connection_has_closed_is_ordered_again() {
    let (disk, session) = session_on(u64::MAX);
    let session = Arc::new(session);
    let file: Arc<dyn DiskFile> = Arc::from(log_of(&disk));
    let used_bytes = session.space.file_bytes();
    session.space.note_used(used_bytes);
    let order = || Growth { session: Arc::downgrade(&session), file: Arc::downgrade(&file), used_bytes };
    assert!(session.space.wants_growth(used_bytes) && !session.space.wants_growth(used_bytes), "ordered");
    let closed: Arc<dyn DiskFile> = Arc::from(log_of(&disk));
    let late = Growth { file: Arc::downgrade(&closed), ..order() };
    drop(closed);
    Worker::Inline.grow(late);
    assert!(session.space.wants_growth(used_bytes));
    Worker::Inline.grow(order());
    assert!(session.space.file_bytes() > used_bytes);
}

/// Who unmounts the file system, or forks, right after the last close finds no log open.
#[test]
fn a_delayed_flush_keeps_no_file_open_after_the_last_close() {
    let disk = SimDisk::new();
    let file: Arc<dyn DiskFile> = Arc::from(disk.open(Path::new("/app.db-wal"), CREATE).unwrap());
    let session = Arc::new(session_of(&*file, Options::default()));
    let flusher = Flusher::thread();
    assert!(flusher.flush_within(&session, &file, Duration::from_secs(60)));
    let open = Arc::downgrade(&file);
    drop(file);
    assert!(
        open.upgrade().is_some(),
        "another connection may go on: it is flushed with the file of the one that left"
    );
    drop(session);
    assert!(open.upgrade().is_none());
}
