//! The files of a recording, made before the first call of its replay; and whether their names can be used.

use std::path::Path;

use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::paths::bytes_of;
use joj_analysis::trace::texts::Text;

use crate::machine::proc::signal;
use crate::machine::replayer::trees::{self, Roots};
use crate::replay::error::ReplayError;
use crate::replay::plan::Plan;
use crate::trace::progress::ProgressLine;

/// The kernel takes no longer name in a call (PATH_MAX, without the zero at its end).
const NAME_BYTES_MAX: usize = 4095;

/// Makes what is there before the first call. `place` is the directory that was given.
/// # Errors
/// A signal, or a file that cannot be made. A part is there then.
pub fn make(plan: &Plan, roots: Roots<'_>, place: &Path) -> Result<(), ReplayError> {
    check_names(plan, roots)?;
    let mut progress = ProgressLine::begin();
    let mut go_on = |bytes: u64| {
        progress
            .tell(|| format!("making the files of the recording, {} MiB; Ctrl-C gives it up", bytes >> 20));
        !signal::is_stopped()
    };
    let made = trees::make(roots, &plan.before, &plan.grows, &mut go_on);
    if made.map_err(|(path, error)| ReplayError::of_file(place, path, error))? {
        Ok(())
    } else {
        Err(ReplayError::Stopped)
    }
}

/// A program that goes from directory to directory can have longer names than a call may have. A replay has whole names.
fn check_names(plan: &Plan, roots: Roots<'_>) -> Result<(), ReplayError> {
    let texts = &plan.recording.texts;
    let is_made = |call: &&RecordedCall| {
        call.kind == CallKind::Present
            || call.kind == CallKind::Held
            || call.kind.is_replayed() && call.result >= 0
    };
    // What is in a symbolic link may be relative, and longer here.
    let names = |call: &RecordedCall| [call.path, call.second_path];
    let mut used: Vec<Text> = plan.recording.calls.iter().filter(is_made).flat_map(names).collect();
    used.sort_unstable();
    used.dedup();
    let here_bytes = |name: &Text| roots.place(texts.get(*name)).as_os_str().len();
    let Some(longest) = used.into_iter().max_by_key(here_bytes) else { return Ok(()) };
    if here_bytes(&longest) <= NAME_BYTES_MAX {
        return Ok(());
    }
    let (bytes, here) = (bytes_of(texts.get(longest)).len(), here_bytes(&longest));
    let begin = texts.get(longest).chars().take(60).collect();
    Err(ReplayError::LongName { begin, bytes, more: here - bytes })
}
