//! A recording's replays as work for guests: each filesystem on a device has a guest of its own.

use std::path::Path;

use joj_analysis::recording::lab_result::Replayed;

use crate::lab::error::ShareError;
use crate::lab::guest_pool::Work;
use crate::lab::host_share::HostShare;
use crate::lab::replay_job::{RECORDING_FILE, REPLAY_JOB_FILE, ReplayJob};

/// What guests need to know, and the recording.
#[derive(Debug)]
pub struct ReplayWork<'a> {
    /// The job, for all volumes.
    pub job: ReplayJob,
    /// The recording's file.
    pub recording: &'a Path,
}

impl Work for ReplayWork<'_> {
    type Report = Replayed;

    fn name(&self, unit: usize) -> String {
        self.job.volumes[unit].name()
    }

    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), ShareError> {
        share.give(self.recording, RECORDING_FILE)?;
        share.put(REPLAY_JOB_FILE, &ReplayJob { units: units.to_vec(), ..self.job.clone() })
    }
}

impl ReplayWork<'_> {
    /// A guest for each volume: none begins with what the one before left in memory.
    pub fn batches(&self) -> Vec<Vec<usize>> {
        (0..self.job.volumes.len()).map(|volume| vec![volume]).collect()
    }
}
