//! Goal: space reserved in the background never touches a frame that another process writes meanwhile, and a failed sync of it
//! lets no commit beside it succeed.
//! Method: waldio's growth runs on its own thread and is held just before its bytes change; a connection that does
//! not know waldio commits past the end of the file that waldio knew; growth goes on; the log is read from scratch.
//! Or its sync fails and is held before it returns, while a commit on the same file is synced.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::support::history::{put_sql, read_rows};
use crate::support::hooked_disk::{Call, HookedDisk};
use crate::support::machine::{Machine, Side};
use crate::support::sqlite::{Connection, SqlError};
use crate::support::workload::base_image;
use blockio::disk::Disk;
use blockio::simulated::fault::Kept;

/// Zeros from here on up are reserve, not frames, in bytes.
const RESERVE_BYTES_MIN: usize = 32 << 10;
/// Longer than any scheduler's whim.
const PATIENCE: Duration = Duration::from_secs(20);

/// A barrier in front of everything that reserves space, open unless `armed`.
#[derive(Debug)]
struct Barrier {
    armed: Mutex<bool>,
    arrived: Mutex<Sender<()>>,
    go_on: Mutex<Receiver<()>>,
}

impl Barrier {
    /// One that is open; who arrives at it is heard of, and goes on when told.
    fn open() -> (Arc<Barrier>, Receiver<()>, Sender<()>) {
        let ((arrived, arrivals), (go, go_on)) = (channel(), channel());
        let (arrived, go_on) = (Mutex::new(arrived), Mutex::new(go_on));
        (Arc::new(Barrier { armed: Mutex::new(false), arrived, go_on }), arrivals, go)
    }

    fn pass(&self) {
        if std::mem::take(&mut *lock(&self.armed)) {
            lock(&self.arrived).send(()).expect("the test waits");
            lock(&self.go_on).recv_timeout(PATIENCE).expect("the test goes on");
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn commit(connection: &Connection, ids: std::ops::RangeInclusive<i64>, txn: i64) {
    let puts: String = ids.map(|id| put_sql(id, txn, 4096)).collect();
    connection.exec(&format!("BEGIN IMMEDIATE; {puts} COMMIT;")).expect("nothing fails here");
}

/// The rows of the second transaction, which another process committed while waldio's growth was under way.
fn rows_after_race() -> Result<(), String> {
    let (barrier, arrivals, go) = Barrier::open();
    let wrap = |disk: &blockio::simulated::disk::SimDisk| {
        let barrier = Arc::clone(&barrier);
        let hook = move |call: Call<'_>| match call {
            Call::Write(data) if data.len() < RESERVE_BYTES_MIN => {}
            Call::Write(data) if data.iter().any(|byte| *byte != 0) => {}
            Call::Write(_) | Call::Extend => barrier.pass(),
            Call::Synced => {}
        };
        Arc::new(HookedDisk { disk: Arc::new(disk.clone()), hook: Arc::new(hook) }) as Arc<dyn Disk>
    };
    let machine = Machine::with_log_disk(Side::Flush, wrap, false);
    let plain = Machine::new(Side::Stock);
    machine.boot(&base_image(&plain, 4096));
    let ours = machine.open().map_err(|error| error.to_string())?;
    ours.exec("PRAGMA wal_autocheckpoint=0").map_err(|error| error.to_string())?;
    commit(&ours, 1..=1, 1);
    // The second commit reserves the first space, under the write lock.
    commit(&ours, 1..=1, 4);
    let foreign = machine.open_foreign().map_err(|error| error.to_string())?;
    foreign.exec("PRAGMA wal_autocheckpoint=0").map_err(|error| error.to_string())?;
    *lock(&barrier.armed) = true;
    // Past half of the first 64 KiB: growth is asked for.
    commit(&ours, 1..=12, 2);
    arrivals.recv_timeout(PATIENCE).map_err(|_| "growth was never asked for".to_owned())?;
    // Past the end of the file that growth knows.
    commit(&foreign, 1..=40, 3);
    go.send(()).expect("growth waits");
    // The image after a kill of every process: the log is read from scratch.
    drop(ours);
    let image = machine.disk.image();
    drop(foreign);
    plain.boot(&image);
    let recovered = plain.open().map_err(|error| error.to_string())?;
    let rows = read_rows(&recovered, 4096)?;
    let wanted = (1..=40).map(|id| (id, 3)).collect();
    if rows == wanted { Ok(()) } else { Err(format!("the other process's commit is gone: {rows:?}")) }
}

#[test]
fn growth_leaves_frames_of_other_processes_alone() {
    let _alone = crate::one_at_a_time();
    rows_after_race().expect("the other process's commit is there");
}

/// How long a sync beside another one would take, many times over.
const A_SYNC: Duration = Duration::from_millis(300);

/// What a COMMIT says whose frames are written, and synced, while the growth's sync of the same file has failed and has not returned.
fn commit_beside_a_failed_growth() -> Result<(), SqlError> {
    let (barrier, arrivals, go) = Barrier::open();
    let at_sync = Arc::clone(&barrier);
    let wrap = |disk: &blockio::simulated::disk::SimDisk| {
        let simulated = disk.clone();
        let hook = move |call: Call<'_>| {
            if std::thread::current().name() != Some("waldio-grow") {
                return;
            }
            match call {
                Call::Synced => barrier.pass(),
                // The next flush is that of these bytes.
                Call::Write(_) | Call::Extend if *lock(&barrier.armed) => {
                    simulated.fail_flush(Some(0), Kept::Nothing);
                }
                Call::Write(_) | Call::Extend => {}
            }
        };
        Arc::new(HookedDisk { disk: Arc::new(disk.clone()), hook: Arc::new(hook) }) as Arc<dyn Disk>
    };
    let machine = Machine::with_log_disk(Side::Flush, wrap, false);
    machine.boot(&base_image(&Machine::new(Side::Stock), 4096));
    let ours = machine.open().expect("a sound database");
    ours.exec("PRAGMA wal_autocheckpoint=0").expect("no fault yet");
    commit(&ours, 1..=1, 1);
    // The first space, under the write lock.
    commit(&ours, 1..=1, 4);
    *lock(&at_sync.armed) = true;
    // Past half of it: growth is asked for, behind this commit's own sync.
    commit(&ours, 1..=12, 2);
    arrivals.recv_timeout(PATIENCE).expect("growth syncs what it wrote");
    let releasing = std::thread::spawn(move || {
        std::thread::sleep(A_SYNC);
        go.send(()).expect("growth waits");
    });
    let outcome = ours.exec(&format!("BEGIN IMMEDIATE; {} COMMIT", put_sql(1, 5, 4096)));
    releasing.join().expect("it only waits");
    outcome
}

#[test]
fn no_commit_succeeds_beside_a_sync_of_a_growth_that_failed() {
    let _alone = crate::one_at_a_time();
    commit_beside_a_failed_growth().expect_err("the kernel told the growth's sync alone");
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bug_is_caught_syncs_overlap() {
    let _alone = crate::one_at_a_time();
    waldio::testing::planted::set(Some(waldio::testing::planted::Bug::SyncsOverlap));
    let outcome = commit_beside_a_failed_growth();
    waldio::testing::planted::set(None);
    outcome.expect("the planted bug is caught");
}

#[cfg(feature = "planted-bugs")]
#[test]
fn planted_bug_is_caught_fill_overwrites() {
    let _alone = crate::one_at_a_time();
    waldio::testing::planted::set(Some(waldio::testing::planted::Bug::FillOverwrites));
    let caught = rows_after_race();
    waldio::testing::planted::set(None);
    println!("{}", caught.expect_err("the planted bug is caught"));
}
