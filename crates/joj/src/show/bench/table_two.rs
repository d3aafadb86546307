//! Table 2 of the WALDIO paper: as text for a terminal, and as sections of the page.

use joj_analysis::bench::key::Word;
use joj_analysis::bench::study::durability::Durability;
use joj_analysis::bench::study::table_two::TableTwoRow;

use crate::show::bars::{Bar, Entry, draw, short_name};
use crate::show::bench::groups::groups;
use crate::show::paper::Paper;
use crate::show::svg::{Fill, escape, fill_of};
use crate::show::text::{count, duration_of, kib, number, or_dash};

/// A table for each workload, then what the columns mean; empty without rows.
pub fn table(rows: &[TableTwoRow], paper: &Paper) -> String {
    let groups = groups(rows, |one, other| one.key.same_group(&other.key));
    let text: String = groups.iter().map(|members| group(members, paper)).collect();
    if text.is_empty() { text } else { format!("{text}\n{}", paper.paragraph(LEGEND)) }
}

const LEGEND: &str = "FS: synchronous=FULL, waldio with write + fdatasync. PD: the same with one direct durable write. NS: \
    synchronous=NORMAL. group: waldio_group=16KiB,2ms; its COMMIT does not wait, and a power cut takes what \
    the window holds. No checkpoint while the clock runs. KB per transaction that the device wrote, whoever \
    caused it: log = until the log was durable, waldio's zeroing ahead included; db = a checkpoint behind that; \
    all = both. x WAL = against stock WAL with FS, paired by round. journal = commits of the file system's \
    journal. MEMORY and OFF survive no power cut.";

fn group(members: &[&TableTwoRow], paper: &Paper) -> String {
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
    format!("\n{}", paper.columns(&lines))
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

/// A section for each workload: transactions per second, and bytes per transaction of log and database; empty without
/// rows.
pub fn section(rows: &[TableTwoRow]) -> String {
    let mut text = String::new();
    for group in groups(rows, |one, other| one.key.same_group(&other.key)) {
        let row = group[0];
        let members: Vec<&TableTwoRow> = group.into_iter().filter(|row| row.failure.is_none()).collect();
        text.push_str(&format!(
            "<h2>Table 2 of the WALDIO paper: {}</h2>\n{}{}{}",
            escape(row.key.row.workload.word()),
            // Without a flush they are a hundred times faster: on one scale the others could not be told apart.
            draw("Transactions per second, flushed (FS, PD)", &entries(&members, flushed_speed), None, 15.0),
            draw(
                "Transactions per second, synchronous=NORMAL (NS)",
                &entries(&members, normal_speed),
                None,
                15.0
            ),
            draw("KiB on the disk for each transaction", &entries(&members, bytes), None, 12.0)
        ));
    }
    text
}

fn entries(rows: &[&TableTwoRow], bars: fn(&TableTwoRow) -> Vec<Bar>) -> Vec<Entry> {
    let entry = |row: &&TableTwoRow| {
        let (heading, label) = (short_name(&row.key.row.library), row.key.title());
        Entry { heading, label, bars: bars(row) }
    };
    rows.iter().map(entry).filter(|entry| !entry.bars.is_empty()).collect()
}

fn flushed_speed(row: &TableTwoRow) -> Vec<Bar> {
    if row.key.durability == Durability::Ns { Vec::new() } else { speed(row) }
}

fn normal_speed(row: &TableTwoRow) -> Vec<Bar> {
    if row.key.durability == Durability::Ns { speed(row) } else { Vec::new() }
}

fn speed(row: &TableTwoRow) -> Vec<Bar> {
    let Some(summary) = &row.transactions.summary else { return Vec::new() };
    let speed = summary.operations_per_s;
    let ratio =
        row.versus_stock_wal.map_or_else(String::new, |ratio| format!("  ({:.2} x WAL)", ratio.median));
    let note = format!("{}{ratio}", number(speed.median));
    let interval = Some((speed.low, speed.high));
    vec![Bar { value: speed.median, interval, fill: fill_of(&row.key.row), note }]
}

fn bytes(row: &TableTwoRow) -> Vec<Bar> {
    let fill = fill_of(&row.key.row);
    let bar = |value: Option<f64>, opacity: f64, what: &str| {
        let value = value? / 1024.0;
        let note = format!("{} KiB {what}", number(value));
        Some(Bar { value, interval: None, fill: Fill { opacity, ..fill }, note })
    };
    let of_log = bar(row.log_bytes(), 0.5, "log");
    [of_log, bar(row.all_bytes(), 1.0, "in all")].into_iter().flatten().collect()
}
