//! The end of `joj monitor` as text: each quantity's mean, percentiles and maximum.

use joj_analysis::monitor::document::{EndReason, MonitorDocument, Series};
use joj_analysis::monitor::quantity::QuantityKind;

use crate::show::paper::{Mood, Paper};
use crate::show::text::{count, number};

/// Sources of interrupts in the text; files have all.
const INTERRUPTS_MAX: usize = 12;

/// The whole summary.
pub fn render(document: &MonitorDocument, paper: &Paper) -> String {
    let mut text = format!("\n{}\n", paper.paragraph(&heading(document)));
    let titles = ["", "mean", "p50", "p99", "max"].map(str::to_owned).to_vec();
    let mut lines = vec![titles];
    for series in document.things().filter(|series| series[0].kind != QuantityKind::Interrupt) {
        let (kind, name) = (series[0].kind, &series[0].name);
        lines.push(vec![if name.is_empty() {
            kind.word().to_owned()
        } else {
            format!("{} {name}", kind.word())
        }]);
        lines.extend(
            series.iter().filter(|series| is_told(series)).map(|series| figures(series, &series.quantity)),
        );
    }
    let sources = interrupts(document);
    if !sources.is_empty() {
        lines.push(vec!["interrupts by device".to_owned()]);
        lines.extend(sources.iter().take(INTERRUPTS_MAX).map(|series| figures(series, &series.name)));
    }
    text.push_str(&paper.columns(&lines));
    if let Some(more @ 1..) = sources.len().checked_sub(INTERRUPTS_MAX) {
        text.push_str(
            &paper.item("  ", &format!("and {more} more sources of interrupts in --json, --csv, --html")),
        );
    }
    text.push_str(&format!("\n{}", paper.paragraph(&own_cost(document))));
    for warning in &document.warnings {
        text.push_str(&paper.item(&paper.paint(Mood::Careful, "careful: "), warning));
    }
    if let Some(error) = &document.ending.error {
        let failed = paper.paint(Mood::Bad, "FAILED ");
        text.push_str(&paper.item(&failed, &format!("after {} samples: {error}", document.samples())));
    }
    text
}

/// Samples, time, and what ended them.
pub fn heading(document: &MonitorDocument) -> String {
    let conditions = &document.conditions;
    let ending = match document.ending.reason {
        EndReason::Time => "the time was over".to_owned(),
        EndReason::Command => "the command ended".to_owned(),
        EndReason::Signal => "ended by a signal".to_owned(),
        EndReason::Limit => "no room for more samples".to_owned(),
        EndReason::Error => "FAILED".to_owned(),
    };
    let code = document.ending.exit_code.map_or_else(String::new, |code| format!("; exit code {code}"));
    let late = match document.ending.late_intervals {
        0 => String::new(),
        late => format!("; {late} intervals joined to the next, the machine was late"),
    };
    format!(
        "{} samples in {} s, one each {} ms; {ending}{code}{late}",
        count(u64::try_from(document.samples()).unwrap_or(u64::MAX)),
        number(document.at_ms.0.last().copied().unwrap_or(0.0) / 1e3),
        conditions.every_ms
    )
}

/// What the monitor itself took.
pub fn own_cost(document: &MonitorDocument) -> String {
    let cost = document.own_cost;
    let each_us = cost.cpu_ms * 1e3 / document.samples().max(1) as f64;
    format!(
        "joj monitor itself: {:.2} % of one processor ({:.1} ms in {} s, {each_us:.0} us per sample)",
        cost.percent,
        cost.cpu_ms,
        number(cost.elapsed_ms / 1e3)
    )
}

/// Sources of interrupts, those with most first.
pub fn interrupts(document: &MonitorDocument) -> Vec<&Series> {
    let of_interrupts = document.quantities.iter().filter(|series| series.kind == QuantityKind::Interrupt);
    let mut found: Vec<&Series> = of_interrupts.collect();
    found.sort_by(|one, other| other.summary.mean.total_cmp(&one.summary.mean));
    found
}

/// What a disk or an interface never did fills no line.
pub fn is_told(series: &Series) -> bool {
    series.kind.is_whole_machine() || series.summary.max > 0.0
}

fn figures(series: &Series, name: &str) -> Vec<String> {
    let summary = &series.summary;
    let figures = [summary.mean, summary.p50, summary.p99, summary.max].map(number);
    let unit = if series.unit == "ticks" { "per sample" } else { &series.unit };
    let title = format!(
        "  {} {unit}",
        name.strip_suffix("_ticks").map_or(name.to_owned(), |name| format!("{name} ticks"))
    );
    [title.replace('_', " ")].into_iter().chain(figures).collect()
}
