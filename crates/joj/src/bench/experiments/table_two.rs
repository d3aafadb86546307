//! Table 2 of the WALDIO paper, `--waldio-study=table2`: rows of SQLite, each with its own options for waldio.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::{JournalMode, LogState, RowKey, Schema, Synchronous, Word, Workload};
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::parts::Study;
use joj_analysis::bench::study::table_two::{Layout, TableTwoKey, TableTwoRow, summarise};

use crate::bench::ask::Stop;
use crate::bench::experiment::{Experiment, Round, RowBlock};
use crate::bench::forecast::run_ns;
use crate::bench::session::Session;
use crate::bench::worker::database_run::RowTask;
use crate::bench::worker::libraries::OptionsTask;
use crate::bench::worker::limit_run::Calibration;

/// Its rows.
#[derive(Debug)]
pub struct TableTwo {
    rows: Vec<TableTwoRow>,
}

impl TableTwo {
    /// The rows of each SQLite build of `session`, in the layouts that its extension knows.
    /// # Errors
    /// [`Stop::Signal`] and [`Stop::Full`]
    pub fn new(session: &Session<'_>) -> Result<TableTwo, Stop> {
        let mut keys = Vec::new();
        for library in session.build_names() {
            keys.extend(table_two_keys(&library, &known_layouts(session, &library)?));
        }
        Ok(TableTwo::of(keys))
    }

    /// Rows of these keys.
    pub fn of(keys: Vec<TableTwoKey>) -> TableTwo {
        TableTwo { rows: keys.into_iter().map(TableTwoRow::new).collect() }
    }
}

/// The layouts that the extension of `session` knows, with the build `library`.
/// That it does not know one is no error.
fn known_layouts(session: &Session<'_>, library: &str) -> Result<Vec<Layout>, Stop> {
    let task = OptionsTask {
        libraries: session.libraries(library, JournalMode::Waldio),
        directory: session.directory(),
        options: vec![("layout".to_owned(), Layout::Embedded.word().to_owned())],
    };
    match session.perform(&task) {
        Ok(()) => Ok(Layout::ALL.to_vec()),
        Err(Stop::Failed(_)) => Ok(vec![Layout::Stock]),
        Err(stop) => Err(stop),
    }
}

/// The rows with one build, by table: stock journal modes, then WAL and waldio in each state of the log, the
/// latter in each of `layouts`.
///
/// No group with NS, whose COMMIT waits for nothing anyway, nor with PD: a COMMIT that does not wait is a buffered
/// write, and its flush an fdatasync, whatever `waldio_persist` says.
pub fn table_two_keys(library: &str, layouts: &[Layout]) -> Vec<TableTwoKey> {
    let mut keys = Vec::new();
    for workload in [Workload::Insert, Workload::Update, Workload::Delete] {
        let mut add = |mode: JournalMode, log, (durability, group): (Durability, bool), layout| {
            let synchronous =
                if durability == Durability::Ns { Synchronous::Normal } else { Synchronous::Full };
            let library = library.to_owned();
            let row = RowKey { workload, schema: Schema::Waldio, synchronous, mode, log, library };
            keys.push(TableTwoKey { row, durability, group, layout });
        };
        for mode in JournalMode::ALL.iter().filter(|mode| !mode.has_log()) {
            add(*mode, LogState::None, (Durability::Fs, false), Layout::Stock);
        }
        for log in [LogState::Fresh, LogState::Steady] {
            for durability in [Durability::Fs, Durability::Ns] {
                add(JournalMode::Wal, log, (durability, false), Layout::Stock);
            }
            for layout in layouts {
                let unshared = Durability::ALL.iter().map(|durability| (*durability, false));
                for flushed in unshared.chain([(Durability::Fs, true)]) {
                    add(JournalMode::Waldio, log, flushed, *layout);
                }
            }
        }
    }
    keys
}

impl Experiment for TableTwo {
    fn blocks(&self) -> Vec<RowBlock> {
        RowBlock::of_all(self.rows.len())
    }

    fn subject(&self) -> &'static str {
        "Table 2"
    }

    fn title(&self, row: usize) -> String {
        self.rows[row].key.to_string()
    }

    fn takes_part(&self, row: usize, _round: Round) -> bool {
        self.rows[row].failure.is_none()
    }

    fn run_ns(&self, row: usize, transactions: u64, calibration: Calibration) -> f64 {
        run_ns(&self.rows[row].key.row, transactions, calibration)
    }

    fn run(&mut self, row: usize, round: Round, session: &Session<'_>) -> Result<(), Stop> {
        let row = &mut self.rows[row];
        let key = &row.key.row;
        let measured = session.perform(&RowTask {
            libraries: session.libraries(&key.library, key.mode),
            directory: session.directory(),
            key: key.clone(),
            transactions: session.transactions,
            sources: session.sources.clone(),
            count_syncs: false,
            waldio_options: row.key.waldio_options(),
            checkpoint_apart: key.mode.has_log(),
        })?;
        row.failure.clone_from(&measured.run.failure);
        row.waldio_status = measured.waldio_status;
        row.transactions.runs.push(round.mark(measured.run));
        if let Some((log_flush, checkpoint)) = measured.apart {
            row.log_flush.runs.push(round.mark(log_flush));
            row.checkpoint.runs.push(round.mark(checkpoint));
        }
        Ok(())
    }

    fn fail(&mut self, row: usize, reason: String) {
        self.rows[row].failure = Some(reason);
    }

    fn finish(mut self: Box<Self>, document: &mut Document) {
        summarise(&mut self.rows);
        document.study.get_or_insert_with(Study::default).table_two = self.rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layout_that_the_extension_lacks_has_no_row() {
        let stock = table_two_keys("system", &[Layout::Stock]);
        // Five modes without a log; in two states of it WAL with and without flushes, and four modes of waldio.
        assert_eq!(stock.len(), 3 * (5 + 2 * (2 + 4)));
        assert!(stock.iter().all(|key| key.layout == Layout::Stock));
        let both = table_two_keys("system", Layout::ALL);
        assert_eq!(both.len() - stock.len(), 3 * 2 * 4);
        for (index, key) in both.iter().enumerate() {
            assert!(!both[..index].contains(key), "{key} twice");
        }
    }
}
