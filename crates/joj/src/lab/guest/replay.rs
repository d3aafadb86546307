//! A recording, replayed on an emulated device and the filesystem on it by `joj replay` itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use joj_analysis::recording::lab_result::Replayed;

use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::stand::{Stand, align};
use crate::lab::job::guest_path;
use crate::lab::replay_job::{RECORDING_FILE, ReplayJob};

/// The recording in the guest's memory: reading it from the shared directory takes the other machine's time.
const RECORDING: &str = "/tmp/recording.joj";

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
        fs::copy(share.join(RECORDING_FILE), RECORDING).map_err(cannot("copy the recording"))?;
        Ok(Replayer { job })
    }

    /// Replays it on volume `number`.
    /// # Errors
    /// What could not be set up, or why there is no result.
    pub fn replay(&self, number: usize) -> Result<Replayed, GuestError> {
        let _stand = Stand::set_up(&self.job.volumes[number], &self.job.setting)?;
        align();
        let output = Command::new(guest_path::JOJ)
            .args(["replay", RECORDING, guest_path::VOLUME, "--json", "-"])
            .args(&self.job.arguments)
            .envs(self.job.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .output()
            .map_err(cannot("start joj replay"))?;
        // Where --check found a difference the exit code is 1, and there is a result all the same.
        if output.stdout.is_empty() {
            let said = String::from_utf8_lossy(&output.stderr);
            let said = said.trim().trim_start_matches("joj: ").replace('\n', " | ");
            return Err(GuestError::Replay(if said.is_empty() { output.status.to_string() } else { said }));
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}
