//! Many writers: as text for a terminal, and as sections of the page, each with its `plots`.

mod plots;

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::JournalMode;
use joj_analysis::bench::many_writers::{ContendedRow, ContendedSummary};
use joj_analysis::statistics::Estimate;

use crate::show::bench::groups::groups;
use crate::show::bench::interval::{interval, interval_title, ratio_mood};
use crate::show::paper::{Mood, Paper};
use crate::show::svg::escape;
use crate::show::text::{count, duration, number, or_dash};

/// A table for each kind of writer, schema and build, then what its columns mean; empty without contended rows.
pub fn table(document: &Document, paper: &Paper) -> String {
    let mut text = String::new();
    for members in groups(&document.contended, |one, other| one.key.same_group(&other.key)) {
        text.push_str(&group(document, &members, paper));
    }
    if !text.is_empty() {
        text.push_str(&format!("\n{}", paper.paragraph(if paper.is_wide { LEGEND } else { NARROW_LEGEND })));
    }
    text
}

const NARROW_LEGEND: &str = "Commits of all writers together. p50, p99, max = time of a COMMIT, all waiting included: half are \
    faster, 99 of 100 are, the slowest. x WAL = against stock WAL with as many writers, paired by round. fair = Jain's index \
    (1: all writers committed equally often).";

const LEGEND: &str = "Commits of all writers together while the clock ran. p50 to max: from calling sqlite3_step to its return, \
    all waiting included, of all runs. x WAL = against stock WAL with as many writers, paired by round: of \
    commits/s, then of a run's longest wait. fair = Jain's index over the commits of each writer (1: all got \
    the same). flush = calls of fsync, fdatasync and durable pwritev2 per commit, all threads and processes; \
    dev = flushes the disk did per commit, whoever caused them. log = largest size of the file, prepared space \
    included; used = most of it that held frames. err = INSERTs that failed, SQLITE_BUSY after 60 s among them.";

fn group(document: &Document, members: &[&ContendedRow], paper: &Paper) -> String {
    let first = members[0];
    let speed = members.iter().find_map(|row| row.summary.as_ref()).map(|summary| &summary.commits_per_s);
    let of_speed = interval_title(speed);
    let build = document.builds.iter().find(|build| build.name == first.key.library);
    let build = build.map_or_else(String::new, |build| format!(" {}, {}", build.version, build.sync_call));
    let mut head = vec!["", "commits/s", &of_speed, "x WAL"];
    head.extend(if paper.is_wide {
        &["interval", "p50", "p99", "p99.9", "max", "x WAL"][..]
    } else {
        &["p50", "p99", "max"]
    });
    head.push("fair");
    if paper.is_wide {
        head.extend(["flush", "dev", "log MB", "used", "err"]);
    }
    let title = format!("{}; {}{build}", first.key.group_title(), first.key.library);
    let mut lines =
        vec![vec![paper.paint(Mood::Strong, &title)], head.into_iter().map(str::to_owned).collect()];
    lines.extend(members.iter().map(|row| line(row, paper)));
    format!("\n{}", paper.columns(&lines))
}

fn line(row: &ContendedRow, paper: &Paper) -> Vec<String> {
    let title = format!("  {:>4} {}", row.key.writers, row.key.mode_title());
    match (&row.failure, &row.summary) {
        (Some(_), _) => vec![format!("{title}  {}, see below", paper.paint(Mood::Bad, "FAILED"))],
        (None, None) => vec![format!("{title}  not measured")],
        (None, Some(summary)) => {
            let mut cells = vec![title];
            cells.extend(summary_cells(summary, row.key.mode == JournalMode::Wal, paper));
            cells
        }
    }
}

fn ratio(estimate: Option<Estimate>) -> String {
    or_dash(estimate.map(|ratio| ratio.median), number)
}

fn megabytes(bytes: Option<u64>) -> String {
    or_dash(bytes.map(|bytes| bytes as f64 / 1e6), number)
}

fn summary_cells(summary: &ContendedSummary, is_stock: bool, paper: &Paper) -> Vec<String> {
    let speed = &summary.commits_per_s;
    // Stock beside itself says nothing.
    let versus = summary.versus_stock_wal.filter(|_| !is_stock);
    let waits = summary.worst_wait_versus_stock_wal.filter(|_| !is_stock);
    let latency = &summary.latency;
    let mut cells =
        vec![number(speed.median), interval(speed), paper.paint(ratio_mood(versus), &ratio(versus))];
    if paper.is_wide {
        cells.push(versus.as_ref().map_or_else(|| "-".to_owned(), interval));
    }
    cells.extend([duration(latency.p50_ns), duration(latency.p99_ns)]);
    if paper.is_wide {
        cells.push(duration(latency.p999_ns));
    }
    cells.push(duration(latency.max_ns));
    if !paper.is_wide {
        cells.push(ratio(summary.fairness));
        return cells;
    }
    cells.extend([
        ratio(waits),
        ratio(summary.fairness),
        or_dash(summary.flushes_per_commit, number),
        or_dash(summary.device_flushes, number),
        megabytes(summary.log_bytes_max),
        megabytes(summary.log_used_bytes_max),
        count(summary.errors),
    ]);
    cells
}

/// A section for each table; empty without contended rows.
pub fn section(rows: &[ContendedRow]) -> String {
    let groups = groups(rows, |one, other| one.key.same_group(&other.key));
    groups.iter().map(|members| section_of(members)).collect()
}

/// Two plots over the number of writers, and each number of writers in a line.
fn section_of(members: &[&ContendedRow]) -> String {
    let first = members[0];
    let told = |row: &&&ContendedRow| row.failure.is_none() && row.summary.is_some();
    let rows: Vec<&ContendedRow> = members.iter().filter(told).copied().collect();
    let mut lines = String::new();
    for row in &rows {
        let Some(summary) = &row.summary else { continue };
        let ratio = |found: Option<Estimate>| {
            // Stock beside itself says nothing.
            found.filter(|_| row.key.mode != JournalMode::Wal).map_or_else(
                || "-".to_owned(),
                |found| format!("{} ({} to {})", number(found.median), number(found.low), number(found.high)),
            )
        };
        let plain = |value: Option<f64>| or_dash(value, number);
        let cells = [
            format!("{} {}", row.key.writers, row.key.mode_title()),
            number(summary.commits_per_s.median),
            ratio(summary.versus_stock_wal),
            duration(summary.latency.p50_ns),
            duration(summary.latency.p99_ns),
            duration(summary.latency.p999_ns),
            duration(summary.latency.max_ns),
            ratio(summary.worst_wait_versus_stock_wal),
            plain(summary.fairness.map(|fairness| fairness.median)),
            plain(summary.flushes_per_commit),
            plain(summary.log_bytes_max.map(|bytes| bytes as f64 / 1e6)),
            plain(Some(summary.errors as f64)),
        ];
        let cells: Vec<String> = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        lines.push_str(&format!("<tr>{}</tr>\n", cells.concat()));
    }
    format!(
        "<h2>{}</h2>\n<div class=\"pair\">\n{}</div>\n<table class=\"dense\">\n<tr><th>writers</th><th>commits/s</th>\
         <th>x stock WAL</th><th>p50</th><th>p99</th><th>p99.9</th><th>max</th><th>longest wait x WAL</th>\
         <th>fairness</th><th>flushes per commit</th><th>log MB</th><th>errors</th></tr>\n{lines}</table>\n",
        escape(&format!("{}; SQLite {}", first.key.group_title(), first.key.library)),
        plots::of_group(&rows)
    )
}
