//! A measurement of log patterns.

use joj_analysis::bench::run::Run;
use joj_analysis::bench::study::pattern::{PatternRow, summarise};

use crate::bench::ask::Stop;
use crate::bench::plans::study::{frame_commits, pattern_keys};
use crate::bench::progress::Progress;
use crate::bench::rounds::in_rounds;
use crate::bench::session::{Collected, Session};
use crate::bench::worker::pattern_run::{PatternRuns, PatternTask};

/// Measures everything, the disk's limit once a round.
/// # Errors
/// [`Stop::Signal`] and [`Stop::Full`]; a row that fails alone is marked instead.
pub fn measure(
    session: &Session<'_>,
    limits: &mut Collected,
    progress: &mut Progress,
) -> Result<Vec<PatternRow>, Stop> {
    let mut rows: Vec<_> = pattern_keys().into_iter().map(PatternRow::new).collect();
    let name = |row: &PatternRow| row.key.to_string();
    in_rounds(session, &mut rows, (limits, progress), name, |row, round| measure_row(session, row, round))?;
    summarise(&mut rows);
    Ok(rows)
}

fn measure_row(session: &Session<'_>, row: &mut PatternRow, round: u32) -> Result<(), Stop> {
    if row.failure.is_some() || row.refused.is_some() {
        return Ok(());
    }
    let task = PatternTask {
        directory: session.directory(),
        key: row.key,
        commits: frame_commits(session.transactions),
        sources: session.sources.clone(),
    };
    match session.perform(&task) {
        Ok(Ok(PatternRuns { commits, last_flush, failure })) => {
            row.failure = failure;
            row.commits.runs.push(Run { round, ..commits });
            row.last_flush.runs.push(Run { round, ..last_flush });
        }
        Ok(Err(reason)) => row.refused = Some(reason),
        Err(Stop::Failed(reason)) => row.failure = Some(reason),
        Err(stop) => return Err(stop),
    }
    Ok(())
}
