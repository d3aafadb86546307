//! A log that is begun anew.

use std::path::Path;

use blockio::disk::{Disk, OpenOptions};

use super::*;
use crate::log::frame::Salts;

/// Between the new header and the first commit behind it a flush without a lock may come, for commits in front of it.
#[test]
fn a_log_that_this_process_began_anew_behind_a_synced_database_is_known_as_such_from_its_header_on() {
    let is_foreign = |synced: bool| {
        let bench = Bench::opened(delay());
        bench.commit(1);
        bench.commit(2);
        let mut header = bench.log[..32].to_vec();
        header[16..24].fill(9);
        if synced {
            *bench.connection.database.synced.since() = Some(Salts([9; 8]));
        }
        bench.published_none();
        bench.take_write_lock();
        bench.connection.log_write(&header, 0).unwrap();
        bench.connection.log_sync().unwrap();
        let file = bench.disk.open(Path::new(LOG), OpenOptions::EXISTING).unwrap();
        bench.connection.database.session().unwrap().durability.was_begun_anew(&*file)
    };
    assert!(!is_foreign(true), "a flush of the log is enough");
    assert!(is_foreign(false), "another process may have copied frames, and synced nothing");
}

#[test]
fn a_log_that_this_process_emptied_is_known_as_such() {
    let is_foreign = |cuts: &dyn Fn(&Bench)| {
        let bench = Bench::opened(delay());
        bench.commit(1);
        bench.commit(2);
        bench.take_write_lock();
        cuts(&bench);
        let file = bench.disk.open(Path::new(LOG), OpenOptions::EXISTING).unwrap();
        bench.connection.database.session().unwrap().durability.was_begun_anew(&*file)
    };
    assert!(!is_foreign(&|bench| bench.connection.log_truncate(0).unwrap()), "a flush of the log is enough");
    let by_another = |bench: &Bench| {
        bench.disk.open(Path::new(LOG), OpenOptions::EXISTING).unwrap().truncate(0).unwrap();
    };
    assert!(is_foreign(&by_another), "another process may have synced nothing");
}
