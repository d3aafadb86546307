//! What `joj bench` can measure, one file each: the rows, how long a run takes, its task, what becomes of the answer.
//!
//! ```text
//! rows              transactions of one writer: modes, workloads, builds
//! file_io           --io: records of a file, without SQLite
//! many_writers      writers that commit to one database at the same time
//! initialisations   --waldio-study=init: ways to make a log ready
//! log_patterns      --waldio-study=alignment: how frames lie on the disk
//! table_two         --waldio-study=table2: the WALDIO paper's Table 2
//! ```

pub mod rows;
pub mod file_io;
pub mod many_writers;
pub mod initialisations;
pub mod log_patterns;
pub mod table_two;

use joj_analysis::bench::study::parts::StudyPart;

use crate::bench::ask::Stop;
use crate::bench::experiment::Experiment;
use crate::bench::experiments::initialisations::Initialisations;
use crate::bench::experiments::log_patterns::LogPatterns;
use crate::bench::experiments::table_two::TableTwo;
use crate::bench::session::Session;

/// A part of `--waldio-study`, to be measured with what `session` has.
/// # Errors
/// [`Stop`], where workers have to be asked what there is to measure.
pub fn of_study(part: StudyPart, session: &Session<'_>) -> Result<Box<dyn Experiment>, Stop> {
    Ok(match part {
        StudyPart::Init => Box::new(Initialisations::new()),
        StudyPart::Alignment => Box::new(LogPatterns::new()),
        StudyPart::Table2 => Box::new(TableTwo::new(session)?),
    })
}

#[cfg(test)]
mod tests {
    use joj_analysis::bench::study::table_two::Layout;

    use super::*;
    use crate::bench::experiment::expected_s;
    use crate::bench::experiments::many_writers::{Contention, LIMIT_TRANSACTIONS, ManyWriters};
    use crate::bench::experiments::rows::{RowSelection, Rows};
    use crate::bench::experiments::table_two::table_two_keys;
    use crate::bench::worker::limit_run::Calibration;

    const FAST: Calibration = Calibration { overwrite_ns: 100_000, append_ns: 150_000 };
    const SLOW: Calibration = Calibration { overwrite_ns: 20_000_000, append_ns: 60_000_000 };

    #[test]
    fn a_slow_disk_takes_as_much_longer_as_its_flushes() {
        let rows = Rows::new(RowSelection::default(), &["bundled".to_owned(), "system".to_owned()]);
        let expected = |transactions, runs, calibration| expected_s(&rows, transactions, runs, calibration);
        let (fast, slow) = (expected(1000, 5, FAST), expected(1000, 5, SLOW));
        assert!(fast < 90.0, "the default plan promises 90 s at 0.1 ms a flush, and this is {fast}");
        assert!(slow > 100.0 * 60.0, "{slow}");
        assert!(expected(200, 3, SLOW) < slow / 3.0);
    }

    #[test]
    fn contended_rows_take_their_clock_and_little_more() {
        let contention = Contention { threads: vec![1, 16], run_ns: 2_000_000_000, ..Contention::default() };
        let expected = |contention: &Contention| {
            let writers = ManyWriters::new(contention.clone(), &["system".to_owned()]);
            expected_s(&writers, LIMIT_TRANSACTIONS, 5, FAST)
        };
        // Two modes, two counts, five runs of 2.5 s; four counting runs of 1.25 s.
        assert!((55.0..80.0).contains(&expected(&contention)), "{}", expected(&contention));
        let slow = Contention { flush_delay_ns: 2_000_000, ..contention };
        assert!((50.0..80.0).contains(&expected(&slow)), "{}", expected(&slow));
    }

    #[test]
    fn the_study_takes_as_much_longer_as_its_flushes() {
        let table_two = TableTwo::of(table_two_keys("system", &[Layout::Stock]));
        let parts: [&dyn Experiment; 3] = [&Initialisations::new(), &LogPatterns::new(), &table_two];
        let expected =
            |calibration| parts.iter().map(|part| expected_s(*part, 1_000, 5, calibration)).sum::<f64>();
        assert!(expected(FAST) < 240.0 && expected(SLOW) > 60.0 * expected(FAST), "{}", expected(SLOW));
    }
}
