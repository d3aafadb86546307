//! What a shard of `joj crash` leaves for `joj lab merge`, besides what it found.

use std::collections::BTreeMap;

use joj_analysis::lab::program_crash::ProgramCrashResult;
use joj_analysis::lab::shards::program_crash::{
    PROGRAM_CRASH_PART_FORMAT, PROGRAM_CRASH_PART_VERSION, ProgramCrashPart, StatesPlan,
};
use joj_analysis::lab::shards::shard::Shard;
use joj_analysis::lab::shards::whole::sealed;

use crate::command_line::lab::program_crash::ProgramCrashOptions;
use crate::lab::commands::error::LabError;
use crate::lab::commands::parts;
use crate::lab::commands::program_crash::session::CutSession;
use crate::lab::image::archive::Contents;
use crate::lab::jobs::program_crash::PROGRAM_RECORDING_ENDS;
use crate::lab::recorded_log::recording_file;
use crate::machine::files::output_file::OutputError;

/// The part of `shard`, of a session that came to its end with `result`.
/// # Errors
/// Which file of a recording, or of what guests run, cannot be read.
pub fn part(
    options: &ProgramCrashOptions,
    shard: Shard,
    contents: &Contents,
    session: &CutSession<'_>,
    result: ProgramCrashResult,
) -> Result<ProgramCrashPart, LabError> {
    let mut made_from: BTreeMap<String, String> = parts::made_from(contents, session.setting())?;
    made_from.insert("number of states".to_owned(), options.states.to_string());
    made_from.insert("choice of torn blocks".to_owned(), options.torn.to_string());
    let mut plans = Vec::new();
    for (number, states) in session.planned.iter().enumerate() {
        let file = |end| session.recordings().join(recording_file(number, end));
        let recording = states.map(|_| parts::checksum(PROGRAM_RECORDING_ENDS.map(file))).transpose()?;
        plans.push(StatesPlan { recording, states: states.unwrap_or(0) });
    }
    let part = ProgramCrashPart {
        format: PROGRAM_CRASH_PART_FORMAT.to_owned(),
        version: PROGRAM_CRASH_PART_VERSION,
        shard: shard.number(),
        shards: shard.count(),
        made_from,
        recordings: session.recordings().display().to_string(),
        plans,
        result,
        checksum: String::new(),
    };
    Ok(sealed(part).map_err(OutputError::Json)?)
}
