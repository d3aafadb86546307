//! A process with several writers, each a thread with a connection of its own, that a test starts, stops and kills.
//!
//! Each notes the newest row whose COMMIT returned, 8 bytes at its place in a file: a file keeps what was written when
//! its writer is killed, and nobody waits for whoever reads it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

use super::child::{Running, again, role};
use super::promises::Gone;
use super::sqlite::system;

/// Nobody's turn takes longer, on the slowest machine: who has not moved after this hangs.
const TURN_MAX: Duration = Duration::from_secs(60);

/// What a crew does.
#[derive(Debug, Clone)]
pub struct Orders {
    /// The database, which has the table of `promises`.
    pub database: PathBuf,
    /// Unlike every other crew's.
    pub name: String,
    /// How many threads write.
    pub writers: usize,
    /// How many rows each of them commits.
    pub commits: u64,
    /// Parameters of the URI.
    pub parameters: &'static str,
    /// PRAGMA synchronous.
    pub synchronous: &'static str,
}

/// A crew at work; killed when dropped.
pub struct Crew {
    orders: Orders,
    running: Running,
}

impl Orders {
    /// Four writers without end, each COMMIT durable.
    pub fn new(database: &Path, name: &str) -> Orders {
        let (database, name) = (database.to_path_buf(), name.to_owned());
        Orders { database, name, writers: 4, commits: u64::MAX, parameters: "", synchronous: "FULL" }
    }

    fn notes(&self) -> PathBuf {
        self.database.with_file_name(format!("{}.notes", self.name))
    }

    fn acknowledged(&self) -> Vec<u64> {
        let notes = File::open(self.notes()).unwrap();
        let newest = |index: usize| {
            let mut note = [0; 8];
            // A writer that has committed nothing has no note.
            let _ = notes.read_exact_at(&mut note, index as u64 * 8);
            u64::from_le_bytes(note)
        };
        (0..self.writers).map(newest).collect()
    }

    fn gone(&self) -> Vec<Gone> {
        let gone = |(index, acknowledged)| Gone { name: format!("{}-{index}", self.name), acknowledged };
        self.acknowledged().into_iter().enumerate().map(gone).collect()
    }

    /// Starts the crew: the test `test` runs again, which must begin with `at_work`.
    pub fn start(self, test: &str) -> Crew {
        let (writers, commits) = (self.writers.to_string(), self.commits.to_string());
        let (database, notes) = (self.database.to_str().unwrap(), self.notes());
        let notes = notes.to_str().unwrap();
        File::create(notes).unwrap();
        let arguments = [database, notes, &self.name, &writers, &commits, self.parameters, self.synchronous];
        let running = Running::start(&mut again(test, &arguments));
        Crew { orders: self, running }
    }
}

/// True in the process of a crew that `test` started, when its work is done: the test returns.
pub fn at_work(test: &str) -> bool {
    let Some(arguments) = role(test) else { return false };
    let [database, notes, name, writers, commits, parameters, synchronous] = &arguments[..] else {
        panic!("not a crew's orders: {arguments:?}")
    };
    // A test that is killed leaves nobody behind.
    set_parent_process_death_signal(Some(Signal::KILL)).unwrap();
    system().load(None).unwrap();
    let notes = File::options().write(true).open(notes).unwrap();
    let (commits, uri): (u64, _) = (commits.parse().unwrap(), format!("file:{database}?{parameters}"));
    thread::scope(|scope| {
        for index in 0..writers.parse().unwrap() {
            let (notes, uri) = (&notes, &uri);
            scope.spawn(move || {
                let db = system().open_with(uri, None).unwrap();
                db.busy_timeout(60_000);
                db.rows(&format!("PRAGMA synchronous={synchronous}; PRAGMA wal_autocheckpoint=150"));
                for seq in 1..=commits {
                    let content = format!("hex(zeroblob({}))", seq % 12 * 40);
                    db.rows(&format!("INSERT INTO rows VALUES ('{name}-{index}', {seq}, {content})"));
                    notes.write_all_at(&seq.to_le_bytes(), index * 8).unwrap();
                }
            });
        }
    });
    true
}

impl Crew {
    /// The newest row that each writer knows to be committed.
    pub fn acknowledged(&self) -> Vec<u64> {
        self.orders.acknowledged()
    }

    /// Returns when each writer has committed something since this call.
    #[track_caller]
    pub fn goes_on(&self) {
        let (before, began) = (self.acknowledged(), Instant::now());
        while self.acknowledged().iter().zip(&before).any(|(now, before)| now <= before) {
            let now = self.acknowledged();
            assert!(began.elapsed() < TURN_MAX, "{}: somebody hangs: {before:?}, {now:?}", self.orders.name);
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// SIGKILL; what each writer had.
    #[track_caller]
    pub fn kill(mut self) -> Vec<Gone> {
        self.running.kill();
        self.running.finish();
        self.orders.gone()
    }

    /// Waits for the end of the work, which must be good; what each writer had.
    #[track_caller]
    pub fn finish(self) -> Vec<Gone> {
        let (lines, well) = self.running.finish();
        assert!(well, "{} failed: {lines:?}", self.orders.name);
        self.orders.gone()
    }

    /// Stops the process where it is; returns when all its threads stand.
    pub fn stop(&self) {
        self.send(Signal::STOP);
        let began = Instant::now();
        while self.threads().iter().any(|thread| !is_stopped(thread)) {
            assert!(began.elapsed() < TURN_MAX, "{} cannot be stopped", self.orders.name);
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets a stopped process go on.
    pub fn go(&self) {
        self.send(Signal::CONT);
    }

    /// Whether a thread of the stopped process was inside of fdatasync; `None` where that number is not known.
    pub fn is_in_flush(&self) -> Option<bool> {
        let fdatasync = match std::env::consts::ARCH {
            "x86_64" => "75 ",
            "aarch64" => "83 ",
            _ => return None,
        };
        let call = |thread: &PathBuf| fs::read_to_string(thread.join("syscall")).unwrap_or_default();
        Some(self.threads().iter().any(|thread| call(thread).starts_with(fdatasync)))
    }

    /// How long its threads were ready to run and did not, because others had the processor; zero where the kernel does
    /// not tell.
    pub fn kept_from_the_processor(&self) -> Duration {
        let kept = |thread: &PathBuf| {
            let times = fs::read_to_string(thread.join("schedstat")).ok()?;
            times.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
        };
        self.threads().iter().filter_map(kept).sum()
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.running.id().try_into().unwrap()).unwrap(), signal).unwrap();
    }

    /// The folder of each thread below /proc.
    fn threads(&self) -> Vec<PathBuf> {
        let folder = format!("/proc/{}/task", self.running.id());
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}

fn is_stopped(thread: &Path) -> bool {
    let stat = fs::read_to_string(thread.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
}
