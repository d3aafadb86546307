//! A result as text for a terminal of 140 columns.

use joj_analysis::bench::document::{Document, Limit};
use joj_analysis::bench::environment::{Environment, SqliteBuild};
use joj_analysis::bench::row::{Row, RowSummary};
use joj_analysis::statistics::Estimate;

use crate::show::bench::file_io;
use crate::show::bench::initialisation;
use crate::show::bench::many_writers;
use crate::show::bench::pattern;
use crate::show::bench::table_two;
use crate::show::text::{columns, count, duration, kib, number, or_dash};

/// The whole result.
pub fn render(document: &Document) -> String {
    let mut text = format!("\n{}\n", place_line(&document.environment));
    text.push_str(&heading_lines(document));
    text.push_str(&limits(document));
    for (index, row) in document.rows.iter().enumerate() {
        let is_first = document.rows[..index].iter().all(|earlier| !earlier.key.same_group(&row.key));
        if is_first {
            text.push_str(&group(document, row));
        }
    }
    text.push_str(&many_writers::table(document));
    text.push_str(&file_io::table(&document.io));
    if let Some(study) = &document.study {
        text.push_str(&initialisation::table(&study.initialisation));
        text.push_str(&pattern::table(&study.patterns));
        text.push_str(&table_two::table(&study.table_two));
    }
    text.push_str(&failures(document));
    if !document.rows.is_empty() {
        text.push_str(LEGEND);
    }
    for warning in &document.warnings {
        text.push_str(&format!("WARNING: {}.\n         Remedy: {}.\n", warning.what, warning.remedy));
    }
    text
}

const LEGEND: &str = "
Per transaction: cpu = user + system microseconds; switches = voluntary + involuntary; calls KB = what the process \
passed to
write calls, disk KB = what the device wrote meanwhile, whoever caused it; syncs = calls for durability, counted \
apart; journal =
commits of the file system's journal. x WAL = against stock WAL of the same build, paired by round; limit = share of \
the disk's.
A dash: not available here, or no meaning there. All figures are in the JSON (`--json FILE`).
";

/// Where it was measured, in a line.
pub fn place_line(environment: &Environment) -> String {
    let filesystem = &environment.filesystem;
    let device = environment.device.as_ref().map_or_else(
        || ", no block device of its own".to_owned(),
        |device| {
            let known = |text: &Option<String>| text.clone().unwrap_or_else(|| "?".to_owned());
            let fua = match device.fua {
                Some(true) => ", FUA",
                Some(false) => ", no FUA",
                None => "",
            };
            let model = device.model.as_ref().map_or_else(String::new, |model| format!(" ({model})"));
            format!(" on {}{model}, {}{fua}", device.name, known(&device.write_cache))
        },
    );
    let kind = if filesystem.kind.is_empty() { "an unknown file system" } else { &filesystem.kind };
    format!("{}: {kind}{device}; kernel {}", environment.directory, environment.kernel)
}

fn heading_lines(document: &Document) -> String {
    let mut text = String::new();
    for build in &document.builds {
        text.push_str(&format!(
            "SQLite {}: {} [{}]\n",
            build.name,
            build_words(build),
            build.sync_call_evidence
        ));
    }
    if let Some(waldio) = &document.environment.waldio {
        let options =
            if waldio.options.is_empty() { String::new() } else { format!(" {}", waldio.options.join(" ")) };
        text.push_str(&format!("waldio: {}{options}\n", waldio.file));
    }
    let plan = &document.plan;
    text.push_str(&format!(
        "{}, {:.0} s (expected {:.0} s)\n",
        plan_words(document),
        plan.elapsed_s,
        plan.expected_s
    ));
    text
}

/// `1000 transactions, 5 runs` or `5 runs of 2 s`.
pub fn plan_words(document: &Document) -> String {
    let plan = &document.plan;
    match plan.seconds {
        Some(seconds) if !document.io.is_empty() => format!("{} runs of {seconds} s at most", plan.runs),
        Some(seconds) => format!("{} runs of {seconds} s", plan.runs),
        None => format!("{} transactions, {} runs", count(plan.transactions), plan.runs),
    }
}

fn build_words(build: &SqliteBuild) -> String {
    format!("{}, {}", build.version, build.sync_call)
}

fn interval(estimate: &Estimate) -> String {
    format!("{}-{}", number(estimate.low), number(estimate.high))
}

fn confidence(estimate: Option<&Estimate>) -> String {
    estimate.map_or_else(|| "interval".to_owned(), |found| format!("{:.0} % int.", found.confidence * 100.0))
}

fn limits(document: &Document) -> String {
    if document.limits.iter().all(|limit| limit.refused.is_none() && limit.operations_per_s.is_none()) {
        return String::new();
    }
    let best = document.best_limit().map(|limit| limit.kind);
    let first = document.limits.iter().find_map(|limit| limit.operations_per_s.as_ref());
    let mut lines = vec![
        vec!["the disk itself".to_owned()],
        ["", "per s", &confidence(first), "p50", "p99", "p99.9", "max", "disk KB", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    for limit in &document.limits {
        lines.push(limit_line(limit, best == Some(limit.kind)));
    }
    format!("\n{}", columns(&lines))
}

fn limit_line(limit: &Limit, is_best: bool) -> Vec<String> {
    let Some(speed) = limit.operations_per_s.as_ref() else {
        let reason = limit.refused.as_deref().unwrap_or("not measured");
        return vec![format!("  {}: {reason}", limit.kind.title())];
    };
    let device_bytes: Vec<f64> = limit
        .runs
        .iter()
        .filter_map(|run| Some(run.device?.written_bytes as f64 / run.operations.max(1) as f64))
        .collect();
    let device_bytes = Estimate::of(&device_bytes).map(|bytes| bytes.median);
    vec![
        format!("  {}", limit.kind.title()),
        number(speed.median),
        interval(speed),
        duration(limit.latency.p50_ns),
        duration(limit.latency.p99_ns),
        duration(limit.latency.p999_ns),
        duration(limit.latency.max_ns),
        or_dash(device_bytes, kib),
        limit_note(limit, is_best).to_owned(),
    ]
}

/// Btrfs, for one, has nothing to do for a clean file and tells the device nothing.
fn limit_note(limit: &Limit, is_best: bool) -> &'static str {
    let flushes = limit.runs.iter().map(|run| run.device.and_then(|device| device.flushes));
    let no_flush = flushes.map(|count| count.unwrap_or(1)).sum::<u64>() == 0;
    match (is_best, limit.kind.stores_data()) {
        (true, _) => "<- the limit",
        (false, false) if no_flush => "no flush reaches the device",
        (false, _) => "",
    }
}

fn group(document: &Document, first: &Row) -> String {
    let members: Vec<&Row> = document.rows.iter().filter(|row| row.key.same_group(&first.key)).collect();
    let summaries = || members.iter().filter_map(|row| row.summary.as_ref());
    let transactions = members.iter().find_map(|row| row.runs.first()).map_or(0, |run| run.transactions);
    let of_speed = confidence(summaries().map(|summary| &summary.transactions_per_s).next());
    let head = [
        "", "tx/s", &of_speed, "x WAL", "limit", "p50", "p99", "p99.9", "max", "cpu us", "switches",
        "calls KB", "disk KB", "syncs", "journal",
    ];
    let mut lines = vec![
        vec![format!("{}, {} transactions a run", first.key.group_title(), count(transactions))],
        head.map(str::to_owned).to_vec(),
    ];
    let mut library = None;
    for row in members {
        if library != Some(&row.key.library) {
            library = Some(&row.key.library);
            let build = document.builds.iter().find(|build| build.name == row.key.library);
            let words = build.map_or_else(String::new, |build| format!(" {}", build_words(build)));
            lines.push(vec![format!(" {}{words}", row.key.library)]);
        }
        lines.push(row_line(row));
    }
    format!("\n{}", columns(&lines))
}

fn row_line(row: &Row) -> Vec<String> {
    let title = format!("  {}", row.key.mode_title());
    match (&row.failure, &row.summary) {
        (Some(_), _) => vec![format!("{title}  FAILED, see below")],
        (None, None) => vec![format!("{title}  not measured")],
        (None, Some(summary)) => {
            let mut cells = vec![title];
            cells.extend(summary_cells(summary));
            cells
        }
    }
}

fn summary_cells(summary: &RowSummary) -> Vec<String> {
    let speed = &summary.transactions_per_s;
    let ratio = |estimate: Option<Estimate>| {
        or_dash(estimate.map(|ratio| ratio.median), |value| format!("{value:.2}"))
    };
    vec![
        number(speed.median),
        interval(speed),
        ratio(summary.versus_stock_wal),
        ratio(summary.share_of_limit),
        duration(summary.latency.p50_ns),
        duration(summary.latency.p99_ns),
        duration(summary.latency.p999_ns),
        duration(summary.latency.max_ns),
        format!("{:.0}+{:.0}", summary.cpu_user_us, summary.cpu_system_us),
        format!("{:.1}+{:.1}", summary.switches_voluntary, summary.switches_involuntary),
        or_dash(summary.wchar_bytes, kib),
        or_dash(summary.device_bytes, kib),
        or_dash(summary.syncs, number),
        or_dash(summary.journal_commits, number),
    ]
}

fn failures(document: &Document) -> String {
    let mut text = String::new();
    for (key, reason) in document.failures() {
        text.push_str(&format!("\nFAILED {key}: {reason}"));
    }
    if text.is_empty() { text } else { format!("{text}\n") }
}
