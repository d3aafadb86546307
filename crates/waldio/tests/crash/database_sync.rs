//! Goal: where a sync of the database fails behind frames that were copied in front of it, the log stays as it is.
//! Method: each flush of one statement fails in turn; the next COMMIT must fail, too. What such a failure takes at a power cut:
//! `crash/faults`.

use crate::support::machine::{Machine, Side};
use crate::support::workload::base_image;
use blockio::simulated::fault::{Counted, Kept};

/// Two rows, the first of which was copied alone, because of a reader; then a checkpoint whose flush number `failing` fails. How many it asks
/// for, and whether the next COMMIT succeeds.
fn commit_behind_a_checkpoint_in_two_parts(failing: Option<u64>) -> (u64, bool) {
    let machine = Machine::new(Side::Flush);
    machine.boot(&base_image(&machine, 4096));
    let [writer, reader] = [(), ()].map(|()| machine.open().expect("a sound database"));
    let begin = "PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=FULL; CREATE TABLE paid(sum)";
    writer.exec(&format!("{begin}; INSERT INTO paid VALUES (1)")).expect("no fault yet");
    reader.exec("BEGIN; SELECT count(*) FROM paid").expect("no fault yet");
    writer.exec("INSERT INTO paid VALUES (2); PRAGMA wal_checkpoint(PASSIVE)").expect("no fault yet");
    reader.exec("COMMIT").expect("it only read");
    let before = machine.disk.fail_flush(failing, Kept::Nothing);
    let copied = writer.exec("PRAGMA wal_checkpoint(PASSIVE)");
    assert_eq!(copied.is_ok(), failing.is_none(), "{failing:?}: {copied:?}");
    let flushes = machine.disk.count(Counted::Flushes) - before;
    (flushes, writer.exec("INSERT INTO paid VALUES (3)").is_ok())
}

/// What the first part copied is lost with the sync that failed, and the log has it.
#[test]
fn a_failed_sync_behind_a_checkpoint_in_two_parts_takes_the_log_out_of_use() {
    let (flushes, succeeds) = commit_behind_a_checkpoint_in_two_parts(None);
    assert!(succeeds && flushes > 0, "{flushes} flushes");
    for number in 0..flushes {
        assert!(!commit_behind_a_checkpoint_in_two_parts(Some(number)).1, "flush {number} of {flushes}");
    }
}

/// Who copies the rows before the log is begun anew.
#[derive(Debug, Clone, Copy)]
enum Copier {
    Itself,
    Second,
    Foreign,
}

/// A connection in exclusive mode begins the log anew, and flush number `failing` of that fails. How many it asks for, and whether the
/// next COMMIT succeeds.
fn commit_behind_a_failed_restart(copier: Copier, failing: Option<u64>) -> (u64, bool) {
    let machine = Machine::new(Side::Flush);
    machine.boot(&base_image(&machine, 4096));
    let writer = machine.open().expect("a sound database");
    let begin = "PRAGMA wal_autocheckpoint=0; PRAGMA synchronous=FULL; CREATE TABLE paid(sum)";
    writer.exec(&format!("{begin}; INSERT INTO paid VALUES (1)")).expect("no fault yet");
    let copy = "PRAGMA synchronous=OFF; SELECT count(*) FROM paid; PRAGMA wal_checkpoint(PASSIVE)";
    match copier {
        Copier::Itself => writer.exec(&format!("{copy}; PRAGMA synchronous=FULL")),
        Copier::Second => machine.open().expect("a sound database").exec(copy),
        Copier::Foreign => machine.open_foreign().expect("a sound database").exec(copy),
    }
    .expect("no fault yet");
    writer.exec("PRAGMA locking_mode=EXCLUSIVE; SELECT count(*) FROM paid").expect("no fault yet");
    let before = machine.disk.fail_flush(failing, Kept::Nothing);
    let inserted = writer.exec("INSERT INTO paid VALUES (2)");
    assert_eq!(inserted.is_ok(), failing.is_none(), "{copier:?}, {failing:?}: {inserted:?}");
    let flushes = machine.disk.count(Counted::Flushes) - before;
    (flushes, writer.exec("INSERT INTO paid VALUES (3)").is_ok())
}

#[test]
fn a_failed_sync_in_front_of_a_new_log_takes_it_out_of_use_in_exclusive_mode() {
    for copier in [Copier::Itself, Copier::Second, Copier::Foreign] {
        let (flushes, succeeds) = commit_behind_a_failed_restart(copier, None);
        assert!(succeeds && flushes > 1, "{copier:?}: {flushes} flushes");
        for number in 0..flushes {
            let (_, succeeds) = commit_behind_a_failed_restart(copier, Some(number));
            assert!(!succeeds, "{copier:?}: flush {number} of {flushes}");
        }
    }
}
