//! A measurement of the ways to initialise a log.

use joj_analysis::bench::run::Run;
use joj_analysis::bench::study::initialisation::{Approach, InitialisationRow};

use crate::bench::ask::Stop;
use crate::bench::plans::study::{initialisation_keys, overwrites};
use crate::bench::progress::Progress;
use crate::bench::rounds::in_rounds;
use crate::bench::session::{Collected, Session};
use crate::bench::worker::initialisation_run::{InitialisationRuns, InitialisationTask};

/// Measures everything, the disk's limit once a round.
/// # Errors
/// [`Stop::Signal`] and [`Stop::Full`]; a row that fails alone is marked instead.
pub fn measure(
    session: &Session<'_>,
    limits: &mut Collected,
    progress: &mut Progress,
) -> Result<Vec<InitialisationRow>, Stop> {
    let mut rows: Vec<_> = initialisation_keys().into_iter().map(InitialisationRow::new).collect();
    let name = |row: &InitialisationRow| row.key.to_string();
    in_rounds(session, &mut rows, (limits, progress), name, |row, round| measure_row(session, row, round))?;
    rows.iter_mut().for_each(InitialisationRow::summarise);
    Ok(rows)
}

fn measure_row(session: &Session<'_>, row: &mut InitialisationRow, round: u32) -> Result<(), Stop> {
    if row.failure.is_some() || row.refused.is_some() {
        return Ok(());
    }
    let task = InitialisationTask {
        directory: session.directory(),
        key: row.key,
        overwrites: overwrites(session.transactions),
        sources: session.sources.clone(),
    };
    match session.perform(&task) {
        Ok(Ok(InitialisationRuns { create, extend, first_pass, second_pass, failure })) => {
            row.failure = failure;
            // Nothing was made ready there: a row of zeros would look like a price.
            if row.key.approach != Approach::Appended {
                row.create.runs.push(Run { round, ..create });
                row.extend.runs.push(Run { round, ..extend });
            }
            row.first_pass.runs.push(Run { round, ..first_pass });
            row.second_pass.runs.push(Run { round, ..second_pass });
        }
        Ok(Err(reason)) => row.refused = Some(reason),
        Err(Stop::Failed(reason)) => row.failure = Some(reason),
        Err(stop) => return Err(stop),
    }
    Ok(())
}
