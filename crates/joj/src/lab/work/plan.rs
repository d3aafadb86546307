//! A plan's cells as work for guests: each cell has a guest of its own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::lab::error::ShareError;
use crate::lab::guest_pool::Work;
use crate::lab::host_share::HostShare;
use crate::lab::job::{JOB_FILE, Job, named_recording};
use joj_analysis::lab::result::CellMeasurement;

/// What guests need to know, and the recordings.
#[derive(Debug)]
pub struct PlanWork<'a> {
    /// The job, for all cells.
    pub job: Job,
    /// The file of each recording that a cell replays, by its name.
    pub recordings: &'a BTreeMap<String, PathBuf>,
}

impl Work for PlanWork<'_> {
    type Report = CellMeasurement;

    fn name(&self, unit: usize) -> String {
        self.job.cells[unit].to_string()
    }

    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), ShareError> {
        let replayed = units.iter().filter_map(|unit| self.job.cells[*unit].recording.as_ref());
        for (name, file) in replayed.filter_map(|name| self.recordings.get_key_value(name)) {
            share.give(file, &named_recording(name))?;
        }
        share.put(JOB_FILE, &Job { units: units.to_vec(), ..self.job.clone() })
    }
}

impl PlanWork<'_> {
    /// A guest for each cell: the guest of one that fails measures no other.
    pub fn batches(cells: &[usize]) -> Vec<Vec<usize>> {
        cells.iter().map(|cell| vec![*cell]).collect()
    }
}
