//! The ways to initialise a log: `--waldio-study=init`.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::Word;
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::initialisation::{Approach, InitialisationKey, InitialisationRow};
use joj_analysis::bench::study::parts::Study;

use crate::bench::ask::Stop;
use crate::bench::experiment::{Experiment, Round, RowBlock};
use crate::bench::forecast::SETUP_NS;
use crate::bench::session::Session;
use crate::bench::worker::initialisation_run::{InitialisationRuns, InitialisationTask, OVERWRITES_MAX};
use crate::bench::worker::limit_run::Calibration;

/// Its rows.
#[derive(Debug)]
pub struct Initialisations {
    rows: Vec<InitialisationRow>,
}

impl Initialisations {
    /// Each approach. None without a flush: the page cache would hide how blocks were made ready.
    pub fn new() -> Initialisations {
        let each = |durability| {
            Approach::ALL.iter().map(move |approach| InitialisationKey { approach: *approach, durability })
        };
        let keys = [Durability::Fs, Durability::Pd].into_iter().flat_map(each);
        Initialisations { rows: keys.map(InitialisationRow::new).collect() }
    }
}

impl Experiment for Initialisations {
    fn blocks(&self) -> Vec<RowBlock> {
        RowBlock::of_all(self.rows.len())
    }

    fn subject(&self) -> &'static str {
        "making a log ready"
    }

    fn title(&self, row: usize) -> String {
        self.rows[row].key.to_string()
    }

    fn takes_part(&self, row: usize, _round: Round) -> bool {
        self.rows[row].failure.is_none() && self.rows[row].refused.is_none()
    }

    fn run_ns(&self, _row: usize, transactions: u64, calibration: Calibration) -> f64 {
        let (overwrite_ns, append_ns) = (calibration.overwrite_ns as f64, calibration.append_ns as f64);
        // Each half is some 64 blocks' worth of time to zero; blocks that are first written may cost an append.
        let initialise_ns = 128.0 * append_ns;
        SETUP_NS + initialise_ns + transactions.min(OVERWRITES_MAX) as f64 * (append_ns + overwrite_ns)
    }

    fn run(&mut self, row: usize, round: Round, session: &Session<'_>) -> Result<(), Stop> {
        let row = &mut self.rows[row];
        let answer = session.perform(&InitialisationTask {
            directory: session.directory(),
            key: row.key,
            overwrites: session.transactions.min(OVERWRITES_MAX),
            sources: session.sources.clone(),
        })?;
        match answer {
            Err(reason) => row.refused = Some(reason),
            Ok(InitialisationRuns { create, extend, first_pass, second_pass, failure }) => {
                row.failure = failure;
                // Nothing was made ready there: a row of zeros would look like a price.
                if row.key.approach != Approach::Appended {
                    row.create.runs.push(round.mark(create));
                    row.extend.runs.push(round.mark(extend));
                }
                row.first_pass.runs.push(round.mark(first_pass));
                row.second_pass.runs.push(round.mark(second_pass));
            }
        }
        Ok(())
    }

    fn fail(&mut self, row: usize, reason: String) {
        self.rows[row].failure = Some(reason);
    }

    fn finish(mut self: Box<Self>, document: &mut Document) {
        self.rows.iter_mut().for_each(InitialisationRow::summarise);
        document.study.get_or_insert_with(Study::default).initialisation = self.rows;
    }
}
