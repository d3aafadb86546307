//! A measurement of Table 2 of the WALDIO paper: rows of SQLite, each with its own options for waldio.

use joj_analysis::bench::key::{JournalMode, Word};
use joj_analysis::bench::run::Run;
use joj_analysis::bench::study::table_two::{Layout, TableTwoKey, TableTwoRow, summarise};

use crate::bench::ask::Stop;
use crate::bench::progress::Progress;
use crate::bench::rounds::in_rounds;
use crate::bench::session::{Collected, Session};
use crate::bench::worker::database_run::RowTask;
use crate::bench::worker::libraries::OptionsTask;

/// The layouts that the extension of `session` knows, with the build `library`.
/// # Errors
/// [`Stop::Signal`] and [`Stop::Full`]. That it does not know one is no error.
pub fn known_layouts(session: &Session<'_>, library: &str) -> Result<Vec<Layout>, Stop> {
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

/// Measures everything, the disk's limit once a round.
/// # Errors
/// [`Stop::Signal`] and [`Stop::Full`]; a row that fails alone is marked instead.
pub fn measure(
    session: &Session<'_>,
    keys: &[TableTwoKey],
    limits: &mut Collected,
    progress: &mut Progress,
) -> Result<Vec<TableTwoRow>, Stop> {
    let mut rows: Vec<TableTwoRow> = keys.iter().cloned().map(TableTwoRow::new).collect();
    let name = |row: &TableTwoRow| row.key.to_string();
    in_rounds(session, &mut rows, (limits, progress), name, |row, round| measure_row(session, row, round))?;
    summarise(&mut rows);
    Ok(rows)
}

fn measure_row(session: &Session<'_>, row: &mut TableTwoRow, round: u32) -> Result<(), Stop> {
    if row.failure.is_some() {
        return Ok(());
    }
    let key = &row.key.row;
    let task = RowTask {
        libraries: session.libraries(&key.library, key.mode),
        directory: session.directory(),
        key: key.clone(),
        transactions: session.transactions,
        sources: session.sources.clone(),
        count_syncs: false,
        waldio_options: row.key.waldio_options(),
        checkpoint_apart: key.mode.has_log(),
    };
    match session.perform(&task) {
        Ok(measured) => {
            row.failure.clone_from(&measured.run.failure);
            row.waldio_status = measured.waldio_status;
            row.transactions.runs.push(Run { round, ..measured.run });
            if let Some((log_flush, checkpoint)) = measured.apart {
                row.log_flush.runs.push(Run { round, ..log_flush });
                row.checkpoint.runs.push(Run { round, ..checkpoint });
            }
        }
        Err(Stop::Failed(reason)) => row.failure = Some(reason),
        Err(stop) => return Err(stop),
    }
    Ok(())
}
