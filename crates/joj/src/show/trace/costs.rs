//! What durability costs in a trace, as tables: commits, persistence paths, sync calls, latencies.

use joj_analysis::filesystem::class::Class;
use joj_analysis::trace::summary::Summary;
use joj_analysis::trace::summary::durability::{Persistence, RATIO_STEPS, TransactionTotals};

use crate::show::sheet::Sheet;
use crate::show::text::{count, duration, number};
use crate::show::words::{counted, kib_mean, kib_of, mean, part_of, percent, plain};

/// SQLite's commits and checkpoints, for each of them on average.
pub fn transactions(summary: &Summary) -> Sheet {
    let rows = [("commit", "commits", &summary.commits), ("checkpoint", "checkpoints", &summary.checkpoints)];
    let rows = rows.into_iter().filter(|(_, _, totals)| totals.total > 0);
    let always = [Class::Data, Class::Journal, Class::Metadata];
    let shown = |class: &&Class| {
        always.contains(class) || rows.clone().any(|(_, _, totals)| totals.bytes.contains_key(class.text()))
    };
    let classes: Vec<Class> = Class::ALL.iter().filter(shown).copied().collect();
    let mut head = vec!["mean of"];
    head.extend(classes.iter().map(|class| class.text()));
    head.extend(["total", "JOJ", "writes", "flushes", "syncs", "p50", "p99"]);
    let mut sheet = Sheet::new("SQLite's commits: KiB written for each", &head);
    for (one, more, totals) in rows {
        let mut line = vec![counted(totals.total, one, more)];
        line.extend(classes.iter().map(|class| kib_mean(totals.mean_bytes(*class))));
        line.extend([
            kib_mean(totals.mean(totals.total_bytes())),
            kib_mean(totals.mean(totals.journal_of_journal_bytes)),
            mean(totals.mean(totals.writes)),
            mean(totals.mean(totals.flushes)),
            mean(totals.mean(totals.syncs)),
            duration(totals.duration_ns.p50),
            duration(totals.duration_ns.p99),
        ]);
        sheet.line(line);
        sheet.notes.extend(notes(one, more, totals));
    }
    sheet.notes.push("JOJ: what the filesystem's journal wrote for SQLite's own journal.".to_owned());
    sheet
}

fn notes(one: &str, more: &str, totals: &TransactionTotals) -> Vec<String> {
    let mut notes = Vec::new();
    let each = &totals.bytes_each;
    if each.p50 != each.highest {
        let [p50, p99, highest] = [each.p50, each.p99, each.highest].map(kib_of);
        notes.push(format!("KiB of a {one}: half at most {p50}, 99 % at most {p99}, the largest {highest}."));
    }
    let idle = totals.total - totals.with_requests.min(totals.total);
    if idle > 0 {
        notes.push(format!("{} of them had no sync call and no write.", counted(idle, one, more)));
    }
    notes
}

/// Sync calls as persistence paths.
pub fn persistence(summary: &Summary) -> Sheet {
    let paths = &summary.persistence;
    let counts = &summary.counts;
    let mut sheet = Sheet::new("Persistence paths: sync calls that wrote", &["", ""]);
    let mut line = |what: &str, value: String| sheet.line(vec![what.to_owned(), value]);
    if paths.paths > 0 {
        line("paths", count(paths.paths));
        line("R = journal / (data + journal), mean", format!("{:.3}", paths.journal_ratio_mean));
        for quarter in 0..=4 {
            let share = paths.journal_ratio_cdf.get(quarter * RATIO_STEPS / 4).copied().unwrap_or(0.0);
            line(&format!("  paths with R at most {}", quarter as f64 / 4.0), percent(share));
        }
        line("control blocks (descriptor, commit, revoke)", control_share(paths));
        line("time in barriers (the device flushed)", percent(paths.flush_share));
    }
    let again = counts.logged_again;
    if again.bytes > 0 {
        line("metadata logged again, KiB", kib_of(again.bytes));
        line("  bytes of it that had changed", part_of(counts.logged_again_changed_bytes, again.bytes));
    }
    if let Some(amplification) = summary.write_amplification {
        line("write amplification: bytes for a byte of data", number(amplification));
    }
    if summary.journal_commits > 0 {
        line("commits of filesystem journals", count(summary.journal_commits));
    }
    sheet
}

/// What the journal's control blocks are of all that was written for durability.
pub fn control_share(paths: &Persistence) -> String {
    paths.control_share.map_or_else(|| "not known".to_owned(), percent)
}

const CALLS_NOTE: &str = "p50, p99: from begin to end of the call; last: from its begin to the end of its last \
    request; flush: share of the calls' time in which the device flushed for them.";

/// Sync calls by kind and type of file.
pub fn sync_calls(summary: &Summary) -> Sheet {
    let mut sheet = Sheet::new(
        "Sync calls: what each of them wrote, and how long it took",
        &[
            "call, file type",
            "calls",
            "failed",
            "KiB",
            "flushes",
            "p50",
            "p99",
            "last p50",
            "last p99",
            "flush",
        ],
    );
    for group in &summary.sync_calls {
        let each = |sum: u64| sum as f64 / group.calls.max(1) as f64;
        let last =
            |value: u64| if group.last_request_ns.values == 0 { "-".to_owned() } else { duration(value) };
        let of_the_told =
            |text: String| if group.ends_not_told == group.calls { "?".to_owned() } else { text };
        sheet.line(vec![
            format!("{}, {}", plain(&group.call), group.file_type),
            count(group.calls),
            count(group.failed),
            of_the_told(kib_mean(each(group.bytes.values().sum()))),
            of_the_told(mean(each(group.flushes))),
            of_the_told(duration(group.duration_ns.p50)),
            of_the_told(duration(group.duration_ns.p99)),
            last(group.last_request_ns.p50),
            last(group.last_request_ns.p99),
            of_the_told(percent(group.flush_share)),
        ]);
    }
    let failed: u64 = summary.sync_calls.iter().map(|group| group.failed).sum();
    if failed == 0 {
        sheet.without_column(2);
    }
    sheet.notes.push(CALLS_NOTE.to_owned());
    let not_told: u64 = summary.sync_calls.iter().map(|group| group.ends_not_told).sum();
    if not_told > 0 {
        let calls = counted(not_told, "call", "calls");
        sheet.notes.push(format!(
            "The end of {calls} was not seen: how long, and what was written for it, is not known."
        ));
    }
    sheet
}

/// Times of requests at the device.
pub fn latencies(summary: &Summary) -> Sheet {
    let mut sheet =
        Sheet::new("From issue to completion", &["requests", "how many", "p50", "p90", "p99", "longest"]);
    for (name, latency) in ["reads", "writes", "flushes"].iter().zip(&summary.counts.latency_ns) {
        if latency.values > 0 {
            let times = [latency.p50, latency.p90, latency.p99, latency.highest].map(duration);
            let mut line = vec![(*name).to_owned(), count(latency.values)];
            line.extend(times);
            sheet.line(line);
        }
    }
    if !sheet.lines.is_empty() {
        sheet.notes.push("Percentiles, here and elsewhere, are at most 1 % too high.".to_owned());
    }
    sheet
}
