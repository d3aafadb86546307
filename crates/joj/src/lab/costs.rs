//! What a transaction costs on its way to the device, from the trace of a cell.

use std::path::Path;

use joj_analysis::lab::result::Costs;
use joj_analysis::trace::file_type::FileTypes;

use crate::trace::analysis::AnalysisOptions;
use crate::trace::document::TransactionRow;
use crate::trace::error::TraceError;
use crate::trace::saved;

/// More than any traced run has.
const STEPS_MAX: usize = 1_000_000;

/// The medians over the last `transactions` of the trace in `file` before the database is verified; `None` where the trace
/// has no transactions.
/// # Errors
/// Where the trace cannot be read.
pub fn of(file: &Path, transactions: u64) -> Result<Option<Costs>, TraceError> {
    let wanted =
        AnalysisOptions { skip: 0, steps: STEPS_MAX, exports: &[], labels: &[], save: None, everybody: true };
    let (findings, texts) = saved::read(file, FileTypes::default(), &wanted)?;
    let all: Vec<TransactionRow> =
        findings.transactions.iter().map(|transaction| TransactionRow::of(transaction, &texts)).collect();
    let measured = last(&all, usize::try_from(transactions).unwrap_or(usize::MAX));
    Ok((!measured.is_empty()).then(|| medians(&measured)))
}

/// Commits, or, where SQLite was not seen, calls: the last so many.
fn last(all: &[TransactionRow], count: usize) -> Vec<&TransactionRow> {
    let commits: Vec<&TransactionRow> = all.iter().filter(|one| one.what == "commit").collect();
    let looked_at = if commits.is_empty() { all.iter().collect() } else { commits };
    looked_at[looked_at.len().saturating_sub(count)..].to_vec()
}

fn medians(transactions: &[&TransactionRow]) -> Costs {
    let median = |quantity: &dyn Fn(&TransactionRow) -> u64| {
        let mut values: Vec<u64> = transactions.iter().map(|one| quantity(one)).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    Costs {
        transactions: transactions.len() as u64,
        data_bytes: median(&|one| one.data_bytes),
        journal_bytes: median(&|one| one.journal_bytes),
        journal_of_journal_bytes: median(&|one| one.journal_of_journal_bytes.unwrap_or(0)),
        other_bytes: median(&|one| one.other_bytes),
        writes: median(&|one| one.writes.unwrap_or(0)),
        flushes: median(&|one| one.flushes),
        syncs: median(&|one| one.syncs),
    }
}
