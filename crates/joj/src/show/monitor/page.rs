//! What a monitor saw as one HTML page that needs nothing else: no script, no link, no font.

use joj_analysis::monitor::document::{MonitorDocument, Numbers, Series};
use joj_analysis::monitor::quantity::QuantityKind;
use joj_analysis::monitor::summary::SeriesSummary;

use crate::show::bench::page::whole;
use crate::show::monitor::summary::{heading, interrupts, is_told, own_cost};
use crate::show::svg::escape;
use crate::show::text::number;
use crate::show::timeline::{Line, plot};

/// Sources of interrupts that are drawn.
const SOURCES_MAX: usize = 6;

/// The page.
pub fn page(document: &MonitorDocument) -> String {
    let conditions = &document.conditions;
    let mut body = String::from("<h1>What the machine did</h1>\n");
    let lines = [
        heading(document),
        format!("command: {}", conditions.command_line.join(" ")),
        format!(
            "Linux {}, {}; joj {} ({}); {} cores",
            conditions.kernel,
            conditions.started_at,
            conditions.joj_version,
            conditions.joj_commit,
            conditions.cores
        ),
        own_cost(document),
    ]
    .map(|line| escape(&line));
    body.push_str(&format!("<p class=\"facts\">{}</p>\n", lines.join("<br>\n")));
    for warning in &document.warnings {
        body.push_str(&format!("<p class=\"warning\"><b>Careful:</b> {}.</p>\n", escape(warning)));
    }
    if let Some(error) = &document.ending.error {
        body.push_str(&format!("<p class=\"failed\"><b>FAILED</b> {}</p>\n", escape(error)));
    }
    let ends_s: Vec<f64> = document.at_ms.0.iter().map(|at_ms| at_ms / 1e3).collect();
    for series in document.things() {
        let in_mib: Vec<Series> =
            series.iter().filter(|series| series.kind == QuantityKind::Memory).map(mib).collect();
        let series = if in_mib.is_empty() { series } else { &in_mib };
        let (kind, name) = (series[0].kind, series[0].name.as_str());
        let title = match kind {
            QuantityKind::Cpu => "Processors".to_owned(),
            QuantityKind::System => "Interrupts and context switches".to_owned(),
            QuantityKind::Memory => "Memory".to_owned(),
            QuantityKind::Disk => format!("Disk {name}"),
            QuantityKind::Network => format!("Network {name}"),
            QuantityKind::Interrupt => continue,
        };
        body.push_str(&section(&title, &plots(kind, series, &ends_s), series));
    }
    body.push_str(&sources(document, &ends_s));
    whole(&format!("joj monitor: {}", conditions.started_at), "", &body)
}

/// KiB of main memory have too many digits for an axis.
fn mib(series: &Series) -> Series {
    let part = |kib: f64| kib / 1_024.0;
    let summary = series.summary;
    Series {
        unit: "MiB".to_owned(),
        summary: SeriesSummary {
            mean: part(summary.mean),
            p50: part(summary.p50),
            p99: part(summary.p99),
            max: part(summary.max),
            ..summary
        },
        values: Numbers(series.values.0.iter().copied().map(part).collect()),
        ..series.clone()
    }
}

fn section(title: &str, plots: &str, series: &[Series]) -> String {
    let told = series.iter().filter(|series| is_told(series));
    let rows: String = told.map(|series| row(&series.quantity.replace('_', " "), series)).collect();
    format!("<h2>{}</h2>\n<div class=\"pair\">\n{plots}</div>\n{}", escape(title), table("quantity", &rows))
}

fn table(first: &str, rows: &str) -> String {
    format!(
        "<details><summary>figures</summary>\n<table>\n<tr><th>{first}</th><th>unit</th><th>mean</th><th>p50</th><th>p99</th>\
         <th>max</th></tr>\n{rows}</table>\n</details>\n"
    )
}

fn row(name: &str, series: &Series) -> String {
    let summary = &series.summary;
    let figures = [summary.mean, summary.p50, summary.p99, summary.max]
        .map(|figure| format!("<td>{}</td>", number(figure)));
    format!("<tr><td>{}</td><td>{}</td>{}</tr>\n", escape(name), escape(&series.unit), figures.concat())
}

/// A kind's pictures.
fn plots(kind: QuantityKind, series: &[Series], ends_s: &[f64]) -> String {
    let draw = |title: &str, unit: &str, names: &[&str], high: Option<f64>| {
        let told = |name: &str| series.iter().find(|series| series.quantity == name && is_told(series));
        let line = |(colour, name): (usize, &&str)| {
            Some(Line { name: name.replace('_', " "), colour, values: &told(name)?.values.0 })
        };
        let lines: Vec<Line<'_>> = names.iter().enumerate().filter_map(line).collect();
        plot(title, unit, ends_s, &lines, high)
    };
    let all = match kind {
        QuantityKind::Cpu => vec![
            draw(
                "Processor time",
                "% of all processors",
                &["active", "iowait", "steal", "idle"],
                Some(100.0),
            ),
            draw(
                "Processor time in ticks",
                "ticks per sample",
                &["active_ticks", "iowait_ticks", "steal_ticks", "idle_ticks"],
                None,
            ),
        ],
        QuantityKind::System => vec![
            draw("Interrupts and context switches", "per second", &["interrupts", "context_switches"], None),
            draw("Threads", "running, or waiting for a device; at the sample", &["running", "blocked"], None),
        ],
        QuantityKind::Memory => vec![
            draw("Free and cached", "MiB", &["free", "available", "cached"], None),
            draw("To be written", "MiB", &["dirty", "writeback"], None),
        ],
        QuantityKind::Disk => vec![
            draw("Busy", "% of the time", &["busy"], Some(100.0)),
            draw("Requests", "per second", &["reads", "writes", "flushes", "discards"], None),
            draw("Throughput", "KiB per second", &["read", "written", "", "discarded"], None),
            draw("Average queue", "requests", &["queue"], None),
            draw("Wait", "ms per request", &["read_wait", "write_wait", "flush_wait", "discard_wait"], None),
        ],
        QuantityKind::Network => vec![
            draw("Throughput", "KiB per second", &["rx", "tx"], None),
            draw("Packets", "per second", &["rx_packets", "tx_packets", "rx_dropped", "tx_dropped"], None),
        ],
        QuantityKind::Interrupt => Vec::new(),
    };
    all.concat()
}

/// Interrupts by device: the most frequent as lines, all as figures.
fn sources(document: &MonitorDocument, ends_s: &[f64]) -> String {
    let sources = interrupts(document);
    if sources.is_empty() {
        return String::new();
    }
    let most = sources.iter().take(SOURCES_MAX).enumerate();
    let lines: Vec<Line<'_>> = most
        .map(|(colour, series)| Line { name: series.name.clone(), colour, values: &series.values.0 })
        .collect();
    let rows: String = sources.iter().map(|series| row(&series.name, series)).collect();
    let drawn = plot("Most frequent sources", "per second", ends_s, &lines, None);
    format!("<h2>Interrupts by device</h2>\n{drawn}{}", table("source", &rows))
}
