//! A measurement of the ways to initialise a log: rows in turn, forward in one round, backward in the next.

use joj_analysis::initialisation::{Approach, InitialisationRow};
use joj_analysis::run::Run;

use crate::bench::ask::Stop;
use crate::bench::progress::Progress;
use crate::bench::session::{Collected, Session};
use crate::bench::study_plan::{initialisation_keys, overwrites};
use crate::bench::task::{Answer, InitialisationRuns, InitialisationTask, Task};

/// Rows that are being measured.
#[derive(Debug)]
pub struct InitialisationSession<'a> {
    session: &'a Session<'a>,
    rows: Vec<InitialisationRow>,
}

impl<'a> InitialisationSession<'a> {
    /// To measure with what `session` has.
    pub fn new(session: &'a Session<'a>) -> InitialisationSession<'a> {
        InitialisationSession {
            session,
            rows: initialisation_keys().into_iter().map(InitialisationRow::new).collect(),
        }
    }

    /// Measures everything, the disk's limit once a round.
    /// # Errors
    /// [`Stop::Signal`] and [`Stop::Full`]; a row that fails alone is marked instead.
    pub fn measure(
        mut self,
        limits: &mut Collected,
        progress: &mut Progress,
    ) -> Result<Vec<InitialisationRow>, Stop> {
        for round in 0..self.session.runs {
            progress.round(round, self.session.runs);
            progress.step("the disk's limit");
            self.session.measure_limits(round, limits)?;
            let mut order: Vec<usize> = (0..self.rows.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                let row = &mut self.rows[index];
                progress.step(&row.key.to_string());
                if row.failure.is_none() && row.refused.is_none() {
                    measure_row(self.session, row, round)?;
                }
            }
        }
        self.rows.iter_mut().for_each(InitialisationRow::summarise);
        Ok(self.rows)
    }
}

fn measure_row(session: &Session<'_>, row: &mut InitialisationRow, round: u32) -> Result<(), Stop> {
    let task = Task::Initialise(InitialisationTask {
        directory: session.directory(),
        key: row.key,
        overwrites: overwrites(session.transactions),
        sources: session.sources.clone(),
    });
    match session.perform(&task) {
        Ok(Answer::Initialised(Ok(runs))) => {
            let InitialisationRuns { create, extend, first_pass, second_pass, failure } = *runs;
            row.failure = failure;
            // Nothing was made ready there: a row of zeros would look like a price.
            if row.key.approach != Approach::Appended {
                row.create.runs.push(Run { round, ..create });
                row.extend.runs.push(Run { round, ..extend });
            }
            row.first_pass.runs.push(Run { round, ..first_pass });
            row.second_pass.runs.push(Run { round, ..second_pass });
        }
        Ok(Answer::Initialised(Err(reason))) => row.refused = Some(reason),
        Ok(other) => {
            row.failure = Some(format!("a worker that should initialise a log answered {other:?}"));
        }
        Err(Stop::Failed(reason)) => row.failure = Some(reason),
        Err(stop) => return Err(stop),
    }
    Ok(())
}
