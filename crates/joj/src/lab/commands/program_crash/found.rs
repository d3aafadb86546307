//! What guests found, as the result has it.

use joj_analysis::lab::program_crash::{Checked, Finding, ProgramState, ProgramVolume};
use joj_analysis::trace::texts::name_of;

use crate::lab::error::UnitError;
use crate::lab::job::LabVolume;
use crate::lab::jobs::program_crash::{CutState, ProgramReport};

/// What is said of a guest that reports something else than it was asked for.
pub const OTHER_REPORT: &str = "its report is another one's";

/// A filesystem of which nothing is known yet.
pub fn unlooked(volume: &LabVolume) -> ProgramVolume {
    ProgramVolume {
        filesystem: volume.filesystem,
        device: volume.device.clone(),
        journal_device: volume.journal_device.clone(),
        mount_options: volume.mount_options.clone(),
        failure: None,
        run: None,
        changed_files: Vec::new(),
        entries: 0,
        is_systematic: false,
        same: 0,
        states: Vec::new(),
        broken: Vec::new(),
    }
}

/// A state with what was found there, and found again.
pub fn told_state(state: &CutState, (checked, again): (Checked, Option<Checked>)) -> ProgramState {
    ProgramState {
        at_ns: state.at_ns,
        missing: state.missing.to_string(),
        missing_writes: state.missing.writes(),
        promised: state.promised,
        checked,
        again,
    }
}

/// What was found, what the check printed, and what was found again.
pub fn looked(report: Result<ProgramReport, UnitError>) -> (Checked, String, Option<Checked>) {
    let ended = |said: String| (Checked { finding: Finding::Ended, said }, String::new(), None);
    match report {
        Ok(ProgramReport::Looked(checked, output, again)) => (checked, output, again),
        Ok(_) => ended(OTHER_REPORT.to_owned()),
        Err(reason) => ended(reason.to_string()),
    }
}

/// A path of which each byte can be read: one that is no UTF-8 is `\xff`, and a backslash is `\\`.
pub fn spelled(path: &[u8]) -> String {
    let parts: Vec<&[u8]> = path.split(|byte| *byte == b'\\').collect();
    name_of(&parts.join(&b"\\\\"[..])).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_that_is_no_text_is_told_from_the_letters_that_stand_for_it() {
        for (path, text) in [
            (&b"/d/b\xff"[..], r"/d/b\xff"),
            (b"/d/b\\xff", r"/d/b\\xff"),
            (b"/d/b\\\xff", r"/d/b\\\xff"),
            ("/d/é".as_bytes(), "/d/é"),
        ] {
            assert_eq!(spelled(path), text);
        }
    }
}
