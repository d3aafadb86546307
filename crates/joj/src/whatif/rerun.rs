//! The program itself, run in each configuration that running it can have: the truth beside the forecast.
//!
//! Each run begins with a copy of the directory in which joj stands, and the copy goes at its end.

use std::collections::HashMap;
use std::fs::Metadata;
use std::path::{Component, Path, PathBuf};

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::CallKind;
use joj_analysis::recording::flags::{O_ACCMODE, O_CREAT, O_RDONLY};
use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::left_out::syncs_in_a_queue;
use joj_analysis::recording::whatif::outcome::WhatifRerun;
use joj_analysis::recording::whatif::variants;
use joj_analysis::statistics::Estimate;

use crate::machine::files::counters::settle;
use crate::machine::files::place::Place;
use crate::machine::files::work_dir::WorkDir;
use crate::machine::proc::clock::shared_ns;
use crate::machine::proc::seccomp;
use crate::machine::proc::signal::is_stopped;
use crate::machine::proc::watched_command::WatchedCommand;
use crate::replay::error::ReplayError;
use crate::replay::{plan, room};
use crate::show::text::duration;
use crate::whatif::directory_copy::error::CopyError;
use crate::whatif::directory_copy::files;
use crate::whatif::directory_copy::place::CopyPlace;
use crate::whatif::left_behind::LeftBehind;
use crate::whatif::memory;

/// Rounds where the options name no number.
const ROUNDS: u32 = 3;
/// Then they end before this time is over, but for the first.
const ROUNDS_NS_MAX: u64 = 60_000_000_000;
/// What no copy has, and what is no file.
const NO_FILES: [&str; 3] = ["/dev/", "/proc/", "/sys/"];

/// A program that is run again and again.
#[derive(Debug)]
pub struct Rerun<'a> {
    /// The program and its words.
    pub words: Vec<String>,
    /// The directory whose files it begins with: joj's own working directory.
    pub origin: PathBuf,
    /// Its owner, mode and times before joj made anything in it.
    pub facts: Metadata,
    /// The directory on the disk that is measured, below which copies are made.
    pub directory: &'a Path,
}

/// Where the program runs, and how.
#[derive(Debug, Clone, Copy)]
struct RerunWay {
    in_memory: bool,
    without_syncs: bool,
}

impl Rerun<'_> {
    /// Bytes of a copy.
    /// # Errors
    /// Files that cannot be read, or that have no room on the disk.
    pub fn bytes(&self) -> Result<u64, ReplayError> {
        let bytes = files::bytes(&self.origin, self.directory).map_err(|error| self.not_copied(error))?;
        room::check(self.directory, bytes, "the files of this directory")?;
        Ok(bytes)
    }

    /// A copy on the disk, on the medium before it is given.
    /// # Errors
    /// A signal, or a file that cannot be copied.
    pub fn copy(&self, left: &mut LeftBehind) -> Result<CopyPlace, ReplayError> {
        let copy = self.copy_below(plan::make_private(self.directory, "joj-whatif")?, left)?;
        settle(self.directory);
        Ok(copy)
    }

    fn copy_below(&self, work_dir: WorkDir, left: &mut LeftBehind) -> Result<CopyPlace, ReplayError> {
        let problem = |error| self.not_copied(error);
        let copy = CopyPlace::below(work_dir).map_err(problem)?;
        let not_taken =
            files::copy(&self.origin, copy.path(), &self.facts, self.directory).map_err(problem)?;
        left.copied(&copy, not_taken);
        copy.let_pass(&self.origin).map_err(problem)?;
        Ok(copy)
    }

    fn not_copied(&self, error: CopyError) -> ReplayError {
        match error {
            CopyError::Stopped => ReplayError::Stopped,
            CopyError::File(path, error) => ReplayError::of_copy(self.directory, path, error),
        }
    }

    /// A word of the command that names a file outside of the directory by `..`, and the file's whole path: from a copy it names another.
    pub fn outside(&self) -> Option<(&str, PathBuf)> {
        self.words.iter().find_map(|word| {
            let path = Path::new(word);
            let goes_up = path.is_relative() && path.components().any(|part| part == Component::ParentDir);
            let whole = goes_up.then(|| self.origin.join(path).canonicalize().ok()).flatten()?;
            (!whole.starts_with(&self.origin)).then_some((word.as_str(), whole))
        })
    }

    /// A file of the directory itself that the program writes, where it is recorded in the directory `copy`.
    pub fn written_itself(&self, recording: &Recording, copy: &CopyPlace) -> Option<String> {
        written(recording, copy.whole())
            .find(|path| Path::new(path).starts_with(&self.origin))
            .map(str::to_owned)
    }

    /// Runs the program in each of the rows; it is recorded, and ended with this code then, in the directory `copy`.
    /// # Errors
    /// A signal, or no copy can be made.
    pub fn run(
        &self,
        rows: &[Configuration],
        recording: &Recording,
        (copy, exit_code): (&CopyPlace, i32),
        rounds: Option<u32>,
        left: &mut LeftBehind,
    ) -> Result<Vec<WhatifRerun>, ReplayError> {
        let bytes = most_bytes(self.bytes()?, recording, copy.whole());
        let outside = written_outside(recording, copy.whole());
        let mut ways: Vec<Result<RerunWay, String>> =
            rows.iter().map(|row| way(*row, outside.as_deref(), syncs_that_stay(recording))).collect();
        let mut elapsed_ns: Vec<Vec<f64>> = vec![Vec::new(); rows.len()];
        let begin_ns = shared_ns();
        let wanted = rounds.unwrap_or(ROUNDS);
        for round in 0..wanted {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for row in order {
                let Ok(way) = ways[row] else { continue };
                let found = self.one(way, bytes, exit_code, left)?;
                match found {
                    Ok(ns) => {
                        let (title, took) = (rows[row].title(), duration(ns));
                        eprintln!("joj: run {} of {wanted}, {title}: {took}", round + 1);
                        elapsed_ns[row].push(ns as f64);
                    }
                    Err(reason) => ways[row] = Err(reason),
                }
            }
            let passed_ns = shared_ns() - begin_ns;
            if rounds.is_none() && passed_ns + passed_ns / u64::from(round + 1) > ROUNDS_NS_MAX {
                break;
            }
        }
        let outcome = |(way, elapsed_ns): (Result<RerunWay, String>, Vec<f64>)| match (
            way,
            Estimate::of(&elapsed_ns),
        ) {
            (Ok(_), Some(elapsed_ns)) => WhatifRerun::Measured(elapsed_ns),
            (Err(reason), _) => WhatifRerun::Unavailable(reason),
            (Ok(_), None) => WhatifRerun::Unavailable("it was not run".to_owned()),
        };
        Ok(ways.into_iter().zip(elapsed_ns).map(outcome).collect())
    }

    /// How long one run takes, or why this row cannot be had.
    fn one(
        &self,
        way: RerunWay,
        bytes: u64,
        exit_code: i32,
        left: &mut LeftBehind,
    ) -> Result<Result<u64, String>, ReplayError> {
        let work_dir = if way.in_memory {
            match memory::directory(bytes, "the files and all that the program writes") {
                Ok(work_dir) => work_dir,
                Err(reason) => return Ok(Err(reason)),
            }
        } else {
            plan::make_private(self.directory, "joj-whatif")?
        };
        let copy = match self.copy_below(work_dir, left) {
            Err(ReplayError::Full { what, .. }) if way.in_memory => {
                let why = "bytes, or inodes (`df -i`), are all used";
                return Ok(Err(format!("{what} in {}: {why}", memory::SHARED_MEMORY)));
            }
            copy => copy?,
        };
        settle(self.directory);
        let filter = if way.without_syncs { seccomp::without_syncs() } else { None };
        let begin_ns = shared_ns();
        let mut command = match WatchedCommand::start_in(&self.words, copy.path(), filter) {
            Ok(command) => command,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let ended = command.wait();
        let elapsed_ns = shared_ns() - begin_ns;
        left.clear(&copy);
        left.remove(copy);
        if is_stopped() {
            return Err(ReplayError::Stopped);
        }
        if ended != exit_code {
            return Ok(Err(format!(
                "the program ended with {ended} there, and with {exit_code} when it was recorded"
            )));
        }
        Ok(Ok(elapsed_ns))
    }
}

/// How a configuration is had by running the program, or why it is not.
fn way(row: Configuration, outside: Option<&str>, syncs_stay: Option<&str>) -> Result<RerunWay, String> {
    match row {
        Configuration::Recorded => Ok(RerunWay { in_memory: false, without_syncs: false }),
        Configuration::AllInMemory => match outside {
            None => Ok(RerunWay { in_memory: true, without_syncs: false }),
            Some(path) => Err(format!("the program writes {path}, which is not below this directory")),
        },
        Configuration::NoSync => match syncs_stay {
            Some(why) => Err(why.to_owned()),
            None if seccomp::without_syncs().is_none() => {
                Err("the numbers of this processor's system calls are not known to joj".to_owned())
            }
            None => Ok(RerunWay { in_memory: false, without_syncs: true }),
        },
        Configuration::CachesNoSync | Configuration::ByClass => {
            Err("a filter of system calls does not know which file a sync is of".to_owned())
        }
        Configuration::DatabasesInMemory | Configuration::CachesInMemory => {
            Err("only the program itself can put these files elsewhere".to_owned())
        }
        Configuration::Wal | Configuration::Normal => {
            Err("the program itself sets journal_mode and synchronous".to_owned())
        }
        Configuration::Waldio | Configuration::Bounded => {
            Err("the program itself has to load waldio".to_owned())
        }
    }
}

/// Bytes that a copy of so many takes at most while the program runs: it may make files and remove them again. What is left in `copy`
/// shows what the recording does not have, as copy_file_range.
fn most_bytes(bytes: u64, recording: &Recording, copy: &Path) -> u64 {
    let opened = opened(recording);
    let takes = recording.calls.iter().filter(|call| {
        let path = opened.get(&call.description);
        call.result >= 0 && path.is_none_or(|path| !NO_FILES.iter().any(|place| path.starts_with(place)))
    });
    let written = takes.map(|call| match call.kind {
        CallKind::Fallocate => call.bytes,
        kind if kind.is_write() => call.result.unsigned_abs(),
        _ => 0,
    });
    let written = written.fold(0, u64::saturating_add);
    bytes.saturating_add(written).max(files::bytes(copy, copy).unwrap_or(0))
}

/// The path with which each open file description was opened.
fn opened(recording: &Recording) -> HashMap<u32, &str> {
    let opens = recording.calls.iter().filter(|call| call.kind == CallKind::Open && call.result >= 0);
    opens.map(|call| (call.description, recording.texts.get(call.path))).collect()
}

/// Why the filter does not stop all that the program makes durable.
fn syncs_that_stay(recording: &Recording) -> Option<&'static str> {
    if variants::has_durable_writes(recording) {
        return Some("the program opens or writes files with O_SYNC, O_DSYNC and the like, which stay");
    }
    syncs_in_a_queue(recording).then_some(
        "the program uses io_submit or io_uring, and syncs that it asks for so are not stopped by the filter",
    )
}

/// A file on a disk that the program writes and that is not in the directory in which it was recorded.
fn written_outside(recording: &Recording, copy: &Path) -> Option<String> {
    let is_on_disk = |path: &&str| {
        Path::new(path).parent().is_none_or(|above| Place::of(above).filesystem.kind != "tmpfs")
    };
    written(recording, copy).find(is_on_disk).map(str::to_owned)
}

/// Files that the program writes or whose attributes it sets, and that are not in the directory in which it was recorded.
fn written<'a>(recording: &'a Recording, copy: &'a Path) -> impl Iterator<Item = &'a str> {
    let is_outside = move |path: &&str| {
        let path = Path::new(path);
        path.is_absolute() && !path.starts_with(copy) && !NO_FILES.iter().any(|place| path.starts_with(place))
    };
    let opened = opened(recording);
    let written = recording.calls.iter().filter(|call| call.result >= 0).filter(|call| match call.kind {
        CallKind::SetAttributes | CallKind::FsetAttributes => true,
        CallKind::Open => call.flags & O_ACCMODE != O_RDONLY || call.flags & O_CREAT != 0,
        CallKind::Truncate | CallKind::Rename | CallKind::Link | CallKind::Symlink => true,
        CallKind::Unlink | CallKind::Mkdir | CallKind::Rmdir => true,
        _ => false,
    });
    let paths = written.flat_map(move |call| {
        let path = recording.texts.get(call.path);
        match call.kind {
            CallKind::Rename | CallKind::Link => [path, recording.texts.get(call.second_path)],
            CallKind::FsetAttributes => [opened.get(&call.description).copied().unwrap_or_default(); 2],
            _ => [path; 2],
        }
    });
    paths.filter(is_outside)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use joj_analysis::recording::call::RecordedCall;
    use joj_analysis::trace::header::RecordingFacts;

    use super::*;

    #[test]
    fn a_file_that_is_written_elsewhere_is_found() {
        let copy = Path::new("/usr/copy");
        let found = |kind: CallKind, path: &str, flags: u32| {
            let mut recording = Recording::default();
            let path = recording.texts.keep(path);
            recording.calls.push(RecordedCall { kind, path, flags, ..RecordedCall::default() });
            written_outside(&recording, copy)
        };
        assert_eq!(found(CallKind::Open, "/usr/other", 1).as_deref(), Some("/usr/other"));
        for kind in [CallKind::Unlink, CallKind::SetAttributes] {
            assert_eq!(found(kind, "/usr/other", 0).as_deref(), Some("/usr/other"));
        }
        for (kind, path, flags) in [
            (CallKind::Open, "/usr/other", O_RDONLY),
            (CallKind::Open, "/usr/copy/own", 1),
            (CallKind::Open, "/dev/null", 1),
            (CallKind::Stat, "/usr/other", 0),
        ] {
            assert_eq!(found(kind, path, flags), None, "{path}");
        }
    }

    #[test]
    fn what_cannot_be_had_by_running_the_program_says_why() {
        let is_had = |row, outside, stays| way(row, outside, stays).is_ok();
        assert!(
            is_had(Configuration::AllInMemory, None, Some("O_SYNC"))
                && is_had(Configuration::NoSync, Some("/a"), None)
        );
        assert!(
            !is_had(Configuration::AllInMemory, Some("/a"), None)
                && !is_had(Configuration::NoSync, None, Some("O_SYNC"))
        );
        assert!(!is_had(Configuration::Wal, None, None));
    }

    #[test]
    fn syncs_in_a_queue_go_past_the_filter() {
        let stays = |what: &str| {
            let not_replayed = BTreeMap::from([(what.to_owned(), 3)]);
            let mut recording = Recording::default();
            recording.header.recording = Some(RecordingFacts { not_replayed, ..RecordingFacts::default() });
            syncs_that_stay(&recording)
        };
        for what in
            ["io_submit: reads and writes through it are not seen", "io_uring_setup", "io_uring_enter: x"]
        {
            assert!(stays(what).is_some_and(|why| why.contains("io_submit or io_uring")), "{what}");
        }
        assert_eq!(stays("mmap: reads through it are not seen"), None);
    }
}
