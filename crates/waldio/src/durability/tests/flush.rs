//! Goal: what fails takes the log out of use where it must, and its frames are written again.
//! Method: one operation at a time fails on a simulated disk.

use blockio::disk::{Disk, OpenOptions};
use blockio::simulated::disk::SimDisk;
use blockio::simulated::fault::{Counted, Fault, FaultKind, Kept};
use blockio::simulated::image::Image;
use blockio::simulated::log::{Op, Record};
use blockio::simulated::state::SimOptions;
use std::path::Path;

use super::*;
use crate::log::recovery::synthetic_log;

fn file(options: SimOptions) -> (SimDisk, Box<dyn DiskFile>) {
    let disk = SimDisk::from_image(&Image::default(), options);
    let create = OpenOptions { create: true, ..OpenOptions::EXISTING };
    let file = disk.open(Path::new("/app.db-wal"), create).unwrap();
    (disk, file)
}

fn durability() -> Durability {
    Durability::new("/app.db-wal".into(), false, Arc::default(), Poison::default())
}

#[test]
fn a_direct_write_that_the_file_does_not_take_changes_nothing() {
    let (_, file) = file(SimOptions { direct_align_bytes: 0, ..SimOptions::default() });
    let durability = durability();
    assert!(!durability.write_durable(&*file, &[1; 4096], 0).unwrap());
    assert!(durability.check().is_ok() && file.size().unwrap() == 0);
}

#[test]
fn a_direct_write_that_is_refused_harms_itself_alone_and_one_that_fails_poisons() {
    let blocks = blockio::aligned::AlignedBuffer::zeroed(4096);
    for (kind, poisons) in [(FaultKind::Full, false), (FaultKind::TooLarge, false), (FaultKind::Io, true)] {
        let (disk, file) = file(SimOptions::default());
        let durability = durability();
        let fault = Fault { counted: Counted::Changes, number: 1, kind, kept: Kept::Nothing, lasting: true };
        disk.set_fault(Some(fault));
        assert!(durability.write_durable(&*file, blocks.bytes(), 0).is_err());
        assert_eq!(durability.check().is_err(), poisons, "{kind:?}");
    }
}

/// What reached the file since the first failure, in order: `w`rites of a whole log, `s`yncs, `f`ailed syncs.
fn since_the_failure(disk: &SimDisk, log: &[u8]) -> String {
    let records = disk.records();
    let failed = records.iter().position(|record| record.failed).unwrap();
    let letter = |record: &Record| match &record.op {
        Op::Write { data, .. } if data.len() == log.len() => Some('w'),
        Op::SyncData { .. } => Some(if record.failed { 'f' } else { 's' }),
        _ => None,
    };
    records[failed..].iter().filter_map(letter).collect()
}

/// Another process may have built on them meanwhile, and had its own sync before they were written again: they need one of their own.
#[test]
fn whatever_sync_fails_the_frames_are_written_again_and_synced() {
    let log = synthetic_log(4096, Salts([7; 8]), &[&[1], &[2]]);
    for what in ["commit", "growth", "flush", "taken back"] {
        let (disk, file) = file(SimOptions::default());
        let durability = durability();
        file.write_at(&log, 0).unwrap();
        disk.fail_flush(Some(0), Kept::Nothing);
        match what {
            "commit" => assert!(durability.flush(&*file, None).is_err()),
            "growth" => assert_eq!(durability.grow(&*file, || Ok(())).unwrap(), Grown::NotSynced),
            "flush" => assert!(durability.flush_unlocked(&*file, true).is_err()),
            _ => durability.sync_taken_back(&*file),
        }
        assert!(durability.check().is_err() && durability.take_owed_rewrite(), "{what}");
        durability.write_again(&*file, None, Writers::Others);
        assert!(durability.check().is_err() && !durability.take_owed_rewrite(), "{what}");
        assert_eq!(since_the_failure(&disk, &log), "fws", "{what}");
    }
}

/// Else a commit that waits for its turn writes the next piece, too.
#[test]
fn a_piece_of_space_is_made_and_synced_in_one_turn() {
    let (disk, file) = file(SimOptions::default());
    let durability = Arc::new(durability());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let look = {
        let (durability, seen) = (Arc::clone(&durability), Arc::clone(&seen));
        move || seen.lock().unwrap().push(durability.turn.is_taken())
    };
    disk.set_sync_hook(Some(Arc::new(look.clone())));
    let extend = || {
        look();
        Ok(())
    };
    assert!(matches!(durability.grow(&*file, extend).unwrap(), Grown::Synced(_)));
    assert_eq!((&*seen.lock().unwrap(), durability.turn.is_taken()), (&vec![true, true], false));
    let refused = durability.grow(&*file, || Err(io::ErrorKind::StorageFull.into()));
    assert!(refused.is_err() && !durability.turn.is_taken() && durability.check().is_ok());
}

#[test]
fn what_another_thread_meets_while_frames_are_written_again_is_owed() {
    let (disk, file) = file(SimOptions::default());
    let durability = Arc::new(durability());
    file.write_at(&synthetic_log(4096, Salts([7; 8]), &[&[1]]), 0).unwrap();
    disk.fail_flush(Some(0), Kept::Nothing);
    assert!(durability.flush(&*file, None).is_err());
    let other = Arc::clone(&durability);
    let meets = move || drop(other.poison("sync of a growth", io::Error::from_raw_os_error(5)));
    disk.set_sync_hook(Some(Arc::new(meets)));
    durability.write_again(&*file, None, Writers::Others);
    disk.set_sync_hook(None);
    assert!(durability.take_owed_rewrite());
}

#[test]
fn frames_whose_second_sync_fails_are_written_for_the_next_one() {
    let log = synthetic_log(4096, Salts([7; 8]), &[&[1], &[2]]);
    let (disk, file) = file(SimOptions::default());
    let durability = durability();
    file.write_at(&log, 0).unwrap();
    let number = disk.count(Counted::Flushes);
    let fault =
        Fault { counted: Counted::Flushes, number, kind: FaultKind::Io, kept: Kept::Nothing, lasting: true };
    disk.set_fault(Some(fault));
    assert!(durability.flush(&*file, None).is_err());
    durability.write_again(&*file, None, Writers::Others);
    assert!(durability.check().is_err() && !durability.take_owed_rewrite());
    assert_eq!(since_the_failure(&disk, &log), "fwfw");
}

#[test]
fn a_recovery_whose_flush_fails_has_written_the_frames_again() {
    let (disk, file) = file(SimOptions::default());
    let durability = durability();
    let log = synthetic_log(4096, Salts([7; 8]), &[&[1], &[2]]);
    file.write_at(&log, 0).unwrap();
    disk.fail_flush(Some(0), Kept::Nothing);
    durability.make_certain(&*file, || Ok(()));
    assert!(durability.check().is_err() && !durability.take_owed_rewrite());
    assert_eq!(since_the_failure(&disk, &log), "fws");
}

#[test]
fn a_log_that_cannot_be_read_is_uncertain_until_it_can() {
    let (disk, file) = file(SimOptions::default());
    let durability = durability();
    file.write_at(&[7; 64], 0).unwrap();
    let fault = Fault {
        counted: Counted::Reads,
        number: disk.count(Counted::Reads),
        kind: FaultKind::Io,
        kept: Kept::Nothing,
        lasting: true,
    };
    disk.set_fault(Some(fault));
    durability.make_certain(&*file, || Ok(()));
    assert!(durability.is_uncertain());
    disk.set_fault(None);
    durability.make_certain(&*file, || Ok(()));
    assert!(!durability.is_uncertain());
}
