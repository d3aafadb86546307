//! Cuts the power at every flush of a recorded workload, in every state that it can leave, and judges what recovers.

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use blockio::simulated::crash_states::{Bounds, Pick, Recipe};
use blockio::simulated::image::Image;
use blockio::simulated::log::Op;

use super::history::{Failed, History, Rows, check_payload, read_rows};
use super::machine::{DATABASE, LOG, Machine, Side};
use super::sqlite::{Connection, with_any_random};
use super::workload::{Recording, Step, Synchronous, Workload, record_from};

/// How thoroughly to look.
#[derive(Debug, Clone, Copy)]
pub struct Effort {
    /// States for each flush.
    pub bounds: Bounds,
    /// One state of so many is crashed again during recovery and what follows; 0 for none.
    pub second_crash_every: u64,
    /// One state of so many is opened with the system's sqlite3 on real files; 0 for none.
    pub system_every: u64,
}

/// What was looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stats {
    /// Recorded workloads.
    pub workloads: u64,
    /// Flushes at which the power was cut.
    pub cuts: u64,
    /// Different states that were recovered.
    pub states: u64,
    /// States after a second cut.
    pub second_states: u64,
    /// States opened with the system's sqlite3.
    pub system_states: u64,
    /// States that SQLite alone refused to open, as it should.
    pub refused: u64,
}

/// A state whose recovery broke a promise, and all that it takes to see it again.
#[derive(Debug, Clone)]
pub struct Failure {
    workload: String,
    position: usize,
    at: String,
    recipe: Recipe,
    judge: String,
    what: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { workload, position, at, recipe, judge, what } = self;
        write!(
            formatter,
            "{what}\n  workload {workload}\n  cut before the return of record {position}, {at}\n  \
             state {recipe}\n  recovered with {judge}"
        )
    }
}

/// Explores recordings; remembers the states that it has seen.
pub struct Explorer<'machines> {
    judges: Vec<&'machines Machine>,
    effort: Effort,
    seen: HashSet<(u64, u64, u64)>,
    /// What was looked at.
    pub stats: Stats,
    /// Looks only at the states in which nothing that no flush promised reached the medium: there what was promised must be, and of
    /// a transaction that was not promised a part may be, as a checkpoint with `synchronous=OFF` leaves it.
    pub floor_only: bool,
    scratch: Option<PathBuf>,
}

/// What was run, as far as the judgement needs it.
#[derive(Debug, Clone)]
pub struct Scene {
    /// For messages.
    pub title: String,
    /// PRAGMA page_size.
    pub page_bytes: u32,
    /// PRAGMA synchronous.
    pub synchronous: Synchronous,
}

impl Scene {
    /// The scene of a workload of one connection.
    pub fn of(workload: &Workload) -> Scene {
        let Workload { page_bytes, synchronous, .. } = *workload;
        Scene { title: workload.to_string(), page_bytes, synchronous }
    }
}

struct Cut<'run> {
    scene: &'run Scene,
    history: &'run History,
    failed: &'run [Failed],
    acked: u64,
    /// What recovery may find here, where the moments of publication are known.
    expected: u64,
    position: usize,
    at: String,
    floor_only: bool,
}

impl Cut<'_> {
    fn failure(&self, recipe: Recipe, judge: &str, what: String) -> Box<Failure> {
        let failed = self.failed.first().map(|failed| format!("; failed {failed:?}")).unwrap_or_default();
        let workload = format!("{}{failed}", self.scene.title);
        let (position, at) = (self.position, self.at.clone());
        Box::new(Failure { workload, position, at, recipe, judge: judge.to_owned(), what })
    }

    /// The number of the state that `rows` are, when it is allowed after this cut.
    fn judge(&self, rows: &Rows) -> Result<u64, String> {
        if self.floor_only && self.history.find(rows).is_none() && self.history.has_all_of(self.acked, rows) {
            return Ok(self.acked);
        }
        let with_failed = || self.failed.iter().find_map(|failed| self.history.find_with(rows, failed));
        let number = self.history.find(rows).or_else(with_failed).ok_or_else(|| {
            let newest = self.history.rows();
            format!("the recovered rows {rows:?} are no state that was ever published; newest {newest:?}")
        })?;
        if number < self.acked {
            return Err(format!("state {number} was recovered although {} was acknowledged", self.acked));
        }
        Ok(number)
    }
}

impl<'machines> Explorer<'machines> {
    /// Recovers each state on each of `judges`.
    pub fn new(judges: Vec<&'machines Machine>, effort: Effort) -> Self {
        // One for each explorer: tests of one process run at the same time, and each removes its own.
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let scratch = std::env::temp_dir().join(format!("crash-states-{}-{count}", std::process::id()));
        let scratch = (effort.system_every > 0 && system_sqlite_works()).then_some(scratch);
        Explorer { judges, effort, seen: HashSet::new(), stats: Stats::default(), floor_only: false, scratch }
    }

    /// Cuts the power in `recording` of `workload` wherever it matters.
    pub fn explore(&mut self, workload: &Workload, recording: &Recording) -> Result<(), Box<Failure>> {
        self.explore_scene(&Scene::of(workload), recording)
    }

    /// The same, whoever made the recording.
    pub fn explore_scene(&mut self, scene: &Scene, recording: &Recording) -> Result<(), Box<Failure>> {
        self.stats.workloads += 1;
        self.walk(scene, recording, true)
    }

    fn walk(&mut self, scene: &Scene, recording: &Recording, first: bool) -> Result<(), Box<Failure>> {
        let mut replay = recording.start.clone();
        let mut acked = 0;
        let mut note = String::new();
        let last = recording.records.len() - 1;
        for (position, record) in recording.records.iter().enumerate() {
            replay.begin(record);
            match &record.op {
                Op::Ack(number) => acked = acked.max(*number),
                Op::Mark(text) => note.clone_from(text),
                _ => {}
            }
            if record.is_flush() || position == last {
                self.stats.cuts += 1;
                let at = format!("{} in step {note}", name_of(&record.op));
                let cut = Cut {
                    scene,
                    history: &recording.history,
                    failed: &recording.failed,
                    acked,
                    expected: expected(recording, acked, position),
                    position,
                    at,
                    floor_only: self.floor_only,
                };
                for (recipe, image) in replay.states(&self.effort.bounds) {
                    if self.floor_only && !matches!(recipe.pick, Pick::Prefix(0) | Pick::Combination(0)) {
                        continue;
                    }
                    self.state(&cut, recipe, &image, first)?;
                }
            }
            replay.end(record);
        }
        Ok(())
    }

    fn state(
        &mut self,
        cut: &Cut<'_>,
        recipe: Recipe,
        image: &Image,
        first: bool,
    ) -> Result<(), Box<Failure>> {
        let synchronous = u64::from(cut.scene.synchronous == Synchronous::Full);
        let print = image.fingerprint();
        if !self.seen.insert((print, cut.acked << 1 | synchronous, cut.expected)) {
            return Ok(());
        }
        let count = if first { &mut self.stats.states } else { &mut self.stats.second_states };
        *count += 1;
        for judge in self.judges.clone() {
            let who = format!("{:?}", judge.side);
            let number = recover(judge, cut, image).map_err(|what| cut.failure(recipe, &who, what))?;
            let Some(number) = number else {
                self.stats.refused += 1;
                continue;
            };
            if first && is_sample(print, self.effort.second_crash_every) {
                self.crash_again(judge, cut, image, number)
                    .map_err(|inner| cut.failure(recipe, &who, format!("after a second crash: {inner}")))?;
            }
        }
        if first && is_sample(print, self.effort.system_every) {
            self.system(cut, image).map_err(|what| cut.failure(recipe, "the system's sqlite3", what))?;
        }
        Ok(())
    }

    /// Recovers, commits, checkpoints, and cuts the power anywhere in that.
    fn crash_again(
        &mut self,
        judge: &Machine,
        cut: &Cut<'_>,
        image: &Image,
        number: u64,
    ) -> Result<(), Box<Failure>> {
        let steps = vec![Step::Commit3, Step::Truncate];
        let Scene { page_bytes, synchronous, .. } = *cut.scene;
        let workload = Workload { steps, page_bytes, synchronous };
        let mut recording = record_from(judge, image, &workload, None, cut.history.until(number), 8);
        for outcome in &recording.outcomes {
            assert_eq!(*outcome, Ok(()), "{workload}");
        }
        // What was promised before the first crash still holds.
        let promise =
            blockio::simulated::log::Record { begin: 0, end: 0, op: Op::Ack(cut.acked), failed: false };
        recording.records.insert(0, promise);
        let bounds = Bounds { exhaustive_units_max: 5, combinations_max: 32, samples: 4, seed: 2 };
        let effort =
            std::mem::replace(&mut self.effort, Effort { bounds, second_crash_every: 0, system_every: 0 });
        let outcome = self.walk(&Scene::of(&workload), &recording, false);
        self.effort = effort;
        outcome
    }

    fn system(&mut self, cut: &Cut<'_>, image: &Image) -> Result<(), String> {
        let Some(scratch) = &self.scratch else { return Ok(()) };
        self.stats.system_states += 1;
        let answer = ask_system_sqlite(scratch, image, cut.scene.page_bytes);
        let may_refuse = self.judges.iter().any(|judge| judge.side == Side::Outsider);
        if may_refuse && answer.as_ref().is_err_and(|what| what.contains("unable to open database file (14)"))
        {
            return Ok(());
        }
        let (integrity, rows) = answer?;
        if integrity != "ok" {
            return Err(format!("integrity_check says {integrity}"));
        }
        cut.judge(&rows).map(|_| ())
    }
}

impl Drop for Explorer<'_> {
    fn drop(&mut self) {
        if let Some(scratch) = &self.scratch {
            // It is missing when no state was sampled.
            let _ = std::fs::remove_dir_all(scratch);
        }
    }
}

/// The states that a cut before record `position` may leave, as one number; that of a commit under way is among them.
fn expected(recording: &Recording, acked: u64, position: usize) -> u64 {
    if recording.published.is_empty() {
        return 0;
    }
    let published = recording.published.iter().filter(|count| **count <= position).count() as u64;
    recording.history.fingerprint(acked, published + 1)
}

/// Whether a state belongs to the one in `every`.
fn is_sample(print: u64, every: u64) -> bool {
    every > 0 && (print >> 20).is_multiple_of(every)
}

fn name_of(op: &Op) -> String {
    match op {
        Op::Write { inode, offset, data, flags } => {
            format!("{flags:?} write of {} at {offset} to {inode}", data.len())
        }
        Op::Mark(text) => format!("mark {text}"),
        other => format!("{other:?}"),
    }
}

/// Opens `image` on `judge` and returns the number of the state that it finds; `None` where it rightly refuses.
fn recover(judge: &Machine, cut: &Cut<'_>, image: &Image) -> Result<Option<u64>, String> {
    let _random = with_any_random();
    judge.boot(image);
    let connection = judge.open().map_err(|error| format!("opening: {error}"))?;
    if judge.side == Side::Outsider && refuses(&connection) {
        connection.close();
        let after = judge.disk.image();
        let same = |path: &str| after.files.get(Path::new(path)) == image.files.get(Path::new(path));
        // A hot journal is rolled back before the log is looked at, and so it should be.
        let journal = image.files.contains_key(Path::new(&format!("{DATABASE}-journal")));
        let same = same(LOG) && (journal || same(DATABASE));
        return if same { Ok(None) } else { Err("it refused the log, and changed a file".to_owned()) };
    }
    let integrity =
        connection.query("PRAGMA integrity_check").map_err(|error| format!("integrity_check: {error}"))?;
    let verdict = integrity[0][0].text();
    if verdict != "ok" {
        return Err(format!("integrity_check says {verdict}"));
    }
    cut.judge(&read_rows(&connection, cut.scene.page_bytes)?).map(Some)
}

/// Whether all that one may try fails, and says that the database cannot be opened.
fn refuses(connection: &Connection) -> bool {
    let tries =
        ["SELECT count(*) FROM t", "DELETE FROM t", "PRAGMA wal_checkpoint", "PRAGMA journal_mode=DELETE"];
    let cannot_open = |sql: &&str| connection.exec(sql).is_err_and(|error| error.code & 0xff == 14);
    tries.iter().all(cannot_open)
}

fn system_sqlite_works() -> bool {
    Command::new("sqlite3").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Opens `image` as real files under `dir` with the system's sqlite3.
fn ask_system_sqlite(dir: &Path, image: &Image, page_bytes: u32) -> Result<(String, Rows), String> {
    let dir = dir.join(format!("{:?}", std::thread::current().id()));
    // A state before this one may have left a log that this one has not.
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
    image.write_into(&dir).map_err(|error| error.to_string())?;
    let output = Command::new("sqlite3")
        .arg(dir.join("app.db"))
        .arg("PRAGMA integrity_check; SELECT id, txn, payload FROM t ORDER BY id;")
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = text.lines();
    let integrity = lines.next().unwrap_or_default().to_owned();
    let mut rows = Rows::new();
    for line in lines {
        let fields: Vec<&str> = line.split('|').collect();
        let [id, txn, payload] = fields[..] else { return Err(format!("line {line:?}")) };
        let (id, txn) = (id.parse().unwrap_or(-1), txn.parse().unwrap_or(-1));
        check_payload(id, txn, payload, page_bytes)?;
        rows.insert(id, txn);
    }
    if !output.status.success() {
        return Err(format!("sqlite3 failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    Ok((integrity, rows))
}
