//! Log patterns: `--waldio-study=alignment`.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::Word;
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::parts::Study;
use joj_analysis::bench::study::pattern::{Pattern, PatternKey, PatternRow, summarise};

use crate::bench::ask::Stop;
use crate::bench::experiment::{Experiment, Round, RowBlock};
use crate::bench::forecast::SETUP_NS;
use crate::bench::session::Session;
use crate::bench::worker::limit_run::Calibration;
use crate::bench::worker::pattern_run::{COMMITS_MAX, PatternRuns, PatternTask};

/// Their rows.
#[derive(Debug)]
pub struct LogPatterns {
    rows: Vec<PatternRow>,
}

impl LogPatterns {
    /// Each pattern, by table.
    pub fn new() -> LogPatterns {
        let mut rows = Vec::new();
        for prepared in [true, false] {
            for durability in Durability::ALL {
                let key =
                    |pattern: &Pattern| PatternKey { pattern: *pattern, durability: *durability, prepared };
                rows.extend(Pattern::ALL.iter().map(key).map(PatternRow::new));
            }
        }
        LogPatterns { rows }
    }
}

impl Experiment for LogPatterns {
    fn blocks(&self) -> Vec<RowBlock> {
        RowBlock::of_all(self.rows.len())
    }

    fn subject(&self) -> &'static str {
        "log patterns"
    }

    fn title(&self, row: usize) -> String {
        self.rows[row].key.to_string()
    }

    fn takes_part(&self, row: usize, _round: Round) -> bool {
        self.rows[row].failure.is_none() && self.rows[row].refused.is_none()
    }

    fn run_ns(&self, _row: usize, transactions: u64, calibration: Calibration) -> f64 {
        let (overwrite_ns, append_ns) = (calibration.overwrite_ns as f64, calibration.append_ns as f64);
        let commits = transactions.min(COMMITS_MAX) as f64;
        // Two durabilities of three flush, half of the logs grow; 64 appends' worth of time to prepare one.
        SETUP_NS + 64.0 * append_ns + commits * (overwrite_ns + append_ns) / 3.0
    }

    fn run(&mut self, row: usize, round: Round, session: &Session<'_>) -> Result<(), Stop> {
        let row = &mut self.rows[row];
        let answer = session.perform(&PatternTask {
            directory: session.directory(),
            key: row.key,
            commits: session.transactions.min(COMMITS_MAX),
            sources: session.sources.clone(),
        })?;
        match answer {
            Err(reason) => row.refused = Some(reason),
            Ok(PatternRuns { commits, last_flush, failure }) => {
                row.failure = failure;
                row.commits.runs.push(round.mark(commits));
                row.last_flush.runs.push(round.mark(last_flush));
            }
        }
        Ok(())
    }

    fn fail(&mut self, row: usize, reason: String) {
        self.rows[row].failure = Some(reason);
    }

    fn finish(mut self: Box<Self>, document: &mut Document) {
        summarise(&mut self.rows);
        document.study.get_or_insert_with(Study::default).patterns = self.rows;
    }
}
