//! What of a row with commits is measured apart from them. In the emulated machine that is on a disk of its own: what it leaves there
//! would decide how long the commits take.

use std::path::Path;

use crate::replay::error::ReplayError;
use crate::whatif::call_replay::{self, CallFigures, InMemory};
use crate::whatif::commit_replay::{self, Beside};
use crate::whatif::settings::{Commits, RowSetting, WhatifSettings};

/// Measures it for the first of these rows.
/// # Errors
/// Why it cannot be had, in words.
pub fn measure(settings: &WhatifSettings, directory: &Path) -> Result<Beside, String> {
    let none = || "it has no commits".to_owned();
    let (_, setting) = settings.rows.first().ok_or_else(none)?;
    let RowSetting::Commits(setting) = setting.as_ref().map_err(Clone::clone)? else { return Err(none()) };
    let commits = settings.commits.as_ref().map_err(Clone::clone)?;
    let found = rest(settings, commits, directory).and_then(|rest| {
        let closes = commits.calls.closed_connections();
        Ok(Beside { rest, counted: commit_replay::count(&commits.plan, &closes, setting, directory)? })
    });
    found.map_err(|error| error.where_emulated(settings.alone).to_string())
}

/// Replays the calls that belong to no commit.
/// # Errors
/// As a replay's.
pub fn rest(
    settings: &WhatifSettings,
    commits: &Commits,
    directory: &Path,
) -> Result<CallFigures, ReplayError> {
    settings.align();
    call_replay::replay(&commits.rest, settings.order, directory, InMemory::Nothing)
}
