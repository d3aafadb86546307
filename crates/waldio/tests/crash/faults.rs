//! Goal: when a write or a sync fails, no COMMIT that returned OK is lost, now or by a later power cut, and the
//! COMMIT that was hurt says so.
//! Method: run a workload for each operation on the disk and let that one fail, with EIO and with ENOSPC, once and for
//! good (two of five such ways for each, in turn; `CRASH_FAULTS=5` takes all of them); judge each return code, what
//! connections see afterwards, and every crash state. After a failed sync the simulated page cache is clean and may be
//! lost, as Linux has it.

use std::collections::BTreeSet;
use std::path::Path;

use crate::support::explore::{Effort, Explorer};
use crate::support::machine::{LOG, Machine, Side};
use crate::support::sqlite::SqlError;
use crate::support::workload::{Recording, Step, Synchronous, Workload, base_image, record};
use blockio::simulated::crash_states::Bounds;
use blockio::simulated::disk::SimDisk;
use blockio::simulated::fault::{Counted, Fault, FaultKind, Kept};
use blockio::simulated::image::Image;
use blockio::simulated::log::{Op, Record, WriteFlags};
use blockio::simulated::state::SimOptions;

/// SQLITE_FULL, SQLITE_IOERR, SQLITE_CANTOPEN: what a fault may look like. BUSY is not among them: an application
/// would run the transaction again.
const HONEST_CODES: [i32; 3] = [13, 10, 14];

/// A commit that nobody syncs, a commit whose sync may fail, and then commits and a checkpoint by a process that was
/// closed and opened anew while another one kept the log in use.
fn rejoining(synchronous: Synchronous) -> Workload {
    let steps = vec![
        Step::Commit1,
        Step::LooseForeign,
        Step::Commit3,
        Step::Rejoin,
        Step::Commit1,
        Step::LooseForeign,
        Step::Passive,
        Step::Rejoin,
        Step::Commit1,
        Step::Passive,
        Step::Commit1,
    ];
    Workload { steps, page_bytes: 4096, synchronous }
}

fn workload(synchronous: Synchronous) -> Workload {
    let steps = vec![
        Step::Commit1,
        Step::Second,
        Step::Commit3,
        Step::Passive,
        Step::Commit1,
        Step::Reset,
        Step::Commit1,
        Step::Reopen,
        Step::Commit1,
        Step::Commit3,
    ];
    Workload { steps, page_bytes: 4096, synchronous }
}

/// Inodes that were ever called a log.
fn logs(records: &[Record]) -> BTreeSet<u64> {
    let is_log = |path: &Path| path.to_string_lossy().ends_with("-wal");
    let log = |record: &Record| match &record.op {
        Op::Create { path, inode } if is_log(path) => Some(*inode),
        Op::Rename { to, inode, .. } if is_log(to) => Some(*inode),
        _ => None,
    };
    records.iter().filter_map(log).collect()
}

/// Whether a flush of a log failed here. A durable write for which the disk has no room is a failed write: nothing
/// was to be durable yet, and the next commit writes the same place.
fn is_failed_flush(record: &Record, logs: &BTreeSet<u64>, kind: FaultKind) -> bool {
    record.failed
        && match &record.op {
            Op::SyncData { inode } => logs.contains(inode),
            Op::Write { inode, flags: WriteFlags::Durable, .. } => {
                logs.contains(inode) && kind != FaultKind::Full
            }
            _ => false,
        }
}

/// The first step during which a flush of the log failed.
fn step_of_failed_flush(workload: &Workload, records: &[Record], kind: FaultKind) -> Option<usize> {
    let logs = logs(records);
    let hurt = records.iter().position(|record| is_failed_flush(record, &logs, kind))?;
    let marks = records[..hurt].iter().filter(|record| matches!(record.op, Op::Mark(_))).count();
    // The last mark is that of the close after all steps.
    marks.checked_sub(1).filter(|step| *step < workload.steps.len())
}

/// Whether this step ends the time in which a log stays out of use.
fn is_closing(step: Step) -> bool {
    matches!(step, Step::Reopen | Step::Rejoin)
}

/// What is wrong with the return codes of a run.
fn judge_codes(side: Side, workload: &Workload, recording: &Recording, kind: FaultKind) -> Vec<String> {
    let mut wrong = recording.wrong.clone();
    for (step, outcome) in workload.steps.iter().zip(&recording.outcomes) {
        if let Err(error) = outcome
            && !HONEST_CODES.contains(&error.primary())
        {
            wrong.push(format!("{step:?} says {error}"));
        }
    }
    let Some(hurt) = step_of_failed_flush(workload, &recording.records, kind) else { return wrong };
    if is_closing(workload.steps[hurt]) {
        return wrong;
    }
    let later = workload.steps.iter().zip(&recording.outcomes).skip(hurt + 1);
    let until_close = later.take_while(|(step, _)| !is_closing(**step));
    // Another process hears of the failure at its own next sync.
    let ours = until_close.filter(|(step, _)| !matches!(step, Step::LooseForeign | Step::Foreign));
    let succeeded: Vec<&Step> = ours.filter(|(_, outcome)| outcome.is_ok()).map(|(step, _)| step).collect();
    if side == Side::Stock {
        if recording.outcomes[hurt].is_ok() {
            wrong.push(format!("a flush failed in step {hurt}, which says OK"));
        }
    } else if !succeeded.is_empty() {
        wrong.push(format!("a flush failed in step {hurt}, and later {succeeded:?} succeeded on that log"));
    }
    wrong
}

fn effort() -> Effort {
    let bounds = Bounds { exhaustive_units_max: 6, combinations_max: 24, samples: 3, seed: 3 };
    Effort { bounds, second_crash_every: 0, system_every: 0 }
}

/// Runs the workload with `fault` and on a disk of `capacity_bytes`, and returns what was wrong.
fn run(rig: &Rig, explorer: &mut Explorer<'_>, fault: Fault, capacity_bytes: u64) -> Vec<String> {
    let workload = rig.workload.clone();
    rig.machine.disk.set_capacity(capacity_bytes);
    let recording = record(&rig.machine, &rig.base, &workload, Some(fault));
    rig.machine.disk.set_capacity(u64::MAX);
    let side = rig.machine.side;
    let mut wrong = judge_codes(side, &workload, &recording, fault.kind);
    let ignored = |record: &Record| record.failed && matches!(record.op, Op::SyncDir { .. });
    if side == Side::Stock && recording.records.iter().any(ignored) {
        // unixSync does not look at what the sync of the directory says: the log may lose its name.
        return wrong;
    }
    if let Err(failure) = explorer.explore(&workload, &recording) {
        wrong.push(failure.to_string());
    }
    let code = |outcome: &Result<(), SqlError>| outcome.as_ref().err().map_or(0, |error| error.code);
    let codes: Vec<i32> = recording.outcomes.iter().map(code).collect();
    wrong.iter().map(|wrong| format!("{side:?}, {fault:?}, codes {codes:?}: {wrong}")).collect()
}

/// A computer to hurt and two that recover what it left.
struct Rig {
    machine: Machine,
    judge: Machine,
    stock: Machine,
    base: Image,
    workload: Workload,
}

impl Rig {
    fn new(side: Side, workload: Workload) -> Rig {
        let machine = Machine::new(side);
        let base = base_image(&machine, 4096);
        Rig { machine, judge: Machine::new(side), stock: Machine::new(Side::Stock), base, workload }
    }

    /// How many operations of a kind the workload has when nothing fails.
    fn count(&self, counted: Counted) -> u64 {
        let whole = record(&self.machine, &self.base, &self.workload, None);
        assert!(whole.outcomes.iter().all(Result::is_ok), "{:?}", whole.outcomes);
        self.machine.disk.count(counted)
    }
}

fn none_wrong(wrong: &[String]) {
    for one in wrong {
        println!("{one}");
    }
    assert!(wrong.is_empty(), "{} promises broken, all of them above", wrong.len());
}

/// Lets every operation of the workload fail in turn.
fn nothing_acknowledged_is_lost(side: Side, synchronous: Synchronous) {
    let rig = Rig::new(side, workload(synchronous));
    let mut explorer = Explorer::new(vec![&rig.judge, &rig.stock], effort());
    let count = rig.count(Counted::Changes);
    assert!(count > 30, "{count} operations");
    let mut wrong = Vec::new();
    let faults = [
        (FaultKind::Io, Kept::Half, false),
        (FaultKind::Full, Kept::Half, true),
        (FaultKind::Io, Kept::All, false),
        (FaultKind::Full, Kept::Half, false),
        (FaultKind::Io, Kept::Nothing, true),
    ];
    // Others for each operation than for its neighbours.
    let each = usize::try_from(crate::support::plan::number("CRASH_FAULTS", 1)).expect("five at most");
    for number in 0..count {
        let turn = usize::try_from(number).expect("a count") % faults.len();
        for (kind, kept, lasting) in faults.iter().copied().cycle().skip(turn).take(each.min(faults.len())) {
            let fault = Fault { counted: Counted::Changes, number, kind, kept, lasting };
            wrong.extend(run(&rig, &mut explorer, fault, u64::MAX));
        }
    }
    println!("{side:?}: {count} operations, {:?}", explorer.stats);
    none_wrong(&wrong);
}

#[test]
fn faults_under_stock_show_that_the_judgement_is_fair() {
    nothing_acknowledged_is_lost(Side::Stock, Synchronous::Full);
}

#[test]
fn faults_under_durable_writes_lose_nothing_acknowledged() {
    nothing_acknowledged_is_lost(Side::FuaAlone, Synchronous::Full);
}

#[test]
fn faults_under_flushes_lose_nothing_acknowledged() {
    nothing_acknowledged_is_lost(Side::Flush, Synchronous::Full);
}

#[test]
fn faults_in_strict_mode_lose_nothing_acknowledged() {
    nothing_acknowledged_is_lost(Side::Strict, Synchronous::Full);
}

#[test]
fn faults_in_normal_never_corrupt() {
    // Stock would fail here: its next checkpoint trusts a log whose sync failed before.
    nothing_acknowledged_is_lost(Side::Fua, Synchronous::Normal);
    nothing_acknowledged_is_lost(Side::Flush, Synchronous::Normal);
}

#[test]
fn a_process_that_comes_back_after_a_failed_sync_builds_on_nothing_that_is_lost() {
    for side in [Side::Fua, Side::Flush, Side::Strict] {
        let rig = Rig::new(side, rejoining(Synchronous::Full));
        let mut explorer = Explorer::new(vec![&rig.judge, &rig.stock], effort());
        let count = rig.count(Counted::Flushes);
        assert!(count > 8, "{count} flushes");
        let fault = |number| Fault {
            counted: Counted::Flushes,
            number,
            kind: FaultKind::Io,
            kept: Kept::All,
            lasting: false,
        };
        let wrong: Vec<String> =
            (0..count).flat_map(|number| run(&rig, &mut explorer, fault(number), u64::MAX)).collect();
        println!("{side:?}: {count} flushes, {:?}", explorer.stats);
        none_wrong(&wrong);
    }
}

/// Copies that no sync was told of yet when one fails: the kernel has forgotten them, and SQLite copies those frames no more.
#[test]
fn a_failed_sync_of_the_database_loses_no_frames_that_were_copied() {
    use Step::{Commit1, Commit3, CopyUnsynced, Foreign, Passive, Rejoin, Reopen, Reset, Second, Truncate};
    let steps = vec![
        vec![Commit1, CopyUnsynced, Second, Commit3, Reset, Commit1, Commit1],
        vec![Commit3, CopyUnsynced, Truncate, Commit1, Truncate, Commit1],
        vec![Commit1, CopyUnsynced, Commit1, Passive, Passive, Commit1, Reset, Commit1],
        vec![Commit1, CopyUnsynced, Truncate, Reopen, Commit1, Commit3],
        // Another process comes, and hears nothing of it.
        vec![Commit3, CopyUnsynced, Reset, Foreign, Foreign],
        vec![Commit3, CopyUnsynced, Truncate, Foreign, Rejoin, Commit1, Commit3],
        vec![Commit1, CopyUnsynced, Commit1, Passive, Foreign, Rejoin, Reset, Commit1],
    ];
    for (side, steps) in [Side::Fua, Side::Flush, Side::Strict].into_iter().flat_map(|side| {
        let steps = steps.clone();
        steps.into_iter().map(move |steps| (side, steps))
    }) {
        let workload = Workload { steps, page_bytes: 4096, synchronous: Synchronous::Full };
        let rig = Rig::new(side, workload);
        let mut explorer = Explorer::new(vec![&rig.judge, &rig.stock], effort());
        let fault = |number| Fault {
            counted: Counted::Flushes,
            number,
            kind: FaultKind::Io,
            kept: Kept::Nothing,
            lasting: false,
        };
        let count = rig.count(Counted::Flushes);
        let wrong: Vec<String> =
            (0..count).flat_map(|number| run(&rig, &mut explorer, fault(number), u64::MAX)).collect();
        println!("{side:?}: {count} flushes, {:?}", explorer.stats);
        none_wrong(&wrong);
    }
}

#[test]
fn failed_reads_lose_nothing_acknowledged() {
    for side in [Side::Fua, Side::Flush] {
        let rig = Rig::new(side, workload(Synchronous::Full));
        let mut explorer = Explorer::new(vec![&rig.judge, &rig.stock], effort());
        let count = rig.count(Counted::Reads);
        let fault = |number| Fault {
            counted: Counted::Reads,
            number,
            kind: FaultKind::Io,
            kept: Kept::Nothing,
            lasting: false,
        };
        let wrong: Vec<String> =
            (0..count).flat_map(|number| run(&rig, &mut explorer, fault(number), u64::MAX)).collect();
        println!("{side:?}: {count} reads, {:?}", explorer.stats);
        none_wrong(&wrong);
    }
}

#[test]
fn disk_that_fills_up_loses_nothing_acknowledged() {
    for side in [Side::Stock, Side::Fua, Side::Flush] {
        let rig = Rig::new(side, workload(Synchronous::Full));
        let mut explorer = Explorer::new(vec![&rig.judge, &rig.stock], effort());
        let used_bytes = SimDisk::from_image(&rig.base, SimOptions::default()).used_bytes();
        let never = Fault::at_change(u64::MAX, FaultKind::Full);
        let capacities = (0..40).map(|blocks| used_bytes + blocks * 4096);
        let wrong: Vec<String> =
            capacities.flat_map(|capacity| run(&rig, &mut explorer, never, capacity)).collect();
        println!("{side:?}: {:?}", explorer.stats);
        none_wrong(&wrong);
    }
}

/// Rows 1 to 3 where every COMMIT but that of the third succeeded, whose sync failed, behind a close and another opening.
fn rows_behind_a_failed_commit(side: Side, sql: &str) -> i64 {
    let machine = Machine::new(side);
    machine.boot(&base_image(&machine, 4096));
    let connection = machine.open().expect("a sound database");
    connection.exec("PRAGMA synchronous=FULL; CREATE TABLE paid(sum, x)").expect("no fault yet");
    for sum in [1, 2] {
        connection.exec(&format!("INSERT INTO paid VALUES ({sum}, 0)")).expect("no fault yet");
    }
    machine.disk.fail_flush(Some(0), Kept::All);
    connection.exec(sql).expect_err("its sync fails");
    connection.close();
    let again = machine.open().expect("a sound database");
    let rows = again.query("SELECT count(*) FROM paid").expect("a sound log");
    rows[0][0].int()
}

/// An application that was told that a payment failed makes it once more.
#[test]
fn a_commit_that_failed_does_not_come_back() {
    let one = "INSERT INTO paid VALUES (3, 0)";
    let many = "BEGIN; INSERT INTO paid VALUES (3, zeroblob(20000)); COMMIT";
    for side in [Side::Stock, Side::Flush, Side::FuaAlone, Side::Strict, Side::Embedded] {
        for sql in [one, many] {
            assert_eq!(rows_behind_a_failed_commit(side, sql), 2, "{side:?}: {sql}");
        }
    }
}

/// Whether the log is there behind a last close with `synchronous=OFF` whose flush number `failing` failed, and how many it asks for.
fn log_behind_a_last_close(side: Side, failing: Option<u64>) -> (bool, u64) {
    let machine = Machine::new(side);
    machine.boot(&base_image(&machine, 4096));
    let connection = machine.open().expect("a sound database");
    let rows = "CREATE TABLE paid(sum); INSERT INTO paid VALUES (1)";
    connection
        .exec(&format!("PRAGMA synchronous=FULL; {rows}; PRAGMA synchronous=OFF"))
        .expect("no fault yet");
    let before = machine.disk.fail_flush(failing, Kept::Nothing);
    connection.close();
    let flushes = machine.disk.count(Counted::Flushes) - before;
    (machine.disk.image().files.contains_key(Path::new(LOG)), flushes)
}

#[test]
fn a_log_stays_where_its_last_close_cannot_sync_the_database() {
    for side in [Side::Flush, Side::FuaAlone, Side::Embedded] {
        let (stays, flushes) = log_behind_a_last_close(side, None);
        assert!(!stays && flushes > 0, "{side:?}: {flushes} flushes");
        for number in 0..flushes {
            assert!(log_behind_a_last_close(side, Some(number)).0, "{side:?}: flush {number} of {flushes}");
        }
    }
}

/// Commits until one fails, whose operation number `number` fails; then the process is killed. What commits said, and the rows.
fn rows_behind_a_kill(
    [machine, judge]: [&Machine; 2],
    synchronous: &str,
    before: i64,
    fault: Fault,
) -> (bool, i64) {
    machine.boot(&base_image(machine, 4096));
    let creator = machine.open().expect("a sound database");
    creator.exec("CREATE TABLE paid(sum, x)").expect("no fault yet");
    creator.close();
    let connection = machine.open().expect("a sound database");
    let begin = format!("PRAGMA synchronous={synchronous}; SELECT count(*) FROM paid");
    connection.exec(&begin).expect("no fault yet");
    for sum in 0..before {
        connection.exec(&format!("INSERT INTO paid VALUES ({sum}, 0)")).expect("no fault yet");
    }
    let number = machine.disk.count(fault.counted) + fault.number;
    machine.disk.set_fault(Some(Fault { number, ..fault }));
    let succeeded = connection.exec("INSERT INTO paid VALUES (-1, 0)").is_ok();
    machine.disk.set_fault(None);
    // What the page cache has is what other processes find.
    judge.boot(&machine.disk.image());
    std::mem::forget(connection);
    let again = judge.open().expect("a sound database");
    let rows = again.query("SELECT count(*) FROM paid").expect("a sound log");
    (succeeded, rows[0][0].int())
}

/// As above, where the process does not close the database any more, and whichever of a connection's commits it is.
#[test]
fn a_commit_that_failed_does_not_come_back_after_a_kill() {
    let mut failures = 0;
    for side in [Side::Flush, Side::FuaAlone, Side::Fua, Side::Strict, Side::Embedded, Side::Apart] {
        let judge = Machine::new(if side.is_embedded() { side } else { Side::Stock });
        let machine = Machine::new(side);
        for (before, number) in (0..4).flat_map(|before| (0..10).map(move |number| (before, number))) {
            for (kept, synchronous) in [
                (Kept::All, "FULL"),
                (Kept::All, "NORMAL"),
                (Kept::Half, "FULL"),
                (Kept::Half, "NORMAL"),
                (Kept::Nothing, "FULL"),
            ] {
                let fault =
                    Fault { counted: Counted::Changes, number, kind: FaultKind::Io, kept, lasting: false };
                let (succeeded, rows) = rows_behind_a_kill([&machine, &judge], synchronous, before, fault);
                let case =
                    format!("{side:?}, {synchronous}, behind {before} commits, {fault:?}: {succeeded}");
                assert_eq!(rows, before + i64::from(succeeded), "{case}");
                failures += u32::from(!succeeded);
            }
        }
    }
    assert!(failures > 100, "{failures} commits failed");
}
