//! Two results side by side, as text: what differs in the conditions, how many rows differ, then the rows.

use joj_analysis::bench::compare::{Alone, Comparison, Judgement, Speeds, Verdict};
use joj_analysis::bench::document::Document;

use crate::show::paper::{Mood, Paper};
use crate::show::text::{number, or_dash};

/// The whole comparison.
pub fn render(comparison: &Comparison, documents: [&Document; 2], paper: &Paper) -> String {
    let mut text = String::new();
    for (place, document) in ["first:  ", "second: "].iter().zip(documents) {
        text.push_str(&paper.item(place, &head(document)));
    }
    text.push_str(&conditions(comparison, documents, paper));
    text.push_str(&format!("\n{}", paper.paragraph(&in_words(comparison))));
    text.push_str(&rows(comparison, paper));
    text + &left_out(comparison, paper)
}

/// When it was measured, and what makes it doubtful.
fn head(document: &Document) -> String {
    let began = &document.environment.started_at;
    let kinds: Vec<&str> = document.warnings.iter().map(|warning| warning.kind.as_str()).collect();
    if kinds.is_empty() { began.clone() } else { format!("{began}, with warnings: {}", kinds.join(", ")) }
}

fn conditions(comparison: &Comparison, documents: [&Document; 2], paper: &Paper) -> String {
    if !comparison.differences.is_empty() {
        let head = ["Conditions that differ", "first", "second"].map(str::to_owned).to_vec();
        let line = |item: &joj_analysis::bench::compare::Difference| {
            vec![format!("  {}", item.what), item.first.clone(), item.second.clone()]
        };
        let lines: Vec<Vec<String>> =
            std::iter::once(head).chain(comparison.differences.iter().map(line)).collect();
        return format!("\n{}", paper.columns(&lines));
    }
    let is_doubtful = documents.iter().any(|document| !document.warnings.is_empty());
    let words = match is_doubtful {
        true => "No condition that was noted differs, but see the warnings above.",
        false => "The conditions are the same.",
    };
    format!("\n{}", paper.paragraph(words))
}

fn speeds(comparison: &Comparison) -> impl Iterator<Item = &Speeds> {
    let pairs = comparison.pairs.iter().map(|pair| &pair.speeds);
    pairs.chain(comparison.contended.iter().map(|pair| &pair.speeds))
}

/// `3 of 30 rows differ by more than chance: 1 faster in the second, 2 slower.`
fn in_words(comparison: &Comparison) -> String {
    let all = speeds(comparison).count();
    let differs = |faster: bool| {
        let found = speeds(comparison).filter(|speeds| speeds.verdict == Verdict::Differs);
        found.filter(|speeds| (speeds.ratio > 1.0) == faster).count()
    };
    match (differs(true), differs(false)) {
        _ if all == 0 => "They have no sound row in common.".to_owned(),
        (0, 0) if all == 1 => "No clear difference in the one row that both have.".to_owned(),
        (0, 0) => format!("No clear difference in any of {all} rows."),
        (faster, slower) => format!(
            "{} of {all} rows differ by more than chance: {faster} faster in the second, {slower} slower.",
            faster + slower
        ),
    }
}

const LEGEND: &str = "first, second = transactions or commits a second. ratio above 1: the second is faster. of limit = \
    the same ratio of shares of what the disk can do. p50 above 1: its median commit is slower; for many writers it is \
    that of the longest waits. It may be chance where intervals overlap, where a row moved with the disk, and with \
    fewer than three runs.";

fn rows(comparison: &Comparison, paper: &Paper) -> String {
    if speeds(comparison).count() == 0 {
        return String::new();
    }
    let mut lines = vec![["", "first", "second", "ratio", "of limit", "p50", ""].map(str::to_owned).to_vec()];
    if let Some(ratio) = comparison.limit_ratio {
        let cells = ["the disk's limit", "", "", &format!("{ratio:.2}"), "1.00", "", ""];
        lines.push(cells.map(str::to_owned).to_vec());
    }
    let mut group = String::new();
    for pair in &comparison.pairs {
        heading(&mut group, pair.key.group_title(), &mut lines);
        let name = format!("  {}, {}", pair.key.mode_title(), pair.key.library);
        lines.push(cells(name, &pair.speeds, pair.latency_ratio, paper));
    }
    for pair in &comparison.contended {
        heading(&mut group, pair.key.group_title(), &mut lines);
        let name = format!("  {} {}, {}", pair.key.writers, pair.key.mode_title(), pair.key.library);
        lines.push(cells(name, &pair.speeds, pair.worst_wait_ratio, paper));
    }
    format!("\n{}\n{}", paper.columns(&lines), paper.paragraph(LEGEND))
}

/// A line for a group, where another one begins.
fn heading(group: &mut String, title: String, lines: &mut Vec<Vec<String>>) {
    if *group != title {
        lines.push(vec![title.clone()]);
        *group = title;
    }
}

/// One pair in a table; `latency_ratio` is that of its last column of numbers.
fn cells(name: String, speeds: &Speeds, latency_ratio: Option<f64>, paper: &Paper) -> Vec<String> {
    let two_digits = |ratio: f64| format!("{ratio:.2}");
    let (mood, note) = match speeds.verdict {
        Verdict::Differs if speeds.ratio > 1.0 => (Mood::Good, "faster"),
        Verdict::Differs => (Mood::Bad, "slower"),
        Verdict::Overlap => (Mood::Plain, "overlap"),
        Verdict::DiskMoved => (Mood::Plain, "disk moved"),
        Verdict::FewRuns => (Mood::Plain, "few runs"),
    };
    vec![
        name,
        number(speeds.first.median),
        number(speeds.second.median),
        two_digits(speeds.ratio),
        or_dash(speeds.share_ratio, two_digits),
        or_dash(latency_ratio, two_digits),
        paper.paint(mood, note),
    ]
}

/// One count of what has no partner; which rows those are, where all is asked for.
fn left_out(comparison: &Comparison, paper: &Paper) -> String {
    let all = comparison.unpaired.len();
    if all == 0 {
        return String::new();
    }
    let of = |wanted| comparison.unpaired.iter().filter(|(_, why)| *why == wanted).count();
    let reasons = [Alone::OnlyFirst, Alone::OnlySecond, Alone::FailedInFirst, Alone::FailedInSecond];
    let reasons = reasons.map(|why| (of(why), why.text())).into_iter().filter(|(count, _)| *count > 0);
    let reasons: Vec<String> = reasons.map(|(count, text)| format!("{count} {text}")).collect();
    let rows = if all == 1 { "1 row is left out" } else { &format!("{all} rows are left out") };
    if !paper.is_wide {
        return format!(
            "\n{}",
            paper.paragraph(&format!("{rows}: {} (--wide names them).", reasons.join(", ")))
        );
    }
    let lines =
        comparison.unpaired.iter().map(|(key, why)| paper.item("  ", &format!("{key}: {}", why.text())));
    format!("\n{}{}", paper.paragraph(&format!("{rows}:")), lines.collect::<String>())
}

/// What `--fail-below` found, row by row.
pub fn judged(ratio_min: f64, judgement: &Judgement, paper: &Paper) -> String {
    let count = judgement.fallen.len();
    if count == 0 {
        return format!(
            "\n{}",
            paper.paragraph(&format!("None of {} rows is below {ratio_min}.", judgement.judged))
        );
    }
    let head = format!("Below {ratio_min}, or missing: {count} {}", if count == 1 { "row" } else { "rows" });
    let lines = judgement.fallen.iter().map(|(key, why)| paper.item("  ", &format!("{key}: {why}")));
    format!("\n{}{}", paper.paragraph(&paper.paint(Mood::Bad, &head)), lines.collect::<String>())
}
