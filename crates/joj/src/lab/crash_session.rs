//! Crash states as work for guests: a guest for the recording of a cell and for all of its states.

use std::path::Path;

use super::crash_job::{CRASH_JOB_FILE, CrashJob, UnitReport, recording_file};
use super::crew::Work;
use super::host_share::HostShare;

/// What guests need to know, and what they do not.
#[derive(Debug)]
pub struct CrashWork<'a> {
    /// The job, for all cells.
    pub job: CrashJob,
    /// Where recordings are kept, and taken from if they are there.
    pub recordings: Option<&'a Path>,
}

impl Work for CrashWork<'_> {
    type Report = UnitReport;

    fn name(&self, unit: usize) -> String {
        let unit = self.job.unit(unit);
        let cell = &self.job.cells[unit.cell];
        match unit.state {
            0 => format!("{cell}: recording"),
            state => format!("{cell}: state {state}"),
        }
    }

    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), String> {
        if let (Some(kept), Some(first)) = (self.recordings, units.first()) {
            exchange(self.job.unit(*first).cell, kept, &share.shared());
        }
        share.put(CRASH_JOB_FILE, &CrashJob { units: units.to_vec(), ..self.job.clone() })
    }

    /// Without a recording there are no states.
    fn give_up(&self, failed: usize, left: &mut Vec<usize>) {
        if self.job.unit(failed).state == 0 {
            left.clear();
        }
    }
}

impl CrashWork<'_> {
    /// A guest for each cell. A state that ends the guest costs a start; the recording is in the share then.
    pub fn batches(&self) -> Vec<Vec<usize>> {
        (0..self.job.cells.len()).map(|cell| self.job.units_of(cell).collect()).collect()
    }

    /// Keeps the recording of `cell`, where recordings are to be kept.
    pub fn keep(&self, cell: usize, share: &HostShare) {
        if let Some(kept) = self.recordings {
            exchange(cell, &share.shared(), kept);
        }
    }
}

/// Copies a recording; one that is not there is no error. What is written last is copied last: without it there is none.
fn exchange(cell: usize, from: &Path, to: &Path) {
    for end in ["log", "requests", "json"] {
        let name = recording_file(cell, end);
        let _ = std::fs::copy(from.join(&name), to.join(&name));
    }
}
