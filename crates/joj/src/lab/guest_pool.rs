//! Several guests at a time, each with one batch of units after another, until every unit has a report.
//!
//! A batch is what one guest does on its own: it begins with the memory of the snapshot, so neither the batches before it nor how
//! many guests there are changes what it measures.

use std::cell::Cell;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use serde::de::DeserializeOwned;

use crate::bench::progress::Progress;
use crate::lab::error::{SessionError, ShareError, TimeLimit, UnitError};
use crate::lab::host_share::HostShare;
use crate::lab::image::archive::{self, Contents};
use crate::lab::image::packages::Packages;
use crate::lab::job::{HOST_TAG, SHARE_TAG};
use crate::lab::life::{Event, Guest, Life, MEMORY_MIB, SessionEnd};
use crate::lab::snapshot::Snapshot;
use crate::machine::proc::memory;
use crate::machine::proc::signal;
use crate::machine::qemu::process::Machine;

/// What a pool of guests does.
pub trait Work: Sync {
    /// What came of a unit.
    type Report: DeserializeOwned + Send;

    /// What progress calls a unit.
    fn name(&self, unit: usize) -> String;

    /// What a guest did with a unit for which it took too long, and of which it said this last.
    fn did(&self, unit: usize, said: Option<String>) -> String {
        said.unwrap_or_else(|| self.name(unit))
    }

    /// Leaves the job in `share` that has these units.
    /// # Errors
    /// Where it cannot be written.
    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), ShareError>;

    /// Seconds that a guest takes for a unit, where units differ.
    fn expected_s(&self, _unit: usize) -> Option<f64> {
        None
    }

    /// True where a guest that does not start costs the first unit that it was to do. Else it ends the whole, as others may not start either.
    fn outlives_a_start(&self) -> bool {
        false
    }

    /// Takes out of `left` what cannot be done without `failed`: nothing, unless it says so.
    fn give_up(&self, _failed: usize, _left: &mut Vec<usize>) {}
}

/// Guests that work off the units of a run, several at once.
#[derive(Debug)]
pub struct GuestPool {
    /// Kernel and programs.
    pub packages: Packages,
    /// joj and libraries.
    pub contents: Contents,
    /// QEMU's version.
    pub qemu: String,
    /// At most so many guests at a time.
    pub jobs: usize,
    /// How long a unit may take, or a step of one.
    pub limit: TimeLimit,
}

/// Told of a unit: its number, its report or why there is none, and the share where its guest left files.
pub type Done<'a, R> = dyn FnMut(usize, Result<R, UnitError>, &HostShare) + 'a;

/// After so many guests of one lane in a row that did not start the next one would not, either.
const FAILED_STARTS_MAX: u32 = 3;

/// Between two looks at what is waited for.
const TICK: Duration = Duration::from_secs(1);

/// What a lane tells.
enum LaneMessage<R> {
    Ready(String),
    Begun(usize),
    Doing(usize, String),
    Done(usize, Result<R, UnitError>),
}

/// How many guests this machine has processors and memory for, each with a joj beside it.
pub fn jobs_of_this_machine() -> usize {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let each_kib = u64::from(MEMORY_MIB + MEMORY_MIB / 4) * 1024;
    let fitting = memory::available_kib().map_or(1, |available| available / each_kib);
    processors.min(usize::try_from(fitting).unwrap_or(1)).max(1)
}

/// What is said of a unit that nobody came to.
pub fn unmeasured(stop: Option<&SessionEnd>) -> String {
    match stop {
        Some(SessionEnd::Signal) => "stopped by a signal before its end".to_owned(),
        Some(SessionEnd::Failed(reason)) => format!("not begun: {reason}"),
        None => "no guest came to it".to_owned(),
    }
}

/// How a command ends that was stopped.
/// # Errors
/// What failed.
pub fn exit_code(stop: Option<SessionEnd>) -> Result<ExitCode, SessionError> {
    match stop {
        Some(SessionEnd::Signal) => Ok(ExitCode::from(signal::STOPPED_EXIT_CODE)),
        Some(SessionEnd::Failed(reason)) => Err(reason),
        None => Ok(ExitCode::SUCCESS),
    }
}

impl GuestPool {
    /// Does all batches; `done` is told of each unit. Gives the release of the kernel that ran.
    /// # Errors
    /// [`SessionEnd`]; what `done` was told stands.
    pub fn work_off<W: Work>(
        &self,
        batches: Vec<Vec<usize>>,
        work: &W,
        progress: &mut Progress,
        done: &mut Done<'_, W::Report>,
    ) -> Result<String, SessionEnd> {
        self.open(batches.len())?.work_off(batches, work, progress, done)
    }

    /// Makes ready what guests begin with that have `batches` to do, at most as many at a time as it may be.
    /// # Errors
    /// [`SessionEnd`]; nothing is left.
    pub fn open(&self, batches: usize) -> Result<OpenPool<'_>, SessionEnd> {
        let lanes = self.jobs.clamp(1, batches.max(1));
        let shares =
            (0..lanes).map(|_| HostShare::create()).collect::<Result<Vec<HostShare>, ShareError>>()?;
        let image = shares[0].beside("image");
        archive::write(&image, &self.contents, &self.packages)?;
        let console = shares[0].beside("console");
        let say = |text: &str| eprintln!("joj lab: {text}");
        let snapshot = Snapshot::of(&self.machine(&image, &shares[0]), &self.qemu, &console, &say)?;
        Ok(OpenPool { pool: self, shares, image, snapshot })
    }

    fn machine(&self, image: &Path, share: &HostShare) -> Machine {
        Machine {
            kernel: self.packages.kernel(),
            image: image.to_owned(),
            share: (share.shared(), SHARE_TAG.to_owned()),
            host: HOST_TAG.to_owned(),
            memory_mib: MEMORY_MIB,
        }
    }
}

/// A pool whose guests can begin.
#[derive(Debug)]
pub struct OpenPool<'a> {
    pool: &'a GuestPool,
    shares: Vec<HostShare>,
    image: PathBuf,
    snapshot: Snapshot,
}

impl OpenPool<'_> {
    /// Guests at a time.
    pub fn lanes(&self) -> usize {
        self.shares.len()
    }

    /// Does all batches; `done` is told of each unit. Gives the release of the kernel that ran.
    /// # Errors
    /// [`SessionEnd`]; what `done` was told stands.
    pub fn work_off<W: Work>(
        &self,
        batches: Vec<Vec<usize>>,
        work: &W,
        progress: &mut Progress,
        done: &mut Done<'_, W::Report>,
    ) -> Result<String, SessionEnd> {
        let shares = &self.shares[..self.shares.len().min(batches.len().max(1))];
        let left = Mutex::new(VecDeque::from(batches));
        let is_over = AtomicBool::new(false);
        let mut kernel = self.pool.packages.release.clone();
        thread::scope(|scope| {
            let (sender, told) = channel();
            let start = |(number, share)| {
                let lane = Lane {
                    pool: self.pool,
                    work,
                    share,
                    machine: self.pool.machine(&self.image, share),
                    snapshot: self.snapshot.path(),
                    is_over: &is_over,
                    failed_starts: Cell::new(0),
                    told: Teller { number, sender: sender.clone() },
                };
                let left = &left;
                scope.spawn(move || lane.run(left))
            };
            let lanes: Vec<_> = shares.iter().enumerate().map(start).collect();
            drop(sender);
            loop {
                let (number, told) = match told.recv_timeout(TICK) {
                    Ok(message) => message,
                    Err(RecvTimeoutError::Timeout) => {
                        progress.tick();
                        continue;
                    }
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                match told {
                    LaneMessage::Ready(release) => kernel = release,
                    LaneMessage::Begun(unit) => match work.expected_s(unit) {
                        Some(seconds) => {
                            progress.step_of(&work.name(unit), seconds * 1e9 / shares.len() as f64);
                        }
                        None => progress.step(&work.name(unit)),
                    },
                    LaneMessage::Doing(unit, what) => {
                        progress.doing(&format!("{}: {what}", work.name(unit)));
                    }
                    LaneMessage::Done(unit, report) => done(unit, report, &shares[number]),
                }
            }
            let panicked = |_| Err(SessionError::Panicked.into());
            let ends: Vec<_> = lanes.into_iter().map(|lane| lane.join().unwrap_or_else(panicked)).collect();
            ends.into_iter().collect::<Result<(), SessionEnd>>()
        })?;
        Ok(kernel)
    }
}

/// One guest after another.
struct Lane<'a, W: Work> {
    pool: &'a GuestPool,
    work: &'a W,
    share: &'a HostShare,
    machine: Machine,
    snapshot: PathBuf,
    /// Set where another lane failed: no new guest is started then.
    is_over: &'a AtomicBool,
    /// Guests in a row that did not start.
    failed_starts: Cell<u32>,
    told: Teller<W::Report>,
}

struct Teller<R> {
    number: usize,
    sender: Sender<(usize, LaneMessage<R>)>,
}

impl<R> Teller<R> {
    fn tell(&self, told: LaneMessage<R>) {
        // The one who listens is there as long as there are lanes.
        let _ = self.sender.send((self.number, told));
    }
}

impl<W: Work> Lane<'_, W> {
    fn run(&self, batches: &Mutex<VecDeque<Vec<usize>>>) -> Result<(), SessionEnd> {
        let next = || batches.lock().ok()?.pop_front();
        while let Some(batch) = next() {
            let ended = self.batch(batch);
            if ended.is_err() {
                self.is_over.store(true, Ordering::SeqCst);
            }
            ended?;
            if self.is_over.load(Ordering::SeqCst) {
                break;
            }
        }
        Ok(())
    }

    /// Does all units of a batch. One that ends its guest, or takes for ever, costs that unit, and a start.
    fn batch(&self, mut left: Vec<usize>) -> Result<(), SessionEnd> {
        while !left.is_empty() {
            self.work.leave(&left, self.share)?;
            let (life, doing) = self.live(&mut left)?;
            if self.is_over.load(Ordering::SeqCst) {
                // Ended for another lane's sake: nobody knows what would have come of its unit.
                return Ok(());
            }
            let said = life.said();
            match (life.running, life.over_s) {
                (Some(unit), over_s) => {
                    let what = self.work.did(unit, doing);
                    let limit = self.pool.limit;
                    let end =
                        over_s.map_or(UnitError::Ended { said }, |_| UnitError::TooLong { limit, what });
                    self.reported(unit, Err(end), &mut left);
                }
                (None, Some(seconds)) => return Err(SessionError::TooLate { seconds, said }.into()),
                (None, None) if !life.ready => self.not_started(said, &mut left)?,
                (None, None) if !left.is_empty() => {
                    return Err(SessionError::TooEarly { said }.into());
                }
                (None, None) => {}
            }
        }
        Ok(())
    }

    /// What comes of a guest that ended before it had its job.
    fn not_started(&self, said: String, left: &mut Vec<usize>) -> Result<(), SessionEnd> {
        self.failed_starts.set(self.failed_starts.get() + 1);
        match left.first() {
            Some(unit) if self.work.outlives_a_start() && self.failed_starts.get() < FAILED_STARTS_MAX => {
                self.reported(*unit, Err(UnitError::NotStarted { said }), left);
                Ok(())
            }
            _ => Err(SessionError::NotGoneOn { said }.into()),
        }
    }

    /// One guest's life, and what it said that it did last with the unit in which it ended.
    fn live(&self, left: &mut Vec<usize>) -> Result<(Life, Option<String>), SessionEnd> {
        let mut doing = None;
        let guest = Guest {
            machine: &self.machine,
            snapshot: &self.snapshot,
            limit: self.pool.limit,
            is_over: self.is_over,
        };
        let life = guest.live(&mut |event| match event {
            Event::Ready(release) => {
                self.failed_starts.set(0);
                self.told.tell(LaneMessage::Ready(release));
            }
            Event::Begun(unit) => {
                doing = None;
                self.told.tell(LaneMessage::Begun(unit));
            }
            Event::Doing(unit, what) => {
                doing = Some(what.clone());
                self.told.tell(LaneMessage::Doing(unit, what));
            }
            Event::Done(unit) => self.reported(unit, self.share.report(unit), left),
        })?;
        Ok((life, doing))
    }

    fn reported(&self, unit: usize, report: Result<W::Report, UnitError>, left: &mut Vec<usize>) {
        left.retain(|other| *other != unit);
        if report.is_err() {
            self.work.give_up(unit, left);
        }
        self.told.tell(LaneMessage::Done(unit, report));
    }
}
