//! A plan's cells as work for guests: each cell has a guest of its own.

use crate::lab::error::ShareError;
use crate::lab::guest_pool::Work;
use crate::lab::host_share::HostShare;
use crate::lab::job::{JOB_FILE, Job};
use joj_analysis::lab::result::CellMeasurement;

impl Work for Job {
    type Report = CellMeasurement;

    fn name(&self, unit: usize) -> String {
        self.cells[unit].to_string()
    }

    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), ShareError> {
        share.put(JOB_FILE, &Job { units: units.to_vec(), ..self.clone() })
    }
}

impl Job {
    /// A guest for each cell: the guest of one that fails measures no other.
    pub fn batches(&self) -> Vec<Vec<usize>> {
        (0..self.cells.len()).map(|cell| vec![cell]).collect()
    }
}
