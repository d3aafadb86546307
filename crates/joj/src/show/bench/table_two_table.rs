//! Table 2 of the WALDIO paper as text for a terminal.

use joj_analysis::bench::key::Word;
use joj_analysis::bench::study::table_two::TableTwoRow;

use crate::show::bench::groups::groups;
use crate::show::text::{columns, count, duration_of, kib, number, or_dash};

/// A table for each workload, then what the columns mean; empty without rows.
pub fn render(rows: &[TableTwoRow]) -> String {
    let groups = groups(rows, |one, other| one.key.same_group(&other.key));
    let text: String = groups.iter().map(|members| group(members)).collect();
    if text.is_empty() { text } else { format!("{text}{LEGEND}") }
}

const LEGEND: &str = "
FS: synchronous=FULL, waldio with write + fdatasync. PD: the same with one direct durable write. NS: synchronous=NORMAL. group: \
waldio_group=
16KiB,2ms; its COMMIT does not wait, and a power cut takes what the window holds. No checkpoint while the clock runs. KB per \
transaction that
the device wrote, whoever caused it: log = until the log was durable, waldio's zeroing ahead included; db = a checkpoint behind \
that; all = both.
x WAL = against stock WAL with FS, paired by round. journal = commits of the file system's journal. MEMORY and OFF survive no \
power cut.
";

fn group(members: &[&TableTwoRow]) -> String {
    let transactions =
        members.iter().find_map(|row| row.transactions.runs.first()).map_or(0, |run| run.transactions);
    let head = ["", "tx/s", "interval", "x WAL", "p50", "p99", "log KB", "db KB", "all KB", "journal"];
    let title = format!(
        "Table 2: {}, {} transactions; SQLite {}",
        members[0].key.row.workload.word(),
        count(transactions),
        members[0].key.row.library
    );
    let mut lines = vec![vec![title], head.map(str::to_owned).to_vec()];
    lines.extend(members.iter().map(|row| line(row)));
    format!("\n{}", columns(&lines))
}

fn line(row: &TableTwoRow) -> Vec<String> {
    let title = format!("  {}", row.key.title());
    match (&row.failure, &row.transactions.summary) {
        (Some(_), _) => vec![format!("{title}  FAILED, see below")],
        (None, None) => vec![format!("{title}  not measured")],
        (None, Some(summary)) => {
            let speed = &summary.operations_per_s;
            vec![
                title,
                number(speed.median),
                format!("{}-{}", number(speed.low), number(speed.high)),
                or_dash(row.versus_stock_wal.map(|ratio| ratio.median), |ratio| format!("{ratio:.2}")),
                duration_of(summary.p50_ns.median),
                duration_of(summary.p99_ns.median),
                or_dash(row.log_bytes(), kib),
                or_dash(row.database_bytes(), kib),
                or_dash(row.all_bytes(), kib),
                or_dash(row.journal_commits(), number),
            ]
        }
    }
}
