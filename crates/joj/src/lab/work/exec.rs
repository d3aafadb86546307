//! A command's runs as work for guests: each filesystem on a device has a guest of its own.

use joj_analysis::lab::exec_result::CommandRun;

use crate::lab::error::ShareError;
use crate::lab::guest_pool::Work;
use crate::lab::host_share::HostShare;
use crate::lab::jobs::exec::{EXEC_JOB_FILE, ExecJob};

/// What guests need to know.
#[derive(Debug)]
pub struct ExecWork {
    /// The job, for all volumes.
    pub job: ExecJob,
}

impl Work for ExecWork {
    type Report = CommandRun;

    fn name(&self, unit: usize) -> String {
        self.job.volumes[unit].name()
    }

    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), ShareError> {
        share.put(EXEC_JOB_FILE, &ExecJob { units: units.to_vec(), ..self.job.clone() })
    }
}
