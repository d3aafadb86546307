//! Goal: a commit that failed after it was published is taken back, and no other is.
//! Method: as the tests beside it; the log in every state that a power cut can leave afterwards.

use std::collections::BTreeSet;

use blockio::disk::OpenOptions;
use blockio::simulated::fault::{Counted, Fault, FaultKind, Kept};

use super::*;

/// Two commits, and a third that is published and whose shared flush fails.
fn failed_when_published() -> Bench {
    let bench = Bench::opened(Options::default());
    (1..=2).for_each(|number| bench.commit(number));
    bench.take_write_lock();
    bench.connection.database.queue.ask(OTHER, &Arc::default(), now());
    bench.write(3);
    bench.connection.log_sync().unwrap();
    bench.publish(3);
    bench.connection.before_unlock(WAL_WRITE_LOCK);
    bench.fail_flushes();
    assert!(bench.connection.commit_phase_two().is_err());
    bench.disk.set_fault(None);
    bench
}

/// Which of the first frames have a header, in every state that a power cut can leave now.
fn headers(bench: &Bench, count: usize) -> BTreeSet<Vec<bool>> {
    let has_header = |log: &[u8], frame: usize| {
        let at = bench.frames(frame).len();
        log.get(at..at + 24).is_some_and(|header| header != [0; 24])
    };
    let of = |log: &[u8]| (0..count).map(|frame| has_header(log, frame)).collect();
    bench.states().iter().map(|image| of(&image.files[Path::new(LOG)].bytes())).collect()
}

/// Takes back what may be, where there is anything.
fn take_back(bench: &Bench) {
    if let Some(failed) = bench.connection.first_failed() {
        assert!(bench.connection.take_back(failed));
        bench.connection.sync_taken_back();
    }
}

#[test]
fn what_failed_is_taken_back_and_that_is_durable() {
    let bench = failed_when_published();
    assert!(bench.connection.has_failed_commit());
    assert!(bench.connection.take_commit_failed() && !bench.connection.take_commit_failed());
    assert!(headers(&bench, 3).contains(&vec![true; 3]));
    take_back(&bench);
    assert_eq!(headers(&bench, 3), BTreeSet::from([vec![true, true, false]]));
}

#[test]
fn a_commit_stays_where_the_write_that_takes_it_back_fails() {
    let bench = failed_when_published();
    let failed = bench.connection.first_failed().unwrap();
    let fault = Fault {
        counted: Counted::Changes,
        number: bench.disk.count(Counted::Changes),
        kind: FaultKind::Io,
        kept: Kept::Nothing,
        lasting: false,
    };
    bench.disk.set_fault(Some(fault));
    assert!(!bench.connection.take_back(failed));
    assert!(bench.connection.take_back(failed));
}

#[test]
fn nothing_is_taken_back_that_others_built_on() {
    let bench = failed_when_published();
    let log = bench.disk.open(Path::new(LOG), OpenOptions::EXISTING).unwrap();
    let [third, fourth] = [3, 4].map(|count| bench.frames(count).len());
    log.write_at(&bench.log[third..fourth], third as u64).unwrap();
    bench.publish(4);
    assert!(!bench.connection.has_failed_commit());
    take_back(&bench);
    assert!(headers(&bench, 4).contains(&vec![true; 4]), "another process's commit stands behind it");
}

#[test]
fn nothing_is_taken_back_from_a_log_that_the_wal_index_does_not_name() {
    let bench = failed_when_published();
    // SQLite begins the log anew: the new generation has no frame yet, and the file has the old one.
    bench.published_none();
    for copy in [0, 12] {
        bench.region[copy + 8].fetch_add(1, Relaxed);
    }
    take_back(&bench);
    assert!(headers(&bench, 3).contains(&vec![true; 3]));
}

#[test]
fn nothing_is_taken_back_that_a_checkpoint_may_have_copied_in_part() {
    for (copied, begun) in [(3, 3), (2, 3), (3, 2)] {
        let bench = failed_when_published();
        bench.region[24].store(copied, Relaxed);
        bench.region[32].store(begun, Relaxed);
        take_back(&bench);
        assert!(headers(&bench, 3).contains(&vec![true; 3]), "{copied} copied, {begun} begun");
        bench.region[24].store(2, Relaxed);
        bench.region[32].store(2, Relaxed);
        take_back(&bench);
        assert_eq!(headers(&bench, 3), BTreeSet::from([vec![true, true, false]]));
    }
}

#[test]
fn a_checkpoint_whose_sync_fails_has_announced_nothing() {
    let bench = Bench::opened(Options::default());
    (1..=2).for_each(|number| bench.commit(number));
    let attempted = || bench.region[32].load(Relaxed);
    bench.region[32].store(1, Relaxed);
    bench.connection.exclusive_lock_granted(WAL_CKPT_LOCK);
    bench.region[32].store(2, Relaxed);
    bench.write(3);
    bench.fail_flushes();
    assert!(bench.connection.log_sync().is_err());
    assert_eq!(attempted(), 1, "what earlier ones copied may be there");
    // Without the lock it is another one's.
    bench.connection.before_unlock(WAL_CKPT_LOCK);
    bench.region[32].store(2, Relaxed);
    assert!(bench.connection.log_sync().is_err());
    assert_eq!(attempted(), 2);
}

/// With `synchronous=OFF` it is waldio that syncs the log for a checkpoint, and the same failure is to be told to other processes: the
/// frames are written again at once.
#[test]
fn a_checkpoint_whose_own_flush_fails_has_written_the_frames_again() {
    let bench = Bench::opened(Options::default());
    (1..=2).for_each(|number| bench.commit(number));
    bench.connection.exclusive_lock_granted(WAL_CKPT_LOCK);
    bench.write(3);
    bench.fail_flushes();
    assert!(bench.connection.before_checkpoint().is_err());
    let session = bench.connection.database.session().unwrap();
    assert!(session.durability.check().is_err() && !session.durability.take_owed_rewrite());
}

#[test]
fn after_an_attempt_in_vain_readers_are_left_in_peace() {
    let bench = failed_when_published();
    assert!(bench.connection.may_keep_readers_out() && bench.connection.is_last());
    bench.connection.rest(std::time::Duration::from_secs(600));
    assert!(!bench.connection.may_keep_readers_out());
    bench.connection.rest(std::time::Duration::ZERO);
    assert!(bench.connection.may_keep_readers_out());
    bench.connection.database.session().unwrap().handles.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    assert!(!bench.connection.is_last());
}
