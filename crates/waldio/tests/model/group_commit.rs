//! Commits that share flushes, beside checkpoints, on a disk that says what it has.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use waldio::testing::model::{self, thread};
use waldio::testing::planted::Bug;
use waldio::{CommitNumber, Covered, Failed, GroupCommit, Waker};

use crate::explore::Clock::{Fickle, Hasty, Patient};
use crate::explore::{finds, holds, holds_under_all};

/// How one flush ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Succeeds,
    Fails,
    Panics,
}

/// One open file: a writer's, or the checkpoint's.
type File = usize;
const CHECKPOINT: File = 0;

/// One connection that writes. Its waker may still ring for an earlier commit.
#[derive(Default)]
struct Writer {
    file: File,
    waker: Arc<Waker>,
}

/// What a flush panics with.
struct Planned;

/// What the world outside of `GroupCommit` knows. Nobody is interrupted while it looks.
#[derive(Debug, Default)]
struct Disk {
    /// Commits whose frames are in the file, and how many of them are on the medium.
    written: CommitNumber,
    on_medium: CommitNumber,
    /// Flushes begun, and how each one ends that does not succeed.
    flushes: usize,
    ends: Vec<(usize, End)>,
    flush_time: Duration,
    /// When the last one ended; and since when one is due that did not begin yet.
    ended_at: Duration,
    due_at: Option<Duration>,
    /// A flush failed: what is not on the medium never gets there.
    broken: bool,
    /// Open files that heard of it: each is told once, and then that all is well.
    told: Vec<File>,
    /// The last commit that was called durable before that.
    acknowledged: CommitNumber,
    /// `GroupCommit` heard of the failure; and nobody has a reason to flush any more.
    heard: bool,
    over: bool,
    leaders: usize,
    /// Commits that flushes of leaders said they covered.
    led: u64,
}

impl Disk {
    fn acknowledge(&mut self, number: CommitNumber) {
        if !self.broken {
            self.acknowledged = self.acknowledged.max(number);
        }
    }
}

struct Log {
    group_commit: GroupCommit,
    disk: Mutex<Disk>,
    write_lock: model::Mutex<()>,
}

impl Log {
    fn new(flush_time: Duration, ends: &[(usize, End)]) -> Log {
        let disk = Disk { flush_time, ends: ends.to_vec(), ..Disk::default() };
        Log {
            group_commit: GroupCommit::default(),
            disk: Mutex::new(disk),
            write_lock: model::Mutex::default(),
        }
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        self.disk.try_lock().expect("nobody is interrupted here")
    }

    /// One fdatasync.
    fn flush(&self, file: File) -> Result<(), Failed> {
        let (covers, end, flush_time) = {
            let mut disk = self.disk();
            assert!(!disk.over, "a flush after a failure");
            disk.flushes += 1;
            if let Some(due_at) = disk.due_at.take() {
                let (from, began_at) = (due_at.max(disk.ended_at), model::elapsed());
                assert_eq!(began_at, from, "a flush was put off that was due");
            }
            let number = disk.flushes;
            let end = disk.ends.iter().find(|(flush, _)| *flush == number);
            (disk.written, end.map_or(End::Succeeds, |(_, end)| *end), disk.flush_time)
        };
        if flush_time.is_zero() {
            shuttle::thread::sleep(Duration::ZERO);
        } else {
            thread::sleep(flush_time);
        }
        let mut disk = self.disk();
        disk.ended_at = model::elapsed();
        if end == End::Succeeds && !disk.broken {
            disk.on_medium = disk.on_medium.max(covers);
            return Ok(());
        }
        if disk.told.contains(&file) {
            return Ok(());
        }
        disk.broken = true;
        disk.told.push(file);
        drop(disk);
        if end == End::Panics {
            resume_unwind(Box::new(Planned));
        }
        Err(Failed)
    }

    /// A COMMIT; true where it was acknowledged.
    fn commit(&self, writer: &Writer) -> bool {
        let number = {
            let _writer = self.write_lock.lock().expect("no writer panics");
            self.disk().written += 1;
            let written = self.disk().written;
            let number = self.group_commit.issue(1);
            assert_eq!(number, written, "group_commit count in the order of the log");
            number
        };
        self.wait(number, writer)
    }

    fn wait(&self, number: CommitNumber, writer: &Writer) -> bool {
        let flush = || {
            assert!(self.disk().written >= number, "a flush that does not cover its leader");
            self.disk().leaders += 1;
            assert_eq!(self.disk().leaders, 1, "two flushes at a time");
            let result = catch_unwind(AssertUnwindSafe(|| self.flush(writer.file)));
            self.disk().leaders -= 1;
            result.unwrap_or_else(|panic| resume_unwind(panic))
        };
        let result = catch_unwind(AssertUnwindSafe(|| self.group_commit.wait(number, &writer.waker, flush)));
        let mut disk = self.disk();
        match result {
            Ok(Ok(covered)) => {
                assert!(
                    number <= disk.on_medium,
                    "acknowledged commit {number} is not on the medium: {disk:?}"
                );
                disk.acknowledge(number);
                if let Covered::Led(group) = covered {
                    disk.led += group;
                }
                true
            }
            Ok(Err(Failed)) => {
                assert!(disk.broken, "a failure that nobody saw");
                disk.heard = true;
                assert!(
                    number > disk.acknowledged,
                    "commit {number} failed that was durable before: {disk:?}"
                );
                false
            }
            Err(panic) if panic.is::<Planned>() => {
                assert!(disk.broken);
                disk.heard = true;
                false
            }
            Err(panic) => resume_unwind(panic),
        }
    }

    /// A checkpoint's barrier.
    fn checkpoint(&self) {
        let covers = self.group_commit.issued();
        match self.flush(CHECKPOINT) {
            Ok(()) => {
                self.group_commit.covered(covers);
                self.disk().acknowledge(covers.number);
            }
            Err(Failed) => {
                self.group_commit.fail();
                self.disk().heard = true;
            }
        }
    }

    /// Commits that waited for nobody are due, now and then: whoever leads the flush that covers them does not put it off.
    fn flush_what_is_due(&self, times: usize) {
        let flush_time = self.disk().flush_time;
        for _ in 0..times {
            thread::sleep(flush_time / 3);
            self.disk().due_at = Some(model::elapsed());
            let number = self.group_commit.hurry();
            let flush = || self.flush(CHECKPOINT);
            assert!(self.group_commit.wait(number, &Arc::default(), flush).is_ok(), "this disk is sound");
        }
    }

    /// Writers who wait for their flush and then do something else, beside others who do not wait.
    fn run_beside_due(self, writers: u32, commits: usize, times: usize) {
        thread::scope(|scope| {
            for number in 1..=writers {
                let log = &self;
                scope.spawn(move || {
                    let (waker, flush_time) = (Arc::default(), log.disk().flush_time);
                    for _ in 0..commits {
                        let flush = || log.flush(CHECKPOINT);
                        assert!(log.group_commit.wait(log.group_commit.issue(1), &waker, flush).is_ok());
                        thread::sleep(flush_time * number / 5);
                    }
                });
            }
            scope.spawn(|| self.flush_what_is_due(times));
        });
        assert!(!self.group_commit.is_outstanding());
    }

    /// Writers with so many commits each, and checkpoints beside them; then every promise about the end.
    fn run(self, writers: usize, commits: usize, checkpoints: usize) {
        thread::scope(|scope| {
            for file in 1..=writers {
                let log = &self;
                scope.spawn(move || {
                    let writer = Writer { file, waker: Arc::default() };
                    for _ in 0..commits {
                        log.commit(&writer);
                    }
                });
            }
            if checkpoints > 0 {
                scope.spawn(|| {
                    for _ in 0..checkpoints {
                        // A planned panic becomes an error on its way to SQLite.
                        let result = catch_unwind(AssertUnwindSafe(|| self.checkpoint()));
                        assert!(result.is_ok() || self.disk().broken, "a panic that nobody planned");
                    }
                });
            }
        });
        let all = (writers * commits) as CommitNumber;
        assert_eq!(self.group_commit.issued().number, all);
        if self.disk().broken {
            let late = self.group_commit.issue(1);
            self.disk().written += 1;
            let heard = self.disk().heard;
            self.disk().over = heard;
            assert!(
                !self.wait(late, &Writer { file: writers + 1, ..Writer::default() }),
                "acknowledged after a failure"
            );
        } else {
            assert!(!self.group_commit.is_outstanding());
            assert_eq!(self.disk().on_medium, all, "every commit was acknowledged");
            assert!(
                checkpoints > 0 || self.disk().led == all,
                "each commit is of one group: {:?}",
                self.disk()
            );
        }
    }
}

const AT_ONCE: Duration = Duration::ZERO;
/// A leader lingers for a quarter of it: awake in the first case, asleep in the second.
const SHORT: Duration = Duration::from_micros(400);
const LONG: Duration = Duration::from_millis(4);

fn one_commit_each() {
    Log::new(AT_ONCE, &[]).run(2, 1, 0);
}

fn one_commit_each_on_a_bad_disk() {
    Log::new(AT_ONCE, &[(1, End::Fails)]).run(2, 1, 0);
}

fn one_commit_beside_a_checkpoint() {
    Log::new(AT_ONCE, &[]).run(1, 2, 1);
}

fn two_writers() {
    Log::new(AT_ONCE, &[]).run(2, 2, 0);
}

fn three_writers() {
    Log::new(AT_ONCE, &[]).run(3, 2, 0);
}

fn three_writers_that_linger_awake() {
    Log::new(SHORT, &[]).run(3, 3, 0);
}

fn three_writers_that_linger_asleep() {
    Log::new(LONG, &[]).run(3, 3, 0);
}

fn writers_beside_a_checkpoint() {
    Log::new(AT_ONCE, &[]).run(3, 2, 2);
}

fn writers_that_linger_beside_a_checkpoint() {
    Log::new(LONG, &[]).run(2, 3, 2);
}

fn the_second_flush_fails() {
    Log::new(AT_ONCE, &[(2, End::Fails)]).run(3, 2, 0);
}

fn a_flush_fails_beside_a_checkpoint() {
    Log::new(AT_ONCE, &[(2, End::Fails)]).run(3, 2, 2);
}

fn a_flush_fails_while_a_leader_lingers() {
    Log::new(LONG, &[(3, End::Fails)]).run(2, 3, 2);
}

fn the_second_flush_panics() {
    Log::new(AT_ONCE, &[(2, End::Panics)]).run(3, 2, 0);
}

fn a_flush_panics_beside_a_checkpoint() {
    Log::new(AT_ONCE, &[(1, End::Panics)]).run(2, 2, 1);
}

fn a_due_flush_beside_writers_that_linger() {
    Log::new(LONG, &[]).run_beside_due(3, 4, 4);
}

#[test]
fn few_commits_are_safe_under_every_schedule() {
    holds_under_all(one_commit_each);
    holds_under_all(one_commit_each_on_a_bad_disk);
    holds_under_all(one_commit_beside_a_checkpoint);
}

#[test]
fn commits_that_share_flushes_are_durable_when_acknowledged_and_none_hangs() {
    holds(&[Patient, Fickle], two_writers);
    holds(&[Patient, Fickle], three_writers);
}

#[test]
fn so_are_they_where_leaders_linger() {
    holds(&[Patient, Hasty, Fickle], three_writers_that_linger_awake);
    holds(&[Patient, Hasty, Fickle], three_writers_that_linger_asleep);
}

#[test]
fn a_flush_that_is_due_is_not_put_off_by_who_leads() {
    holds(&[Patient], a_due_flush_beside_writers_that_linger);
}

#[test]
fn so_are_they_beside_checkpoints() {
    holds(&[Patient, Fickle], writers_beside_a_checkpoint);
    holds(&[Patient, Hasty, Fickle], writers_that_linger_beside_a_checkpoint);
}

#[test]
fn a_failed_flush_reaches_every_commit_that_it_should_have_covered_and_none_other() {
    holds(&[Patient, Fickle], the_second_flush_fails);
    holds(&[Patient, Fickle], a_flush_fails_beside_a_checkpoint);
    holds(&[Patient, Hasty, Fickle], a_flush_fails_while_a_leader_lingers);
}

#[test]
fn so_does_a_panic() {
    holds(&[Patient, Fickle], the_second_flush_panics);
    holds(&[Patient, Fickle], a_flush_panics_beside_a_checkpoint);
}

#[test]
fn planted_bugs_are_found() {
    finds(Bug::AckBeforePrefix, "is not on the medium", &[Patient], two_writers);
    finds(Bug::LostWakeUp, "deadlock", &[Patient], two_writers);
    finds(Bug::DueFlushLingers, "was put off", &[Patient], a_due_flush_beside_writers_that_linger);
    finds(Bug::AckAfterFailure, "is not on the medium", &[Patient], a_flush_fails_beside_a_checkpoint);
    finds(Bug::FailureNotTold, "deadlock", &[Patient], the_second_flush_fails);
    finds(Bug::FailureNotTold, "deadlock", &[Patient], the_second_flush_panics);
}
