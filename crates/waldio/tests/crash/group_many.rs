//! Goal: when a flush fails while many connections commit at once, nobody waits for ever, no COMMIT says OK that no flush
//! covered, and none does after the failure.
//! Method: six threads commit as fast as they can on the simulated disk, once for each flush with that one failing; each
//! return code is compared with what the disk saw. crash/group_faults.rs has each moment in turn, with few connections;
//! here those whom a failed flush should have covered sleep.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::support::actor::Commit;
use crate::support::flushes::Flushes;
use crate::support::group_faults::judge_commits;
use crate::support::history::put_sql;
use crate::support::machine::{Machine, Side};
use crate::support::sqlite::Connection;
use crate::support::watch_vfs::{self, Event, Watcher};
use crate::support::workload::base_image;
use blockio::simulated::disk::SimDisk;
use blockio::simulated::fault::{Counted, Fault, FaultKind, Kept};

const WRITERS: usize = 6;
const COMMITS: i64 = 12;
/// Each flush up to this one fails, once and for good; a run has more.
const FLUSHES: u64 = 8;
/// What a flush takes: long enough that others sleep for it.
const FLUSH_TIME: Duration = Duration::from_millis(1);

/// Where a thread's commit stands in the log of the disk.
struct Observer {
    disk: SimDisk,
    frame_at: Cell<Option<usize>>,
    published_at: Cell<Option<usize>>,
}

impl Watcher for Observer {
    fn hear(&self, event: Event) {
        match event {
            Event::LogWrite { .. } if self.frame_at.get().is_none() => {
                self.frame_at.set(Some(self.disk.record_count()));
            }
            Event::LogFlushed => thread::sleep(FLUSH_TIME),
            Event::WriteUnlock => self.published_at.set(Some(self.disk.record_count())),
            _ => {}
        }
    }
}

/// The commits of one connection, which is open until all are done: a log that was closed by all is recovered. Whoever
/// cannot open it says so behind the others: they wait for each other.
fn commit_all(machine: &Machine, who: usize, together: &Barrier) -> Vec<Commit> {
    let settings = "PRAGMA wal_autocheckpoint=0; PRAGMA busy_timeout=60000; PRAGMA synchronous=FULL; SELECT count(*) FROM t;";
    let opened = machine.open().and_then(|connection| connection.exec(settings).map(|()| connection));
    together.wait();
    together.wait();
    let commits = opened.as_ref().map(|connection| commits_of(machine, connection, who));
    together.wait();
    commits.expect("no fault yet")
}

fn commits_of(machine: &Machine, connection: &Connection, who: usize) -> Vec<Commit> {
    let disk = machine.disk.clone();
    let observer = Rc::new(Observer { disk, frame_at: Cell::default(), published_at: Cell::default() });
    watch_vfs::watch(Some(Rc::clone(&observer) as Rc<dyn Watcher>));
    let of_number = |number| {
        let txn = i64::try_from(who).expect("few") * 100 + number + 1;
        let outcome = connection.exec(&put_sql(txn % 4 + 1, txn, 4096));
        let (frame_at, published_at) = (observer.frame_at.take(), observer.published_at.take());
        let returned_at = machine.disk.record_count();
        let frame_at = frame_at.unwrap_or(returned_at);
        Commit { who, txn, full: true, frame_at, published_at, returned_at, outcome }
    };
    let commits = (0..COMMITS).map(of_number).collect();
    watch_vfs::watch(None);
    commits
}

/// What is wrong in a run in which `fault` strikes, and how many COMMITs failed that were published.
fn run(machine: &Machine, fault: Fault) -> (Vec<String>, usize) {
    let together = Barrier::new(WRITERS + 1);
    let commits: Vec<Commit> = thread::scope(|scope| {
        let together = &together;
        let writers: Vec<_> =
            (0..WRITERS).map(|who| scope.spawn(move || commit_all(machine, who, together))).collect();
        together.wait();
        machine.disk.set_fault(Some(fault));
        together.wait();
        together.wait();
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    let records = machine.disk.records();
    let committed = commits.iter().filter(|commit| commit.outcome.is_ok());
    let covered: Vec<Commit> = committed.cloned().collect();
    let mut wrong = judge_commits(&records, &covered);
    let Some(failed_at) = Flushes::of(&records).first_failed() else { return (wrong, 0) };
    let failed: Vec<&Commit> = commits.iter().filter(|commit| commit.outcome.is_err()).collect();
    let early = failed.iter().filter(|commit| commit.returned_at <= failed_at);
    wrong.extend(early.map(|commit| format!("COMMIT of {} failed before any flush", commit.txn)));
    let late = covered.iter().filter(|commit| commit.frame_at > failed_at);
    wrong.extend(late.map(|commit| format!("COMMIT of {} says OK on a log that failed", commit.txn)));
    let shared = failed.iter().filter(|commit| commit.published_at.is_some() && commit.frame_at < failed_at);
    (wrong, shared.count())
}

fn failures_reach_many(side: Side) {
    let machine = Machine::watched(side);
    // No space is reserved: the flush for that covers commits, too, and a failure's frames written over themselves hide that.
    machine.disk.set_free_bytes(0);
    let base = base_image(&machine, 4096);
    let mut most = 0;
    for (number, lasting) in (0..FLUSHES).flat_map(|number| [(number, false), (number, true)]) {
        machine.boot(&base);
        let fault =
            Fault { counted: Counted::Flushes, number, kind: FaultKind::Io, kept: Kept::Half, lasting };
        let (wrong, shared) = run(&machine, fault);
        assert!(wrong.is_empty(), "{side:?}, flush {number}, lasting {lasting}:\n{}", wrong.join("\n"));
        most = most.max(shared);
    }
    assert!(most > 1, "no failed flush was shared: nothing was tested");
    println!("{side:?}: a failed flush reached up to {most} commits");
}

#[test]
fn a_failed_flush_reaches_all_who_sleep_for_it() {
    failures_reach_many(Side::Flush);
}

#[test]
fn a_failed_flush_beside_durable_writes_reaches_all_who_sleep_for_it() {
    failures_reach_many(Side::Fua);
}
