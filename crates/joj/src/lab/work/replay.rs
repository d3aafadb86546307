//! A recording's replays as work for guests: each filesystem on a device, and each row there, has a guest of its own.

use std::marker::PhantomData;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::lab::error::ShareError;
use crate::lab::guest_pool::Work;
use crate::lab::host_share::HostShare;
use crate::lab::jobs::replay::{RECORDING_FILE, REPLAY_JOB_FILE, ReplayJob, ReplayUnit};

/// What guests need to know, and the recording. `R`: what the job's command gives.
#[derive(Debug)]
pub struct ReplayWork<'a, R> {
    /// The job, for all volumes.
    pub job: ReplayJob,
    /// The recording's file.
    pub recording: &'a Path,
    report: PhantomData<fn() -> R>,
}

impl<R: DeserializeOwned + Send> Work for ReplayWork<'_, R> {
    type Report = R;

    fn name(&self, unit: usize) -> String {
        let ReplayUnit { volume, row, round, .. } = self.job.unit(unit);
        let mut name = volume.name();
        name.extend(row.map(|row| format!(", {}", row.title())));
        if self.job.rounds > 1 {
            name += &format!(", round {}", round + 1);
        }
        name
    }

    fn outlives_a_start(&self) -> bool {
        true
    }

    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), ShareError> {
        share.give(self.recording, RECORDING_FILE)?;
        share.put(REPLAY_JOB_FILE, &ReplayJob { units: units.to_vec(), ..self.job.clone() })
    }
}

impl<'a, R> ReplayWork<'a, R> {
    /// A job on a recording.
    pub fn new(job: ReplayJob, recording: &'a Path) -> Self {
        Self { job, recording, report: PhantomData }
    }
}
