//! Goal: what each call promises holds when it returns, whatever came before.
//! Method: the calls that SQLite makes of one connection, on a simulated disk, with a wal-index that the test writes itself.

use std::path::Path;
use std::time::Duration;

use blockio::disk::Disk;
use blockio::simulated::log::Op;

use super::*;
use crate::checkpoint::barrier::Outcome;
use crate::database::Helpers;
use crate::ffi::codes::{LockRange, WAL_LOG_READ_LOCKS};
use crate::options::PersistChoice;
use crate::threads::origin::Origin;
use crate::write_lock::queue_state::Turn;

use super::bench::*;

mod failed;
mod new_log;

#[test]
fn a_commit_is_on_the_medium_when_its_sync_returns() {
    let bench = Bench::opened(Options::default());
    bench.take_write_lock();
    bench.connection.log_write(&bench.log[..32], 0).unwrap();
    bench.connection.log_sync().unwrap();
    assert_eq!(bench.flushes(), 0, "the header of a new log waits for its first commit");
    let session = bench.connection.database.session().unwrap();
    for number in 1..=3 {
        bench.commit(number);
        assert!(bench.survive(number) && !bench.survive(number + 1), "commit {number}");
        assert_eq!((bench.flushes(), session.space.is_settled()), (number as u64, number > 1));
    }
}

#[test]
fn a_header_is_durable_before_frames_where_the_log_is_not_new() {
    let header_flushes = |published: bool, made_here: bool| {
        let bench = Bench::new(Options::default());
        if !made_here {
            bench.disk.open(Path::new(LOG), CREATE).unwrap();
        }
        bench.connection.log_open(true, Layout::Stock, false).unwrap();
        if published {
            bench.publish(1);
        }
        bench.take_write_lock();
        bench.connection.log_write(&bench.log[..32], 0).unwrap();
        bench.connection.log_sync().unwrap();
        bench.flushes()
    };
    assert_eq!(header_flushes(false, true), 0);
    assert_eq!(header_flushes(true, true), 1, "others have committed to this log");
    assert_eq!(header_flushes(false, false), 1, "another process made it");
}

#[test]
fn frames_wait_for_the_sync_that_follows_and_where_none_follows_leave_with_the_commit_frame() {
    let bench = Bench::opened(Options::default());
    let connection = &bench.connection;
    for number in 1..=4 {
        bench.take_write_lock();
        bench.write(number);
        assert_eq!(
            connection.is_pending(),
            number > 1,
            "that a sync follows the first one tells: commit {number}"
        );
        if number < 4 {
            bench.sync(number);
        }
    }
    // `synchronous=NORMAL` from here on.
    connection.shm_barrier();
    assert!(!connection.is_pending());
    bench.publish(4);
    connection.before_unlock(WAL_WRITE_LOCK);
    bench.take_write_lock();
    bench.write(5);
    assert!(!connection.is_pending(), "no sync followed the last one");
    assert_eq!(bench.disk.image().files[Path::new(LOG)].bytes()[..bench.frames(5).len()], *bench.frames(5));
    assert!(!bench.survive(5));
}

#[test]
fn a_window_is_for_whoever_holds_the_write_lock() {
    let bench = Bench::opened(delay());
    bench.commit(1);
    let before = bench.flushes();
    bench.commit(2);
    assert_eq!((bench.stats().delayed_commits.load(Relaxed), bench.flushes()), (1, before));
    assert!(!bench.survive(2));
    bench.write(3);
    bench.connection.log_sync().unwrap();
    assert_eq!((bench.stats().delayed_commits.load(Relaxed), bench.flushes()), (1, before + 1));
    assert!(bench.survive(3));
}

#[test]
fn a_commit_that_others_wait_behind_is_durable_when_its_second_phase_ends() {
    let bench = Bench::opened(Options::default());
    bench.commit(1);
    bench.commit(2);
    bench.take_write_lock();
    let queue = &bench.connection.database.queue;
    assert_eq!(queue.ask(OTHER, &Arc::default(), now()), Turn::Wait);
    let before = bench.flushes();
    bench.write(3);
    bench.connection.log_sync().unwrap();
    assert_eq!((bench.stats().shared_commits.load(Relaxed), bench.flushes()), (1, before));
    assert!(!bench.survive(3));
    bench.publish(3);
    bench.connection.before_unlock(WAL_WRITE_LOCK);
    bench.connection.commit_phase_two().unwrap();
    assert_eq!(bench.flushes(), before + 1);
    assert!(bench.survive(3));
}

#[test]
fn while_a_super_journal_exists_each_commit_flushes_for_itself() {
    let bench = Bench::opened(delay());
    bench.commit(1);
    bench.connection.database.helpers.super_journals.created(Path::new("/app.db-mj1"));
    bench.commit(2);
    assert_eq!(bench.stats().delayed_commits.load(Relaxed), 0);
    assert!(bench.survive(2));
}

#[test]
fn a_flush_that_fails_fails_the_commit_and_all_that_follow() {
    let bench = Bench::opened(Options::default());
    bench.commit(1);
    assert_eq!(bench.connection.database.poisoned(), None);
    bench.take_write_lock();
    bench.write(2);
    bench.fail_flushes();
    assert!(matches!(bench.connection.log_sync(), Err(Failure::Sync(_))));
    bench.disk.set_fault(None);
    let frame = bench.frames(1).len();
    let content = bench.disk.image().files[Path::new(LOG)].bytes();
    assert_eq!(content[frame..frame + 24], [0; 24], "the commit that failed cannot come back");
    bench.connection.before_unlock(WAL_WRITE_LOCK);
    let why = bench.connection.database.poisoned();
    assert!(why.as_deref().is_some_and(|why| why.contains(LOG)), "{why:?}");
    assert!(matches!(bench.connection.before_exclusive_lock(WAL_WRITE_LOCK, 1), Err(Failure::Poisoned(_))));
    assert!(bench.connection.log_write(&[0; 24], bench.frames(1).len() as u64).is_err());
    assert!(bench.connection.database.check_poison().is_err());
}

#[test]
fn a_child_of_fork_stands_in_no_line_of_its_parents() {
    let mut bench = Bench::new(Options::default());
    assert_eq!(bench.connection.database.queue.ask(OTHER, &Arc::default(), now()), Turn::Try);
    assert_eq!(bench.connection.ask_to_write(), Turn::Wait);
    Arc::get_mut(&mut bench.connection.database).unwrap().origin = Origin::elsewhere();
    assert_eq!(bench.connection.ask_to_write(), Turn::Try);
}

/// A checkpoint of `count` frames, from its lock on, as SQLite makes it.
fn checkpoint(bench: &Bench, count: u32, syncs: bool) {
    let connection = &bench.connection;
    connection.exclusive_lock_granted(WAL_CKPT_LOCK);
    connection.exclusive_lock_granted(WAL_READ_LOCK_0);
    connection.database.synced.wrote(4096);
    if syncs {
        let written = connection.database.synced.begin();
        connection.database.synced.end(written);
        connection.database_synced();
    }
    bench.copied(count);
    connection.before_read_unlock_of_all(WAL_READ_LOCK_0, 1);
    connection.before_unlock(WAL_CKPT_LOCK);
}

#[test]
fn a_synced_checkpoint_is_known_by_the_state_that_it_copied() {
    let bench = Bench::opened(Options::default());
    let connection = &bench.connection;
    bench.publish(2);
    assert!(!connection.is_copy_synced(), "nobody synced anything here");
    checkpoint(&bench, 2, true);
    assert!(connection.is_copy_synced());
    bench.publish(3);
    assert!(!connection.is_copy_synced(), "frame 3 may be copied by others");
    checkpoint(&bench, 2, true);
    assert!(!connection.is_copy_synced(), "it left frame 3 behind");
    checkpoint(&bench, 3, false);
    assert!(!connection.is_copy_synced(), "synchronous=OFF");
    let written = connection.database.synced.begin();
    connection.database.synced.end(written);
    connection.note_copy_synced();
    assert!(connection.is_copy_synced(), "whoever begins the log anew synced it");
}

#[test]
fn behind_the_locks_of_all_readers_an_empty_log_stands_on_a_synced_database() {
    let bench = Bench::opened(Options::default());
    let connection = &bench.connection;
    let is_known = || connection.database.synced.is_synced_since(Some(SALTS));
    bench.publish(1);
    let LockRange { slot, count } = WAL_LOG_READ_LOCKS;
    connection.before_read_unlock_of_all(slot, count);
    assert!(!is_known(), "the log has frames");
    bench.published_none();
    connection.before_read_unlock_of_all(slot, 1);
    assert!(!is_known(), "a recovery holds one at a time");
    connection.before_read_unlock_of_all(slot, count);
    assert!(is_known() && connection.is_copy_synced());
    connection.database.synced.wrote(4096);
    assert!(!is_known() && !connection.is_copy_synced(), "pages were written since");
}

#[test]
fn only_a_frame_without_a_header_is_a_reserved_page() {
    let bench = Bench::opened(Options::default());
    bench.commit(1);
    bench.connection.database.session().unwrap();
    let is_reserved = |len: usize, offset: usize| bench.connection.is_reserved_page(len, offset as u64);
    let (first, second) = (32 + 24, 32 + FRAME_BYTES + 24);
    assert!(!is_reserved(4096, first), "it has a header");
    assert!(!is_reserved(4096, second), "there the file ends");
    let zeros = vec![0; FRAME_BYTES];
    let file = bench.disk.open(Path::new(LOG), CREATE).unwrap();
    file.write_at(&zeros, 32 + FRAME_BYTES as u64).unwrap();
    assert!(is_reserved(4096, second));
    assert!(!is_reserved(24, second) && !is_reserved(4096, second + 1), "no page, and no page's place");
    assert!(!is_reserved(4096, 0));
}

#[test]
fn without_locks_a_sync_by_sqlite_counts_until_the_next_lock() {
    let bench = Bench::opened(Options::default());
    let connection = &bench.connection;
    bench.publish(1);
    assert!(connection.writes_without_lock());
    connection.database_synced();
    assert!(connection.is_copy_synced());
    connection.database.synced.wrote(4096);
    assert!(!connection.is_copy_synced(), "pages were written since");
    let written = connection.database.synced.begin();
    connection.database.synced.end(written);
    connection.read_lock_granted(READ_LOCK).unwrap();
    assert!(!connection.is_copy_synced(), "others may have been there");
    connection.database_synced();
    bench.take_write_lock();
    assert!(!connection.is_copy_synced() && !connection.writes_without_lock());
}

#[test]
fn whoever_writes_on_an_old_snapshot_gets_the_lock_in_vain() {
    let bench = Bench::opened(Options::default());
    bench.commit(1);
    bench.connection.read_lock_granted(READ_LOCK).unwrap();
    assert_eq!(bench.take_write_lock(), Granted::KeepToWrite);
    bench.connection.before_unlock(WAL_WRITE_LOCK);
    bench.connection.write_released();
    bench.publish(2);
    assert_eq!(bench.take_write_lock(), Granted::KeepInVain);
    bench.connection.before_unlock(WAL_WRITE_LOCK);
    bench.connection.write_released();
    bench.connection.before_read_unlock();
    bench.connection.read_lock_granted(READ_LOCK).unwrap();
    assert_eq!(bench.take_write_lock(), Granted::KeepToWrite);
}

#[test]
fn whoever_asks_while_another_writes_stands_in_line_and_naps_there() {
    let bench = Bench::opened(Options::default());
    let (connection, queue) = (&bench.connection, &bench.connection.database.queue);
    bench.publish(1);
    connection.read_lock_granted(READ_LOCK).unwrap();
    assert_eq!(queue.ask(OTHER, &Arc::default(), now()), Turn::Try);
    queue.granted(OTHER, now());
    let nap = |milliseconds| connection.busy_nap(Duration::from_millis(milliseconds)).is_some();
    assert_eq!(connection.ask_to_write(), Turn::Wait);
    assert!(nap(1));
    assert_eq!(connection.ask_to_write(), Turn::Wait);
    assert!(nap(2), "the second nap follows a refusal of its own");
    assert!(connection.write_refused() && nap(5), "whoever refused");
    assert!(!nap(10), "no refusal came");
    bench.publish(2);
    assert_eq!(connection.ask_to_write(), Turn::Wait, "on an old snapshot, too: the lock is taken");
    queue.released(OTHER);
    assert_eq!(connection.ask_to_write(), Turn::Try, "SQLite gives the lock back at once, and says so");
}

#[test]
fn recovery_writes_the_frames_it_will_find_once_more_behind_a_sync_of_the_database() {
    let recovered = |content: &[u8]| {
        let bench = Bench::new(Options::default());
        bench.disk.open(Path::new(LOG), CREATE).unwrap().write_at(content, 0).unwrap();
        bench.disk.sync_dir_of(Path::new(LOG)).unwrap();
        bench.connection.log_open(false, Layout::Stock, false).unwrap();
        let (from, mut database_synced_at) = (bench.disk.record_count(), None);
        let database_first = || {
            database_synced_at = Some(bench.disk.record_count());
            Ok(())
        };
        bench.connection.before_recovery(WAL_RECOVER_LOCK, 1, database_first).unwrap();
        let writes = |op: &Op| matches!(op, Op::Write { .. });
        let records = bench.disk.records();
        let first = records[from..].iter().position(|record| writes(&record.op)).map(|at| at + from);
        (first, database_synced_at, bench.flushes(), bench.survive(2))
    };
    let bench = Bench::new(Options::default());
    let (first, database_synced_at, flushes, survive) = recovered(bench.frames(2));
    assert!(first.is_some() && first >= database_synced_at && database_synced_at.is_some());
    assert!(survive && flushes == 1);
    let (first, database_synced_at, flushes, _) = recovered(&[0; 100]);
    assert_eq!((first, database_synced_at, flushes), (None, None, 0), "nothing to recover");
}

#[test]
fn only_pragmas_of_ours_are_answered() {
    let bench = Bench::opened(Options::default());
    let pragma = |name, value| bench.connection.pragma(name, value, || Ok(()));
    assert_eq!(pragma("cache_size", None), None);
    assert_eq!(pragma("WALDIO_STRICT", None), Some(Ok("0".to_owned())));
    assert_eq!(pragma("waldio_durable_reads", Some("on")), Some(Ok("1".to_owned())));
    assert!(bench.connection.reads_durably());
    let refused = [("waldio_strict", Some("on")), ("waldio_nothing", None)];
    assert!(
        refused.map(|(name, value)| pragma(name, value)).iter().all(|answer| matches!(answer, Some(Err(_))))
    );
}

#[test]
fn waldio_flush_tells_what_there_was_to_do() {
    let flushed = |bench: &Bench| bench.connection.pragma("waldio_flush", None, || Ok(()));
    let bench = Bench::new(delay());
    assert_eq!(flushed(&bench), Some(Ok("no log".to_owned())));
    bench.connection.log_open(true, Layout::Stock, false).unwrap();
    bench.commit(1);
    bench.commit(2);
    assert!(!bench.survive(2));
    assert_eq!(flushed(&bench), Some(Ok("durable".to_owned())));
    assert!(bench.survive(2));
    bench.commit(3);
    bench.fail_flushes();
    assert!(matches!(flushed(&bench), Some(Err(_))));
}

#[test]
fn what_a_connection_asked_for_in_vain_is_told() {
    let bench = Bench::opened(Options::default());
    let database = Arc::clone(&bench.connection.database);
    assert_eq!(bench.connection.not_had(), None);
    let asked = Options { log_bytes: 1 << 20, ..Options::default() };
    let second = Connection::new(Arc::clone(&database), asked);
    second.log_open(true, Layout::Stock, false).unwrap();
    assert!(second.not_had().is_some_and(|what| what.contains("waldio_log_bytes")));
    second.log_close();
    assert_eq!((second.not_had(), bench.connection.not_had()), (None, None), "it does not ask any more");
    assert_eq!(database.longest_private_path(), Path::new("/app.db-waldio-shm"));
}

#[test]
fn a_log_that_cannot_be_opened_is_not_taken_for_none() {
    let folder = std::env::temp_dir().join(format!("waldio-unopened-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("app.db-wal")).unwrap();
    let helpers = Helpers::inline();
    let (path, disk) = (folder.join("app.db"), Arc::new(blockio::real::disk::RealDisk));
    let database = Database::new(path, None, "unix".to_owned(), disk, helpers, Options::default());
    let flushed = database.flush_now();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(flushed.is_err(), "a directory stands in its place");
    assert!(!database.flush_now().unwrap(), "nothing does");
}

#[test]
fn in_fua_mode_a_whole_commit_behind_a_known_prefix_is_one_direct_write() {
    let bench = Bench::opened(Options { persist: PersistChoice::Fua, ..Options::default() });
    let direct = || bench.stats().durable_writes.load(Relaxed);
    bench.commit(1);
    assert_eq!(direct(), 0, "never the log's header");
    for number in 2..=4 {
        bench.commit(number);
        assert!(bench.survive(number));
    }
    assert_eq!((direct(), bench.flushes()), (3, 4));
    let mut page = vec![0; 4096];
    let end = bench.frames(4).len();
    let read = bench.connection.log_read(&mut page, end as u64 - 4096, || Ok(()));
    assert_eq!((read.unwrap(), &page[..]), (4096, &bench.log[end - 4096..end]));
}

fn durable_reads() -> Options {
    Options { durable_reads: true, ..delay() }
}

#[test]
fn a_durable_reader_flushes_what_it_sees_with_its_first_page_or_never() {
    let read = |options: Options, slot: i32| {
        let bench = Bench::opened(delay());
        bench.commit(1);
        bench.commit(2);
        let (reader, before) = (bench.another(options), bench.flushes());
        reader.read_lock_granted(slot).unwrap();
        assert_eq!(bench.flushes(), before, "a lock alone shows nothing");
        reader.before_page().unwrap();
        let flushed = bench.flushes() - before;
        reader.before_page().unwrap();
        reader.before_read_unlock();
        (flushed, bench.flushes() - before, bench.survive(2))
    };
    assert!(!Bench::new(delay()).connection.reads_durably());
    assert_eq!(read(delay(), READ_LOCK), (0, 0, false));
    assert_eq!(read(durable_reads(), READ_LOCK), (1, 1, true));
    assert_eq!(read(durable_reads(), WAL_READ_LOCK_0), (0, 0, false), "a reader of the database alone");
}

#[test]
fn a_durable_reader_finds_what_is_durable_already() {
    let bench = Bench::opened(Options::default());
    bench.commit(1);
    bench.commit(2);
    let (reader, before) = (bench.another(durable_reads()), bench.flushes());
    reader.read_lock_granted(READ_LOCK).unwrap();
    reader.before_page().unwrap();
    assert_eq!(bench.flushes(), before);
}

#[test]
fn the_barrier_stays_open_for_a_log_of_which_nothing_was_copied() {
    let bench = Bench::opened(Options::default());
    bench.commit(1);
    assert_eq!(bench.connection.close_barrier(|_| true), Way::Beside);
    assert!(!bench.connection.database.barrier.is_closed() && !bench.connection.pass_barrier());
}

/// The log is of a length at which the barrier is due, with 400 frames left to copy: 1.6 MB.
#[test]
fn the_barrier_closes_on_little_where_commits_wait_for_no_flush_and_the_log_is_not_long() {
    let way = |options: Options, is_newest_unsynced: bool, frames: u32| {
        let bench = Bench::opened(options);
        bench.publish(6);
        for copy in [0, 12] {
            bench.region[copy + 4].store(frames, Relaxed);
        }
        bench.copied(frames - 400);
        bench.stats().is_newest_unsynced.store(is_newest_unsynced, Relaxed);
        bench.connection.close_barrier(|_| true)
    };
    assert_eq!(way(Options::default(), false, 1500), Way::Closed, "each commit waits for a flush");
    assert_eq!(way(Options::default(), true, 1500), Way::Beside, "synchronous=NORMAL");
    assert_eq!(way(delay(), false, 1500), Way::Beside, "waldio_group");
    assert_eq!(way(Options::default(), true, 5000), Way::Closed, "more than four times the working size");
}

#[test]
fn what_is_told_of_a_connection_is_kept() {
    let bench = Bench::new(Options::default());
    let (connection, database) = (&bench.connection, &bench.connection.database);
    connection.set_main_file(4096);
    assert_eq!((connection.main_file(), connection.reads_only()), (4096, false));
    connection.note_reads_only();
    assert!(connection.reads_only());
    assert_eq!((database.passed_through(), database.stays_stock()), (None, None));
    database.pass_through("why");
    database.stay_stock("because");
    assert_eq!(database.passed_through().as_deref(), Some("why"));
    assert_eq!(database.stays_stock().as_deref(), Some("because"));
}

#[test]
fn who_wants_to_read_while_the_barrier_is_closed_waits_and_looks_again() {
    let bench = Bench::opened(Options::default());
    let barrier = &bench.connection.database.barrier;
    // A thread that comes too late finds it open.
    let waited = (0..20).any(|_| {
        assert!(barrier.close(now(), |_| true));
        std::thread::scope(|scope| {
            let passing = scope.spawn(|| bench.connection.pass_barrier());
            std::thread::sleep(Duration::from_millis(5));
            barrier.open(now(), Outcome::Succeeded);
            passing.join().unwrap()
        })
    });
    assert!(waited);
    assert!(barrier.close(now(), |_| true));
    bench.take_write_lock();
    assert!(!bench.connection.pass_barrier(), "a writer in the middle of its transaction goes on");
    barrier.open(now(), Outcome::Succeeded);
}
