//! A program's crash states as work for guests: a guest for each recording, and several for the states of one.

use std::collections::BTreeMap;
use std::path::Path;

use joj_analysis::filesystem::Filesystem;

use crate::lab::error::ShareError;
use crate::lab::guest_pool::Work;
use crate::lab::host_share::HostShare;
use crate::lab::jobs::program_crash::{
    PROGRAM_CRASH_JOB_FILE, PROGRAM_RECORDING_ENDS, ProgramCrashJob, ProgramReport, ProgramUnit,
};
use crate::lab::recorded_log::recording_file;
use crate::lab::work::crash::exchange;

/// What guests need to know.
#[derive(Debug)]
pub struct ProgramCrashWork<'a> {
    /// The job, with all of its units.
    pub job: ProgramCrashJob,
    /// Where recordings are kept.
    pub recordings: &'a Path,
}

impl ProgramCrashWork<'_> {
    fn volume_of(&self, unit: usize) -> Option<usize> {
        match self.job.units.get(&unit)? {
            ProgramUnit::Record(_) | ProgramUnit::Uncut(_) => None,
            ProgramUnit::Look(state) | ProgramUnit::Shrink(state, ..) => Some(state.volume),
        }
    }
}

/// Seconds that a guest takes for a state with a check by the shell, for the first forecast. Those of ext4, XFS and F2FS are measured
/// (docs/crash.md, "What it costs"). The first states correct them all.
fn state_seconds(filesystem: Filesystem) -> f64 {
    match filesystem {
        Filesystem::Ext4 => 0.1,
        Filesystem::Xfs | Filesystem::Btrfs => 0.15,
        Filesystem::F2fs | Filesystem::Nilfs2 => 0.4,
    }
}

/// Seconds for each MiB of the log besides: a state is made of all of it (docs/crash.md, "What it costs").
const LOG_SECONDS_PER_MIB: f64 = 0.009;

/// What a guest did with a state, where what it said last does not tell it.
fn did(work: &ProgramUnit, said: Option<&str>) -> Option<String> {
    const FINDING_OUT: &str = "finding out which writes it takes";
    match (work, said) {
        (ProgramUnit::Look(_), None) => Some("the first look at a state".to_owned()),
        (ProgramUnit::Shrink(..), None) => Some(FINDING_OUT.to_owned()),
        (ProgramUnit::Shrink(..), Some(said)) => Some(format!("{FINDING_OUT}, {said}")),
        _ => None,
    }
}

impl Work for ProgramCrashWork<'_> {
    type Report = ProgramReport;

    fn name(&self, unit: usize) -> String {
        let volume = |volume: usize| self.job.volumes[volume].name();
        match self.job.units.get(&unit) {
            // Its guest says what it does.
            Some(ProgramUnit::Record(number) | ProgramUnit::Uncut(number)) => volume(*number),
            Some(ProgramUnit::Look(state)) => format!("{}: states", volume(state.volume)),
            Some(ProgramUnit::Shrink(state, ..)) => {
                format!("{}: which writes it takes", volume(state.volume))
            }
            None => String::new(),
        }
    }

    fn did(&self, unit: usize, said: Option<String>) -> String {
        let told = self.job.units.get(&unit).and_then(|work| did(work, said.as_deref()));
        told.or(said).unwrap_or_else(|| self.name(unit))
    }

    fn expected_s(&self, unit: usize) -> Option<f64> {
        match self.job.units.get(&unit)? {
            ProgramUnit::Look(state) => {
                let filesystem = self.job.volumes[state.volume].filesystem;
                let log = self.recordings.join(recording_file(state.volume, "log"));
                let log_bytes = std::fs::metadata(log).map_or(0, |facts| facts.len());
                Some(state_seconds(filesystem) + LOG_SECONDS_PER_MIB * (log_bytes >> 20) as f64)
            }
            ProgramUnit::Record(_) | ProgramUnit::Uncut(_) | ProgramUnit::Shrink(..) => None,
        }
    }

    fn leave(&self, units: &[usize], share: &HostShare) -> Result<(), ShareError> {
        let here = share.shared();
        let mut volumes: Vec<usize> = units.iter().filter_map(|unit| self.volume_of(*unit)).collect();
        volumes.dedup();
        for volume in volumes {
            if !here.join(recording_file(volume, "json")).exists() {
                exchange(volume, &PROGRAM_RECORDING_ENDS, self.recordings, &here)?;
            }
        }
        let own = |unit: &usize| Some((*unit, self.job.units.get(unit)?.clone()));
        let units: BTreeMap<usize, ProgramUnit> = units.iter().filter_map(own).collect();
        share.put(PROGRAM_CRASH_JOB_FILE, &ProgramCrashJob { units, ..self.job.clone() })
    }
}

#[cfg(test)]
mod tests {
    use joj_analysis::lab::program_crash::Finding;
    use joj_device::crash::Missing;

    use super::*;
    use crate::lab::jobs::program_crash::CutState;

    #[test]
    fn what_a_guest_did_too_long_with_a_state_is_told() {
        let state = CutState { volume: 0, at_ns: 1, missing: Missing::default(), promised: 0 };
        let look = ProgramUnit::Look(state.clone());
        let shrink = ProgramUnit::Shrink(state, Finding::Lost, String::new());
        assert_eq!(did(&look, None).as_deref(), Some("the first look at a state"));
        assert_eq!(did(&look, Some("a broken state once more")), None, "what it said is enough");
        let shrunk = did(&shrink, Some("3 tried"));
        assert_eq!(shrunk.as_deref(), Some("finding out which writes it takes, 3 tried"));
        assert_eq!(did(&ProgramUnit::Record(0), None), None);
    }
}
