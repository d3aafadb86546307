//! The matrix of a plan: axes, and the cells that their values make.

use serde::{Deserialize, Serialize};

use crate::bench::key::{JournalMode, LogState, Schema, Synchronous};
use crate::filesystem::Filesystem;
use crate::lab::cell::{
    Cell, CellOrder, FILE_MIB, Feature, PROBE_FILLED_MIB, Recorder, Store, SyncCall, Task,
};

/// Most threads of a cell.
pub const THREADS_MAX: u32 = 64;
/// Largest file of a cell: the emulated device is in the guest's memory.
pub const FILE_MIB_MAX: u32 = 256;
/// Most transactions of a cell.
pub const TRANSACTIONS_MAX: u64 = 1_000_000;

/// Most versions of an LS-MVBT: each transaction has one, those that make the rows before the clock starts too.
pub const LSMVBT_VERSIONS: u64 = 65_534;
/// Most frames of a log without SQLite: the guest has the whole log in memory twice, on its device and beside it.
const FRAMES_MAX: u64 = 10_000;

/// Axes; every combination of their values is a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Matrix {
    pub filesystem: Vec<Filesystem>,
    /// Names of device descriptions.
    pub device: Vec<String>,
    /// What the filesystem is made or mounted with.
    pub feature: Vec<Feature>,
    /// Devices of external journals; an empty name is a journal inside.
    pub journal_device: Vec<String>,
    pub task: Vec<Task>,
    /// Who keeps the rows of a task of SQLite's.
    pub store: Vec<Store>,
    /// Journal modes; `side` in files of version 1.
    #[serde(alias = "side")]
    pub mode: Vec<JournalMode>,
    /// Settings of `PRAGMA synchronous`.
    pub synchronous: Vec<Synchronous>,
    pub sync_call: Vec<SyncCall>,
    pub schema: Vec<Schema>,
    /// States of the log, for WAL, waldio and the models of a log's frames only.
    pub log: Vec<LogState>,
    /// With F2FS's atomic writes, for rollback journals there.
    pub batch_atomic: Vec<bool>,
    /// Whether the directory of a rollback journal is synced.
    pub directory_sync: Vec<bool>,
    /// waldio's options: each value is a list of `name=value`, empty for none.
    pub waldio_options: Vec<Vec<String>>,
    /// Threads that write together.
    pub threads: Vec<u32>,
    /// MiB of the file that is overwritten without SQLite.
    pub file_mib: Vec<u32>,
    /// Transactions of each cell.
    pub transactions: u64,
    /// Names of the recordings that `replay` replays; their files are the user's.
    pub recording: Vec<String>,
    /// Ranges that probes' records are in, MiB; none: 128 MiB.
    pub range_mib: Vec<u64>,
    /// Whether recordings are read as Mobibench reads a MobiGen script.
    pub compat: Vec<bool>,
    /// When recordings' calls are made.
    pub order: Vec<CellOrder>,
    /// Who records what is done.
    pub recorder: Vec<Recorder>,
}

/// What an axis has that its matrix does not name. Filesystem and device have to be named.
impl Default for Matrix {
    fn default() -> Matrix {
        Matrix {
            filesystem: Vec::new(),
            device: Vec::new(),
            feature: vec![Feature::None],
            journal_device: vec![String::new()],
            task: vec![Task::Insert],
            store: vec![Store::Sqlite],
            mode: vec![JournalMode::Off],
            synchronous: vec![Synchronous::Full],
            sync_call: vec![SyncCall::Fdatasync],
            schema: vec![Schema::Waldio],
            log: vec![LogState::Fresh],
            batch_atomic: vec![false],
            directory_sync: vec![true],
            waldio_options: vec![Vec::new()],
            threads: vec![1],
            file_mib: vec![FILE_MIB],
            transactions: 100,
            recording: Vec::new(),
            range_mib: Vec::new(),
            compat: vec![false],
            order: vec![CellOrder::Timed],
            recorder: vec![Recorder::None],
        }
    }
}

/// Where a cell writes.
#[derive(Clone, Copy)]
struct CellPlace<'plan> {
    filesystem: Filesystem,
    feature: Feature,
    device: &'plan str,
    /// Empty where the journal is on the same device.
    journal_device: &'plan str,
}

impl Matrix {
    /// Whether its axes have values that can be.
    /// # Errors
    /// What is wrong, and what it takes instead.
    pub fn check(&self) -> Result<(), String> {
        let needed = [("filesystem", self.filesystem.is_empty()), ("device", self.device.is_empty())];
        if let Some((axis, _)) = needed.iter().find(|(_, is_empty)| *is_empty) {
            return Err(format!("{axis} is missing or empty; name one or more"));
        }
        if self.transactions == 0 || self.transactions > TRANSACTIONS_MAX {
            return Err(format!("transactions = {}; give 1 to {TRANSACTIONS_MAX}", self.transactions));
        }
        let bounds = [("threads", &self.threads, THREADS_MAX), ("file_mib", &self.file_mib, FILE_MIB_MAX)];
        for (axis, values, most) in bounds {
            if let Some(wrong) = values.iter().find(|value| !(1..=most).contains(*value)) {
                return Err(format!("{axis} = {wrong}; give 1 to {most}"));
            }
        }
        self.check_stores()?;
        self.check_frames()?;
        self.check_recordings()?;
        self.check_ranges()?;
        let options = self.waldio_options.iter().flatten();
        let mut wrong =
            options.filter(|option| option.split_once('=').is_none_or(|(name, _)| name.is_empty()));
        match wrong.next() {
            Some(option) => Err(format!(
                "waldio_options has {option:?}; options read NAME=VALUE, for example layout=embedded"
            )),
            None => Ok(()),
        }
    }

    fn check_stores(&self) -> Result<(), String> {
        if self.store.is_empty() {
            return Err("store is empty; give [\"sqlite\"], [\"lsmvbt\"] or both".to_owned());
        }
        if !self.store.contains(&Store::Lsmvbt) {
            return Ok(());
        }
        if self.threads.iter().any(|count| *count > 1) {
            return Err(
                "the store lsmvbt has one thread; leave threads out, or take the store sqlite".to_owned()
            );
        }
        let workloads = self.task.iter().filter_map(|task| task.workload());
        let versions = workloads.map(|workload| workload.rows_before(self.transactions) + self.transactions);
        match versions.max().filter(|versions| *versions > LSMVBT_VERSIONS) {
            Some(versions) => Err(format!(
                "the store lsmvbt has {LSMVBT_VERSIONS} versions, and transactions = {} takes {versions} with the rows before; give \
                 fewer",
                self.transactions
            )),
            None => Ok(()),
        }
    }

    fn check_frames(&self) -> Result<(), String> {
        let has_frames = self.task.iter().any(|task| task.frames().is_some());
        if has_frames && self.transactions > FRAMES_MAX {
            return Err(format!(
                "transactions = {}; a task frames_* takes 1 to {FRAMES_MAX}",
                self.transactions
            ));
        }
        Ok(())
    }

    /// Recordings are there where they are replayed, and nowhere else. Their names are parts of file names.
    fn check_recordings(&self) -> Result<(), String> {
        let is_replayed = self.task.contains(&Task::Replay);
        if is_replayed && self.recording.is_empty() {
            return Err("it has the task replay, and no recording; name one or more".to_owned());
        }
        if !is_replayed && !self.recording.is_empty() {
            return Err("it names recordings, and does not have the task replay".to_owned());
        }
        let is_letter = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
        match self.recording.iter().find(|name| name.is_empty() || !name.chars().all(is_letter)) {
            Some(name) => Err(format!(
                "recording {name:?} has a name that is not of letters, digits, `-` and `_` alone"
            )),
            None => Ok(()),
        }
    }

    fn check_ranges(&self) -> Result<(), String> {
        if !self.range_mib.is_empty() && self.task.iter().all(|task| task.probe().is_none()) {
            return Err("range_mib is of the tasks probe_*, and it has none of them".to_owned());
        }
        match self.range_mib.iter().find(|range_mib| !(1..=PROBE_FILLED_MIB).contains(*range_mib)) {
            Some(wrong) => Err(format!("range_mib = {wrong}; give 1 to {PROBE_FILLED_MIB}")),
            None => Ok(()),
        }
    }

    /// Calls `found` with every combination; the last axis changes fastest.
    pub fn multiply(&self, found: &mut dyn FnMut(Cell)) {
        for device in &self.device {
            for filesystem in &self.filesystem {
                for feature in &self.feature {
                    for journal_device in &self.journal_device {
                        let place =
                            CellPlace { filesystem: *filesystem, feature: *feature, device, journal_device };
                        for task in &self.task {
                            self.threads
                                .iter()
                                .for_each(|count| self.tasks(self.first(place, *task, *count), found));
                        }
                    }
                }
            }
        }
    }

    fn first(&self, place: CellPlace<'_>, task: Task, threads: u32) -> Cell {
        let CellPlace { filesystem, feature, device, journal_device } = place;
        Cell {
            filesystem,
            feature,
            device: device.to_owned(),
            journal_device: (!journal_device.is_empty()).then(|| journal_device.to_owned()),
            task,
            store: Store::Sqlite,
            mode: JournalMode::Off,
            synchronous: Synchronous::Full,
            sync_call: SyncCall::Fdatasync,
            schema: Schema::Waldio,
            log: LogState::None,
            batch_atomic: false,
            directory_sync: true,
            waldio_options: Vec::new(),
            threads,
            file_mib: FILE_MIB,
            transactions: self.transactions,
            recording: None,
            range_mib: None,
            compat: false,
            order: CellOrder::Timed,
            recorder: Recorder::None,
        }
    }

    /// The axes that concern what is done. Where SQLite does not run only the sync call matters.
    fn tasks(&self, cell: Cell, found: &mut dyn FnMut(Cell)) {
        if cell.task == Task::Replay {
            return self.replays(&cell, found);
        }
        for sync_call in &self.sync_call {
            let cell = Cell { sync_call: *sync_call, ..cell.clone() };
            if cell.task.probe().is_some() && !self.range_mib.is_empty() {
                let of_range = |range_mib: &u64| Cell { range_mib: Some(*range_mib), ..cell.clone() };
                self.range_mib.iter().for_each(|range_mib| self.recorders(&of_range(range_mib), found));
                continue;
            }
            if matches!(cell.task, Task::WriteSequential | Task::WriteRandom) {
                let of_size = |mib: &u32| Cell { file_mib: *mib, ..cell.clone() };
                self.file_mib.iter().for_each(|mib| self.recorders(&of_size(mib), found));
                continue;
            }
            if cell.task.frames().is_some() {
                let of_log = |log: &LogState| Cell { log: *log, ..cell.clone() };
                self.log.iter().for_each(|log| self.recorders(&of_log(log), found));
                continue;
            }
            if cell.task.workload().is_none() {
                self.recorders(&cell, found);
                continue;
            }
            if self.store.contains(&Store::Lsmvbt) {
                self.recorders(&Cell { store: Store::Lsmvbt, ..cell.clone() }, found);
            }
            if !self.store.contains(&Store::Sqlite) {
                continue;
            }
            for schema in &self.schema {
                for mode in &self.mode {
                    for synchronous in &self.synchronous {
                        let cell =
                            Cell { schema: *schema, mode: *mode, synchronous: *synchronous, ..cell.clone() };
                        self.rollback_journals(&cell, found);
                    }
                }
            }
        }
    }

    fn replays(&self, cell: &Cell, found: &mut dyn FnMut(Cell)) {
        for recording in &self.recording {
            for compat in &self.compat {
                for order in &self.order {
                    let (recording, compat, order) = (Some(recording.clone()), *compat, *order);
                    found(Cell { recording, compat, order, transactions: 1, ..cell.clone() });
                }
            }
        }
    }

    fn rollback_journals(&self, cell: &Cell, found: &mut dyn FnMut(Cell)) {
        for batch_atomic in &self.batch_atomic {
            for directory_sync in &self.directory_sync {
                let (batch_atomic, directory_sync) = (*batch_atomic, *directory_sync);
                self.logs(&Cell { batch_atomic, directory_sync, ..cell.clone() }, found);
            }
        }
    }

    /// Journal modes without a log have one state of it, and stock SQLite no options of waldio.
    fn logs(&self, cell: &Cell, found: &mut dyn FnMut(Cell)) {
        let states: &[LogState] = if cell.mode.has_log() { &self.log } else { &[LogState::None] };
        let none = vec![Vec::new()];
        let options = if cell.mode.uses_waldio() { &self.waldio_options } else { &none };
        for log in states {
            for waldio_options in options {
                let cell = Cell { log: *log, waldio_options: waldio_options.clone(), ..cell.clone() };
                self.recorders(&cell, found);
            }
        }
    }

    fn recorders(&self, cell: &Cell, found: &mut dyn FnMut(Cell)) {
        self.recorder.iter().for_each(|recorder| found(Cell { recorder: *recorder, ..cell.clone() }));
    }
}
