//! Crash states in the guest: a cut, the device as it leaves it, the kernel's recovery, SQLite's, and a verdict.
//!
//!   recording -> moment -> image -> device without latency -> mount -> worker -> unmount

use std::fs;
use std::path::Path;

use joj_analysis::bench::key::JournalMode;
use joj_analysis::lab::cell::Cell;
use joj_analysis::lab::crash::{CrashVerdict, CutResult, Promise, StateResult};
use joj_device::assembly::Assembly;
use joj_device::chance::Chance;
use joj_device::crash::moments::{Place, Span, longest_busy_ns, moment};
use joj_device::crash::{CrashStates, Cut};
use joj_device::device::EmulatedDevice;
use joj_device::store::Store;

use crate::bench::ask::Asker;
use crate::bench::worker::crash::checker::{CrashCheckTask, CrashChecked};
use crate::bench::worker::crash::writer::{CrashDatabase, CrashEvent, CrashWriteTask, CrashWritten};
use crate::bench::worker::libraries::Libraries;
use crate::lab::guest::emulated::Emulated;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::recording::Recorder;
use crate::lab::guest::volume::Volume;
use crate::lab::job::{LabVolume, guest_path};
use crate::lab::jobs::crash::{CrashJob, Unit, UnitReport};
use crate::lab::recorded_log::{RecordedLog, is_recorded};
use crate::machine::proc::worker_process::Workers;

/// Choices of what a cut keeps, of which one is taken: none, all, and six that are neither.
const PICKS: usize = 8;
/// Between two requests of one sync there is less than that.
const FLUSH_GAP_NS: u64 = 500_000;
/// Where a copy of the database is looked at.
const COPY: &str = "/tmp/copy";
/// Where waldio's processes share a page; a power cut takes it.
const SHARED_MEMORY: &str = "/dev/shm";

type Recording = RecordedLog<CrashWritten>;

/// Makes crash states and looks at them.
#[derive(Debug)]
pub struct Crashes<'job> {
    job: &'job CrashJob,
    share: &'job Path,
    workers: Workers,
    /// That of the cell at hand.
    recording: Option<(usize, Recording)>,
}

impl<'job> Crashes<'job> {
    /// For the units of `job`; recordings go to `share`.
    /// # Errors
    /// Where joj does not find its own file.
    pub fn new(job: &'job CrashJob, share: &'job Path) -> Result<Crashes<'job>, GuestError> {
        let workers = Workers::new(Vec::new())?;
        Ok(Crashes { job, share, workers, recording: None })
    }

    /// Does unit `number`.
    /// # Errors
    /// Why there is no recording, or why it cannot be read.
    pub fn report(&mut self, number: usize) -> Result<UnitReport, GuestError> {
        let unit = self.job.unit(number);
        let cell = &self.job.cells[unit.cell];
        if unit.state == 0 {
            if !is_recorded(self.share, unit.cell) {
                self.record(unit.cell, cell)?;
            }
            self.load(unit.cell)?;
            let logged = self.recording.as_ref().map_or(&[][..], |(_, recording)| &recording.logged);
            let longest_flush_ns = longest_busy_ns(logged, FLUSH_GAP_NS);
            return Ok(UnitReport::Recorded { entries: logged.len(), longest_flush_ns });
        }
        self.load(unit.cell)?;
        let Some((_, recording)) = &self.recording else { return Err(GuestError::NoRecording) };
        let torn = self.job.torn.contains(&cell.filesystem);
        let (cut, store) = cut(recording, unit, self.job.seed, torn);
        // A worker that crashes is this state's, too.
        let (verdict, stock) = self
            .verdict(cell, cut.promise, store)
            .unwrap_or_else(|reason| (CrashVerdict::Ended(reason.to_string()), None));
        let lost =
            [Some(&verdict), stock.as_ref()].into_iter().flatten().filter_map(CrashVerdict::lost_behind);
        let lost_age_ns =
            lost.min().and_then(|found| age_ns(&recording.written.events, found + 1, cut.at_ns));
        Ok(UnitReport::State(StateResult { state: unit.state, cut: Some(cut), verdict, stock, lost_age_ns }))
    }

    fn record(&self, index: usize, cell: &Cell) -> Result<(), GuestError> {
        let recorder = Recorder::begin(&LabVolume::of(cell), &self.job.setting)?;
        let written = self.write(cell)?;
        recorder.take()?.save(self.share, index, &written)
    }

    fn write(&self, cell: &Cell) -> Result<CrashWritten, GuestError> {
        let task = CrashWriteTask { database: self.database(cell), commits: cell.transactions };
        Ok(Asker::new(&self.workers).ask(&task)?)
    }

    fn load(&mut self, index: usize) -> Result<(), GuestError> {
        if self.recording.as_ref().is_none_or(|(loaded, _)| *loaded != index) {
            self.recording = None;
            let mut recording = Recording::load(self.share, index)?;
            if self.job.ignore_flushes {
                recording.history = recording.history.without_promises();
            }
            self.recording = Some((index, recording));
        }
        Ok(())
    }

    /// What recovery makes of `store`.
    fn verdict(
        &self,
        cell: &Cell,
        promise: Promise,
        store: Store,
    ) -> Result<(CrashVerdict, Option<CrashVerdict>), GuestError> {
        let without_latency = Assembly::named("ram")?;
        let device = EmulatedDevice::with_store(&without_latency, self.job.setting.device_bytes, store, ());
        let emulated = Emulated::serve(1, &without_latency, device)?;
        let volume = match Volume::mount(&LabVolume::of(cell), emulated.node(), None) {
            Ok(volume) => volume,
            Err(reason) => return Ok((CrashVerdict::Unmountable(reason.to_string()), None)),
        };
        forget_processes();
        let checked = self.check(cell, promise)?;
        let unmounted = volume.unmount();
        match (checked.verdict, unmounted) {
            (CrashVerdict::Sound(_) | CrashVerdict::Lost(_), Err(reason)) => {
                Ok((CrashVerdict::Unusable(reason.to_string()), checked.stock))
            }
            (verdict, _) => Ok((verdict, checked.stock)),
        }
    }

    fn check(&self, cell: &Cell, promise: Promise) -> Result<CrashChecked, GuestError> {
        let own_layout = cell.waldio_options.iter().any(|option| option == "layout=embedded");
        let copy = (cell.mode == JournalMode::Waldio && !own_layout).then(|| COPY.to_owned());
        if let Some(directory) = &copy {
            fs::create_dir_all(directory).map_err(cannot(format!("make {directory}")))?;
        }
        let task = CrashCheckTask { database: self.database(cell), promise, copy };
        Ok(Asker::new(&self.workers).ask(&task)?)
    }

    fn database(&self, cell: &Cell) -> CrashDatabase {
        let extension = (cell.mode == JournalMode::Waldio).then(|| guest_path::WALDIO.to_owned());
        CrashDatabase {
            libraries: Libraries {
                sqlite: Some(self.job.setting.sqlite.clone()),
                extension,
                ..Libraries::default()
            },
            file: format!("{}/crash.db", guest_path::VOLUME),
            mode: cell.mode,
            synchronous: cell.synchronous,
            waldio_options: cell.waldio_settings(),
        }
    }
}

/// The cut of `unit`, and the device that it leaves. The same recording, seed and unit give the same.
fn cut(recording: &Recording, unit: Unit, seed: u64, torn: bool) -> (CutResult, Store) {
    let mut chance = Chance::new(seed ^ (unit.cell as u64) << 48 ^ unit.state << 16);
    let events = &recording.written.events;
    let within = Span {
        begin_ns: events.first().map_or(0, |event| event.begin_ns),
        end_ns: events.last().map_or(0, |event| event.end_ns),
    };
    let is_commit = |event: &&CrashEvent| event.commit.is_some();
    let resets: Vec<Span> = events.iter().filter(|event| !is_commit(event)).map(span_of).collect();
    let acknowledgements: Vec<u64> = events.iter().filter(is_commit).map(|event| event.end_ns).collect();
    let (word, place) = match unit.state % 4 {
        0 => ("anywhere", Place::Anywhere),
        1 => ("flush", Place::Flush),
        2 => ("checkpoint", Place::During(&resets)),
        _ => ("acknowledged", Place::At(&acknowledgements)),
    };
    let at_ns = moment(&recording.logged, within, place, &mut chance);
    let cut = Cut::at(&recording.logged, at_ns);
    let states = CrashStates::new(&recording.history, cut);
    let picks = states.picks(PICKS, chance.next(), torn);
    let pick = picks[usize::try_from(chance.below(picks.len() as u64)).unwrap_or(0)];
    let mut store = recording.base.clone();
    states.put_on(&mut store, pick);
    let cut = CutResult {
        place: word.to_owned(),
        at_ns,
        completed: cut.completed,
        in_flight: cut.in_flight,
        volatile_writes: states.volatile_writes(),
        kept: format!("{pick:?}"),
        promise: promise_at(events, at_ns),
    };
    (cut, store)
}

fn span_of(event: &CrashEvent) -> Span {
    Span { begin_ns: event.begin_ns, end_ns: event.end_ns }
}

fn promise_at(events: &[CrashEvent], at_ns: u64) -> Promise {
    let last = |until: fn(&CrashEvent) -> u64| {
        let commits = events.iter().filter(|event| until(event) <= at_ns).filter_map(|event| event.commit);
        commits.max().unwrap_or(0)
    };
    Promise { acknowledged: last(|event| event.end_ns), begun: last(|event| event.begin_ns) }
}

/// How long before a moment the COMMIT of this number had returned.
fn age_ns(events: &[CrashEvent], number: u64, at_ns: u64) -> Option<u64> {
    let commit = events.iter().find(|event| event.commit == Some(number))?;
    Some(at_ns.saturating_sub(commit.end_ns))
}

/// What processes before the cut left in memory.
fn forget_processes() {
    for entry in fs::read_dir(SHARED_MEMORY).into_iter().flatten().flatten() {
        let _ = fs::remove_file(entry.path());
    }
}
