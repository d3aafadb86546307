//! Crash states as work for guests: a guest for the recording of a cell and for all of its states.

use std::path::Path;

use crate::lab::error::{ShareError, UnitError};
use crate::lab::guest_pool::Work;
use crate::lab::host_share::HostShare;
use crate::lab::jobs::crash::{CRASH_JOB_FILE, CrashJob, UnitReport};
use crate::lab::kept::made_with::MadeWith;
use crate::lab::kept::recordings::KeptRecordings;
use crate::lab::recorded_log::{RECORDING_ENDS, is_recorded, recording_file};

/// What guests need to know, and what they do not.
#[derive(Debug)]
pub struct CrashWork<'a> {
    /// The job, for all cells.
    pub job: CrashJob,
    /// Where recordings are kept, and taken from if they are there; and what that of each cell is made with.
    pub recordings: Option<(KeptRecordings<'a>, Vec<MadeWith>)>,
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

    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), ShareError> {
        if let (Some((kept, _)), Some(first)) = (&self.recordings, units.first()) {
            let cell = self.job.unit(*first).cell;
            if is_recorded(kept.directory, cell) {
                exchange(cell, &RECORDING_ENDS, kept.directory, &share.shared())?;
            }
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
    /// A guest for each cell that is `wanted`. A state that ends the guest costs a start; the recording is in the share, or kept, then.
    pub fn batches(&self, wanted: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
        let cells = (0..self.job.cells.len()).filter(|cell| wanted(*cell));
        cells.map(|cell| self.job.units_of(cell).collect()).collect()
    }

    /// Keeps the recording of `cell`, where recordings are to be kept and it did not come from there.
    /// # Errors
    /// Where there is no room; what was copied counts as none.
    pub fn keep(&self, cell: usize, share: &HostShare) -> Result<(), UnitError> {
        match &self.recordings {
            Some((kept, made)) if !kept.is_any(cell) => kept.keep(cell, share, &made[cell]),
            _ => Ok(()),
        }
    }
}

/// Copies the files of a recording that have these ends. The last one says that it is whole: it is not copied behind an error.
/// # Errors
/// A file cannot be copied.
pub fn exchange(cell: usize, ends: &[&str], from: &Path, to: &Path) -> Result<(), ShareError> {
    for end in ends {
        let name = recording_file(cell, end);
        std::fs::copy(from.join(&name), to.join(&name)).map_err(|error| ShareError::Recording {
            name,
            to: to.to_owned(),
            error,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::recorded_log::RECORDINGS_DIRECTORY;

    #[test]
    fn a_recording_that_could_not_be_copied_whole_is_none() {
        let base = std::env::temp_dir().join(format!("joj-exchange-{}", std::process::id()));
        let (from, to) = (base.join("from"), base.join("to"));
        for directory in [&from, &to] {
            std::fs::create_dir_all(directory.join(RECORDINGS_DIRECTORY)).unwrap();
        }
        let write = |end: &str| std::fs::write(from.join(recording_file(3, end)), end).unwrap();
        write("log");
        write("json");
        assert!(exchange(3, &RECORDING_ENDS, &from, &to).unwrap_err().to_string().contains("03.requests"));
        assert!(!is_recorded(&to, 3), "a part counts as whole");
        write("requests");
        exchange(3, &RECORDING_ENDS, &from, &to).unwrap();
        assert!(is_recorded(&to, 3));
        std::fs::remove_dir_all(&base).unwrap();
    }
}
