//! A result as text: warnings, the verdict, and the table, which is as wide as the terminal at most.

use joj_analysis::bench::document::{Document, Limit};
use joj_analysis::bench::environment::{Environment, SqliteBuild};
use joj_analysis::bench::row::{Row, RowSummary};
use joj_analysis::statistics::Estimate;

use crate::show::bench::file_io;
use crate::show::bench::groups::groups;
use crate::show::bench::initialisation;
use crate::show::bench::interval::{interval, interval_title, ratio_mood};
use crate::show::bench::many_writers;
use crate::show::bench::pattern;
use crate::show::bench::table_two;
use crate::show::bench::verdict;
use crate::show::paper::{Mood, Paper};
use crate::show::text::{count, duration, kib, number, or_dash};

/// The whole result, on such a paper: what makes it doubtful, the verdict, then the figures.
pub fn render(document: &Document, paper: &Paper) -> String {
    let mut text = format!("\n{}", paper.paragraph(&place_line(&document.environment)));
    text.push_str(&heading_lines(document, paper));
    text.push_str(&warnings(document, paper));
    text.push_str(&verdict::text(document, paper));
    text.push_str(&limits(document, paper));
    for members in groups(&document.rows, |one, other| one.key.same_group(&other.key)) {
        text.push_str(&group(document, &members, paper));
    }
    text.push_str(&many_writers::table(document, paper));
    text.push_str(&file_io::table(&document.io, paper));
    if let Some(study) = &document.study {
        text.push_str(&initialisation::table(&study.initialisation, paper));
        text.push_str(&pattern::table(&study.patterns, paper));
        text.push_str(&table_two::table(&study.table_two, paper));
    }
    text.push_str(&failures(document, paper));
    if !document.rows.is_empty() {
        text.push_str(&format!("\n{}", paper.paragraph(if paper.is_wide { WIDE_LEGEND } else { LEGEND })));
    }
    text
}

const LEGEND: &str = "tx/s = transactions a second. x WAL = against stock WAL of the same build, paired by round. p50, \
    p99, max = time of a transaction: half are faster, 99 of 100 are, the slowest. A dash: not available here, or no \
    meaning there. More columns: --wide; all figures: --json FILE.";

const WIDE_LEGEND: &str = "Per transaction: cpu = user + system microseconds; switches = voluntary + involuntary; calls \
    KB = what the process passed to write calls, disk KB = what the device wrote meanwhile, whoever caused it; syncs = \
    calls for durability, counted apart; journal = commits of the file system's journal. x WAL = against stock WAL of the \
    same build, paired by round; limit = share of the disk's. A dash: not available here, or no meaning there. All \
    figures are in the JSON (--json FILE).";

/// What makes the figures doubtful: it stands in front of them.
fn warnings(document: &Document, paper: &Paper) -> String {
    let each = document.warnings.iter().map(|warning| {
        let head = paper.paint(Mood::Careful, "WARNING: ");
        paper.item(&head, &format!("{}. Remedy: {}.", warning.what, warning.remedy))
    });
    let text: String = each.collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}

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

fn heading_lines(document: &Document, paper: &Paper) -> String {
    let mut text = String::new();
    for build in &document.builds {
        let words = format!("{} [{}]", build_words(build), build.sync_call_evidence);
        text.push_str(&paper.item(&format!("SQLite {}: ", build.name), &words));
    }
    if let Some(waldio) = &document.environment.waldio {
        let options =
            if waldio.options.is_empty() { String::new() } else { format!(" {}", waldio.options.join(" ")) };
        text.push_str(&paper.item("waldio: ", &format!("{}{options}", waldio.file)));
    }
    let plan = &document.plan;
    let words =
        format!("{}, {:.0} s (expected {:.0} s)", plan_words(document), plan.elapsed_s, plan.expected_s);
    text + &paper.paragraph(&words)
}

/// `1000 transactions, 5 runs`, `5 runs of 2 s`, or both.
pub fn plan_words(document: &Document) -> String {
    let plan = &document.plan;
    match plan.seconds {
        Some(seconds) if !document.io.is_empty() => format!("{} runs of {seconds} s at most", plan.runs),
        Some(seconds) if !document.rows.is_empty() => {
            format!("{} transactions, many writers {seconds} s, {} runs", count(plan.transactions), plan.runs)
        }
        Some(seconds) => format!("{} runs of {seconds} s", plan.runs),
        None => format!("{} transactions, {} runs", count(plan.transactions), plan.runs),
    }
}

fn build_words(build: &SqliteBuild) -> String {
    format!("{}, {}", build.version, build.sync_call)
}

fn limits(document: &Document, paper: &Paper) -> String {
    if document.limits.iter().all(|limit| limit.refused.is_none() && limit.operations_per_s.is_none()) {
        return String::new();
    }
    let best = document.best_limit().map(|limit| limit.kind);
    let first = document.limits.iter().find_map(|limit| limit.operations_per_s.as_ref());
    let mut head = vec!["", "per s"];
    let interval = interval_title(first);
    head.extend([&*interval, "p50"]);
    if paper.is_wide {
        head.extend(["p99", "p99.9", "max", "disk KB"]);
    }
    let mark = if best.is_some() { " (* its limit)" } else { "" };
    let mut lines = vec![
        vec![paper.paint(Mood::Strong, &format!("the disk itself{mark}"))],
        head.into_iter().map(str::to_owned).collect(),
    ];
    for limit in &document.limits {
        lines.push(limit_line(limit, best == Some(limit.kind), paper));
    }
    format!("\n{}", paper.columns(&lines))
}

fn limit_line(limit: &Limit, is_best: bool, paper: &Paper) -> Vec<String> {
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
    let mut cells = vec![
        format!("{} {}{}", if is_best { "*" } else { " " }, limit.kind.title(), limit_note(limit)),
        number(speed.median),
        interval(speed),
        duration(limit.latency.p50_ns),
    ];
    if paper.is_wide {
        cells.extend([
            duration(limit.latency.p99_ns),
            duration(limit.latency.p999_ns),
            duration(limit.latency.max_ns),
            or_dash(device_bytes, kib),
        ]);
    }
    cells
}

/// Btrfs, for one, has nothing to do for a clean file and tells the device nothing.
fn limit_note(limit: &Limit) -> &'static str {
    let flushes = limit.runs.iter().map(|run| run.device.and_then(|device| device.flushes));
    let no_flush = flushes.map(|count| count.unwrap_or(1)).sum::<u64>() == 0;
    if !limit.kind.stores_data() && no_flush { ": no flush there" } else { "" }
}

fn group(document: &Document, members: &[&Row], paper: &Paper) -> String {
    let first = members[0];
    let summaries = || members.iter().filter_map(|row| row.summary.as_ref());
    let transactions = members.iter().find_map(|row| row.runs.first()).map_or(0, |run| run.transactions);
    let of_speed = interval_title(summaries().map(|summary| &summary.transactions_per_s).next());
    let mut head = vec!["", "tx/s", &of_speed, "x WAL"];
    head.extend(if paper.is_wide {
        &["limit", "p50", "p99", "p99.9", "max"][..]
    } else {
        &["p50", "p99", "max"]
    });
    if paper.is_wide {
        head.extend(["cpu us", "switches", "calls KB", "disk KB", "syncs", "journal"]);
    }
    let title = format!("{}, {} transactions a run", first.key.group_title(), count(transactions));
    let mut lines =
        vec![vec![paper.paint(Mood::Strong, &title)], head.into_iter().map(str::to_owned).collect()];
    let mut library = None;
    for row in members {
        if library != Some(&row.key.library) {
            library = Some(&row.key.library);
            let build = document.builds.iter().find(|build| build.name == row.key.library);
            let words = build.map_or_else(String::new, |build| format!(" {}", build_words(build)));
            lines.push(vec![format!(" {}{words}", row.key.library)]);
        }
        lines.push(row_line(row, paper));
    }
    format!("\n{}", paper.columns(&lines))
}

fn row_line(row: &Row, paper: &Paper) -> Vec<String> {
    let title = format!("  {}", row.key.mode_title());
    match (&row.failure, &row.summary) {
        (Some(_), _) => vec![format!("{title}  {}, see below", paper.paint(Mood::Bad, "FAILED"))],
        (None, None) => vec![format!("{title}  not measured")],
        (None, Some(summary)) => {
            let mood =
                if row.key.mode.uses_waldio() { ratio_mood(summary.versus_stock_wal) } else { Mood::Plain };
            let mut cells = vec![title];
            cells.extend(summary_cells(summary, mood, paper));
            cells
        }
    }
}

fn summary_cells(summary: &RowSummary, mood: Mood, paper: &Paper) -> Vec<String> {
    let speed = &summary.transactions_per_s;
    let ratio = |estimate: Option<Estimate>| {
        or_dash(estimate.map(|ratio| ratio.median), |value| format!("{value:.2}"))
    };
    let mut cells =
        vec![number(speed.median), interval(speed), paper.paint(mood, &ratio(summary.versus_stock_wal))];
    if paper.is_wide {
        cells.push(ratio(summary.share_of_limit));
    }
    cells.extend([duration(summary.latency.p50_ns), duration(summary.latency.p99_ns)]);
    if paper.is_wide {
        cells.push(duration(summary.latency.p999_ns));
    }
    cells.push(duration(summary.latency.max_ns));
    if paper.is_wide {
        cells.extend([
            format!("{:.0}+{:.0}", summary.cpu_user_us, summary.cpu_system_us),
            format!("{:.1}+{:.1}", summary.switches_voluntary, summary.switches_involuntary),
            or_dash(summary.wchar_bytes, kib),
            or_dash(summary.device_bytes, kib),
            or_dash(summary.syncs, number),
            or_dash(summary.journal_commits, number),
        ]);
    }
    cells
}

fn failures(document: &Document, paper: &Paper) -> String {
    let failed = paper.paint(Mood::Bad, "FAILED ");
    let each =
        document.failures().into_iter().map(|(key, reason)| paper.item(&failed, &format!("{key}: {reason}")));
    let text: String = each.collect();
    if text.is_empty() { text } else { format!("\n{text}") }
}
