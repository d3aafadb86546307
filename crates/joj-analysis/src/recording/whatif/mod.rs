//! What would make a program faster: one recording, replayed as it is and in other configurations.
//!
//! ```text
//! recording -> classes, variants | commit_calls -> replays (joj) -> durations -> forecast -> rows -> advice
//!
//! lab_result      the results of several emulated disks
//! advice          sentences with their evidence
//! standing        whether a row is faster than the recorded one
//! outcome         the result: a row for each configuration
//! breakdown       where the time in calls went
//! configuration   the rows there are, and what each gives up
//! left_out        calls that no row replays
//! sync_spans      whether several threads sync in the same time
//! forecast        how long the program takes when its calls take these times
//! commit_calls    the calls that belong to commits: a replay through SQLite makes the commits instead
//! variants        the same recording, with some files in another place or without durable writes
//! classes         which files are databases, and which are caches
//! pattern         `*` and `?` in names
//! ```

pub mod lab_result;
pub mod advice;
mod standing;
pub mod outcome;
pub mod breakdown;
pub mod configuration;
pub mod left_out;
pub mod sync_spans;
pub mod forecast;
pub mod commit_calls;
pub mod variants;
pub mod classes;
mod pattern;
