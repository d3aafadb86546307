//! A recording, replayed on an emulated device and the filesystem on it by `joj replay` or `joj whatif` itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use joj_analysis::bench::key::Word;
use joj_analysis::bench::run::{Latency, Run, quantiles};
use joj_analysis::lab::cell::Cell;
use joj_analysis::lab::result::{CellMeasurement, CellReplay};
use joj_analysis::recording::lab_result::Replayed;
use joj_analysis::recording::outcome::ReplayOutcome;
use joj_analysis::recording::whatif::outcome::WhatifResult;

use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::stand::{Stand, align};
use crate::lab::job::{LabVolume, Setting, guest_path, named_recording};
use crate::lab::jobs::replay::{RECORDING_FILE, ReplayCommand, ReplayJob};

/// The recording in the guest's memory: reading it from the shared directory takes the other machine's time.
const RECORDING: &str = "/tmp/recording.joj";
/// Where rows are replayed. The name of joj's own directory has the number of a process, and ext4 would choose a place by it.
const ROW_DIRECTORY: &str = "/volume/row";
/// What of a row with commits was measured apart from them.
const BESIDE: &str = "/tmp/beside.json";
/// How lines begin that tell how far `joj whatif` has come, and not why it failed.
const PROGRESS: &str = "joj: round ";

/// Replays the recording of a job.
#[derive(Debug)]
pub struct Replayer<'job> {
    job: &'job ReplayJob,
}

impl<'job> Replayer<'job> {
    /// For the volumes of `job`, with the recording that is in `share`.
    /// # Errors
    /// Where it cannot be copied into the guest's memory.
    pub fn new(job: &'job ReplayJob, share: &Path) -> Result<Replayer<'job>, GuestError> {
        take(&share.join(RECORDING_FILE))?;
        Ok(Replayer { job })
    }

    /// Does unit `number` of `joj replay`.
    /// # Errors
    /// What could not be set up, or why there is no result.
    pub fn replay(&self, number: usize) -> Result<Replayed, GuestError> {
        let output = self.said(number, guest_path::VOLUME, &[])?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Does unit `number` of `joj whatif`: one row. Its commits have a volume of their own, and so have the other calls.
    /// # Errors
    /// What could not be set up, or why there is no result.
    pub fn row(&self, number: usize) -> Result<WhatifResult, GuestError> {
        let row = self.job.unit(number).row.ok_or(GuestError::NoUnit(number))?;
        let mut words = vec!["--only", row.word(), "--alone"];
        if row.has_commits() {
            self.said(number, ROW_DIRECTORY, &[&words[..], &["--beside-to", BESIDE]].concat())?;
            words.extend(["--beside", BESIDE]);
        }
        let output = self.said(number, ROW_DIRECTORY, &words)?;
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// What the job's command says of the recording in memory, in a directory of a new volume.
    fn said(&self, number: usize, directory: &str, words: &[&str]) -> Result<Output, GuestError> {
        let job = self.job;
        let words: Vec<&str> =
            job.arguments.iter().map(String::as_str).chain(words.iter().copied()).collect();
        let command = (job.command.word(), directory);
        said(command, job.unit(number).volume, &job.setting, &words, &job.environment)
    }
}

/// Replays the recording of a plan's cell, each call when the cell says.
/// # Errors
/// What could not be set up, or why there is no result.
pub fn measure(cell: &Cell, name: &str, setting: &Setting) -> Result<CellMeasurement, GuestError> {
    take(&Path::new(guest_path::SHARE).join(named_recording(name)))?;
    let mut words = vec!["--order", cell.order.word()];
    words.extend(cell.compat.then_some("--compat"));
    let output =
        said((ReplayCommand::Replay.word(), guest_path::VOLUME), &LabVolume::of(cell), setting, &words, &[])?;
    match serde_json::from_slice(&output.stdout)? {
        Replayed::Calls(outcome) => Ok(measurement(&outcome)),
        Replayed::Transactions(_) => Err(GuestError::Replay("it replayed commits, not calls".to_owned())),
    }
}

/// One transaction, which takes as long as the replay's threads were inside calls. So its processor time is the kernel's alone: the
/// replayer's own is between calls.
fn measurement(outcome: &ReplayOutcome) -> CellMeasurement {
    let sorted_ns = [outcome.in_calls_ns];
    let run = Run {
        round: 0,
        transactions: 1,
        elapsed_ns: outcome.in_calls_ns,
        latency: Latency::of(&sorted_ns),
        cpu_user_us: 0,
        cpu_system_us: outcome.cpu_system_us,
        switches_voluntary: 0,
        switches_involuntary: 0,
        wchar_bytes: Some(outcome.written_bytes),
        storage_bytes: None,
        device: outcome.device,
        journal_commits: None,
        others_cores: None,
        tick_share: 0.0,
        limit_per_s: None,
        failure: None,
    };
    CellMeasurement {
        run,
        quantiles_ns: quantiles(&sorted_ns),
        waldio_status: Vec::new(),
        costs: None,
        traced_run: None,
        trace: None,
        trace_failure: None,
        replay: Some(CellReplay {
            calls: outcome.calls,
            differing: outcome.differing(),
            syncs: outcome.syncs.values().sum(),
            elapsed_ns: outcome.elapsed_ns,
        }),
    }
}

/// Copies a recording into the guest's memory.
fn take(file: &Path) -> Result<(), GuestError> {
    fs::copy(file, RECORDING).map(drop).map_err(cannot("copy the recording"))
}

/// What a command with these words says of the recording in memory, in a directory of a new volume.
fn said(
    (command, directory): (&str, &str),
    volume: &LabVolume,
    setting: &Setting,
    words: &[&str],
    environment: &[(String, String)],
) -> Result<Output, GuestError> {
    let _stand = Stand::set_up(volume, setting)?;
    fs::create_dir_all(directory).map_err(cannot("make a directory"))?;
    align();
    let output = Command::new(guest_path::JOJ)
        .args([command, RECORDING, directory, "--json", "-"])
        .args(words)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .output()
        .map_err(cannot("start joj"))?;
    // Where --check found a difference the exit code is 1, and there is a result all the same.
    if output.stdout.is_empty() && !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = said.lines().filter(|line| !line.starts_with(PROGRESS)).collect();
        let said = said.join(" | ");
        let said = said.trim().trim_start_matches("joj: ");
        return Err(GuestError::Replay(if said.is_empty() {
            output.status.to_string()
        } else {
            said.to_owned()
        }));
    }
    Ok(output)
}
