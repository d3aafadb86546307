//! All calls of a recording, replayed: on the disk, or with some files in memory.

use std::path::Path;

use joj_analysis::recording::outcome::ReplayOutcome;
use serde::{Deserialize, Serialize};

use crate::command_line::replay::OrderChoice;
use crate::machine::files::counters::{Sources, settle};
use crate::machine::files::place::Place;
use crate::machine::files::work_dir::WorkDir;
use crate::machine::replayer::trees::{self, Roots};
use crate::replay::error::ReplayError;
use crate::replay::plan::Plan;
use crate::replay::{files, plan, run};
use crate::whatif::memory::{self, IN_REPLAY};

/// Which files are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InMemory {
    /// None.
    Nothing,
    /// Those below [`IN_REPLAY`].
    Some,
    /// All of them.
    All,
}

/// What a replay was like.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CallFigures {
    /// How long each call took.
    pub durations_ns: Vec<u64>,
    /// Calls that make something durable.
    pub syncs: u64,
    /// What the device wrote, until all was written that the replay wrote.
    pub device_bytes: Option<u64>,
    /// Calls with another result than in the recording.
    pub differing: u64,
}

/// Bytes that files of a plan need on a disk, before its first call or after its last one; of all, or of those in memory alone. Those
/// that are there before are written whole, and holes that calls make stay holes.
pub fn bytes_needed(plan: &Plan, in_memory: InMemory) -> u64 {
    let is_counted = |path: &str| in_memory != InMemory::Some || path.starts_with(IN_REPLAY);
    let after = plan.stored_bytes.iter().filter(|(path, _)| is_counted(path)).map(|(_, bytes)| *bytes);
    trees::bytes(&plan.before, is_counted).max(after.fold(0, u64::saturating_add))
}

/// Replays a plan below a directory: `order` says when calls are made.
/// # Errors
/// As a replay's.
pub fn replay(
    plan: &Plan,
    order: OrderChoice,
    directory: &Path,
    in_memory: InMemory,
) -> Result<CallFigures, ReplayError> {
    let sources = Sources::of(&Place::of(directory));
    let memory = match in_memory {
        InMemory::Nothing => None,
        _ => {
            Some(memory::directory(bytes_needed(plan, in_memory), "the files").map_err(ReplayError::Memory)?)
        }
    };
    let place = memory.as_ref().filter(|_| in_memory == InMemory::All).map_or(directory, WorkDir::path);
    let work_dir = plan::make_directory(place)?;
    if let (InMemory::Some, Some(memory)) = (in_memory, &memory) {
        let link = memory::link(work_dir.path());
        std::os::unix::fs::symlink(memory.path(), &link)
            .map_err(|error| ReplayError::of_file(directory, link, error))?;
    }
    let roots = Roots::one(work_dir.path());
    files::make(plan, roots, place)?;
    let before = sources.read();
    let found = run::run(plan, roots, order)?;
    settle(directory);
    let device = sources.read().device_since(&before);
    Ok(figures(&found.outcome, found.durations_ns, device.map(|device| device.written_bytes)))
}

fn figures(outcome: &ReplayOutcome, durations_ns: Vec<u64>, device_bytes: Option<u64>) -> CallFigures {
    let (syncs, differing) = (outcome.syncs.values().sum(), outcome.differing());
    CallFigures { durations_ns, syncs, device_bytes, differing }
}
