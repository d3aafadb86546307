//! Which COMMITs of several connections must say that a flush failed, and which must not.

use blockio::simulated::log::Record;

use super::actor::Commit;
use super::flushes::Flushes;
use super::group::GroupRecording;
use super::machine::Side;
use super::turns::Act;

/// SQLITE_FULL, SQLITE_IOERR, SQLITE_CANTOPEN: what a fault may look like.
const HONEST_CODES: [i32; 3] = [13, 10, 14];
/// SQLITE_BUSY: for an act, not for a COMMIT: the application would run the transaction again.
const BUSY: i32 = 5;

/// Acts that a log forbids after a failed flush, until all connections closed.
fn needs_sound_log(act: Act) -> bool {
    match act {
        Act::Commit1 | Act::Commit3 | Act::Spill | Act::Loose | Act::Reset => true,
        Act::Passive | Act::Full | Act::Restart | Act::Truncate => true,
        Act::Rollback | Act::Try | Act::Read | Act::Reopen | Act::Close | Act::Switch | Act::Go => false,
    }
}

/// What is wrong with the return codes of a run in which flushes failed.
pub fn judge_codes(side: Side, run: &GroupRecording) -> Vec<String> {
    let mut wrong = run.recording.wrong.clone();
    for outcome in &run.outcomes {
        if let Err(error) = &outcome.result
            && error.primary() != BUSY
            && !HONEST_CODES.contains(&error.primary())
        {
            wrong.push(format!("{} says {error}", outcome.turn));
        }
    }
    wrong.extend(judge_commits(&run.recording.records, &run.commits));
    if side != Side::Stock {
        wrong.extend(judge_poison(run));
    }
    wrong
}

/// A COMMIT that no flush covers fails; one that a flush covered before any failed does not.
pub fn judge_commits(records: &[Record], commits: &[Commit]) -> Vec<String> {
    let flushes = Flushes::of(records);
    let mut wrong = Vec::new();
    for commit in commits.iter().filter(|commit| commit.full) {
        let covered_at = flushes.covering(commit).filter(|at| *at < commit.returned_at);
        let is_before_failures = |at: usize| flushes.first_failed().is_none_or(|failed_at| at < failed_at);
        match &commit.outcome {
            Ok(()) if covered_at.is_none() => {
                wrong.push(format!("COMMIT of {} says OK and no flush covers it", commit.txn));
            }
            Err(error) if covered_at.is_some_and(is_before_failures) && !flushes.is_name_lost(commit) => {
                wrong.push(format!("COMMIT of {} says {error} though a flush covered it", commit.txn));
            }
            Err(error) if !HONEST_CODES.contains(&error.primary()) => {
                wrong.push(format!("COMMIT of {} says {error}", commit.txn));
            }
            _ => {}
        }
    }
    wrong
}

/// After a failed flush of the log nothing is built on it.
fn judge_poison(run: &GroupRecording) -> Vec<String> {
    let Some(failed_at) = Flushes::of(&run.recording.records).first_failed() else { return Vec::new() };
    let is_reopened = |until: usize| run.last_closes.iter().any(|close| (failed_at..=until).contains(close));
    let later = run.outcomes.iter().filter(|outcome| outcome.began_at > failed_at);
    let succeeded = later
        .filter(|outcome| outcome.result.is_ok() && needs_sound_log(outcome.turn.act))
        .filter(|outcome| !is_reopened(outcome.began_at));
    succeeded.map(|outcome| format!("a flush failed, and later {} succeeded", outcome.turn)).collect()
}
