//! A result as one HTML page that needs nothing else: no script, no link, no font.

use joj_analysis::bench::document::Document;
use joj_analysis::bench::key::{Word, Workload};
use joj_analysis::bench::row::Row;

use crate::show::bars;
use crate::show::bench::file_io;
use crate::show::bench::groups::groups;
use crate::show::bench::initialisation;
use crate::show::bench::interval::ratio_mood;
use crate::show::bench::many_writers;
use crate::show::bench::pattern;
use crate::show::bench::table;
use crate::show::bench::table_two;
use crate::show::bench::verdict;
use crate::show::latency;
use crate::show::paper::{Mood, Paper};
use crate::show::svg::escape;
use crate::show::text::{duration, number};

const DARK_PAPER: &str = "@media (prefers-color-scheme: dark) { svg > .paper { fill: #171717; } }\n";
const STYLE: &str = "
body { font: 15px/1.5 system-ui, sans-serif; color: #1c1c1c; background: #fff; margin: 2em auto; max-width: 940px;
       padding: 0 1em; }
h1 { font-size: 1.5em; margin-bottom: 0; }
h2 { font-size: 1.15em; margin: 2.2em 0 .6em; padding-top: .8em; border-top: 1px solid #ddd; }
svg { display: block; max-width: 100%; height: auto; margin: .6em 0; }
svg text { font: 12px system-ui, sans-serif; fill: #333; }
svg .title { font-weight: 600; font-size: 13px; }
svg .library { font-weight: 600; fill: #555; }
svg .tick { font-size: 11px; fill: #666; }
svg .value { font-size: 11.5px; }
svg .grid { stroke: #e4e4e4; stroke-width: 1; }
svg .interval { stroke: #111; stroke-width: 1.2; }
svg .limit { stroke: #111; stroke-width: 1.4; stroke-dasharray: 6 3; }
svg .limit-label { font-size: 11.5px; fill: #111; font-weight: 600; }
.pair { display: flex; flex-wrap: wrap; gap: 20px; }
.warning { background: #fff4d6; border-left: 4px solid #e69f00; padding: .5em .9em; margin: .6em 0; }
.failed { background: #fde3e0; border-left: 4px solid #c0392b; padding: .5em .9em; margin: .6em 0; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { white-space: nowrap; font-size: 14px; padding: .15em .6em; border-bottom: 1px solid #e4e4e4; text-align: right; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
table.dense th, table.dense td { font-size: 12.5px; padding: .15em .45em; }
table.dense th { white-space: normal; vertical-align: bottom; }
td.good, b.good { color: #00694c; font-weight: 600; }
td.bad, b.bad { color: #b3261e; font-weight: 600; }
.facts { color: #555; }
pre { overflow-x: auto; font-size: 11px; line-height: 1.4; background: #f6f6f6; padding: 1em; }
";

/// The page.
pub fn page(document: &Document) -> String {
    let environment = &document.environment;
    let mut body = String::from("<h1>What a durable SQLite commit costs here</h1>\n");
    body.push_str(&facts(document));
    for warning in &document.warnings {
        let (what, remedy) = (escape(&warning.what), escape(&warning.remedy));
        body.push_str(&format!(
            "<p class=\"warning\"><b>Careful:</b> {what}.<br><b>Remedy:</b> {remedy}.</p>\n"
        ));
    }
    for (key, reason) in document.failures() {
        let (key, reason) = (escape(&key), escape(reason));
        body.push_str(&format!("<p class=\"failed\"><b>FAILED</b> {key}: {reason}</p>\n"));
    }
    body.push_str(&verdict_lines(document));
    body.push_str(&glance(document));
    for members in groups(&document.rows, |one, other| one.key.same_group(&other.key)) {
        body.push_str(&section(document, &members));
    }
    body.push_str(&many_writers::section(&document.contended));
    body.push_str(&file_io::section(&document.io));
    if let Some(study) = &document.study {
        body.push_str(&initialisation::section(&study.initialisation));
        body.push_str(&pattern::section(&study.patterns));
        body.push_str(&table_two::section(&study.table_two));
    }
    let text = escape(&table::render(document, &Paper::OF_PAGE));
    body.push_str(&format!(
        "<h2>All figures</h2>\n<details><summary>as text</summary><pre>{text}</pre></details>\n"
    ));
    whole(&format!("joj bench: {}", environment.directory), "", &body)
}

/// A page of this body, which is HTML already; `more_style` follows the style that all pages share.
pub fn whole(title: &str, more_style: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{}</title>\n\
         <style>{STYLE}{more_style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

/// A picture of such a page, by itself: an SVG document with its style and a background.
pub fn alone(svg: &str, more_style: &str) -> String {
    let style = format!("<style>{STYLE}{more_style}svg > .paper {{ fill: #fff; }}\n{DARK_PAPER}</style>");
    let paper = "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>";
    let open = "<svg xmlns=\"http://www.w3.org/2000/svg\" ";
    let svg = svg.replacen("<svg ", open, 1);
    svg.replacen(">\n", &format!(">\n{style}\n{paper}\n"), 1)
}

fn facts(document: &Document) -> String {
    let environment = &document.environment;
    let builds: Vec<String> = document
        .builds
        .iter()
        .map(|build| format!("{} {} ({})", build.name, build.version, build.sync_call))
        .collect();
    let mut lines = vec![
        table::place_line(environment),
        format!("SQLite: {}", builds.join(", ")),
        format!("mounted {} with {}", environment.filesystem.source, environment.filesystem.mount_options),
        format!(
            "{}, {}; joj {} ({}); {} cores",
            table::plan_words(document),
            environment.started_at,
            environment.joj_version,
            environment.joj_commit,
            environment.cores
        ),
        format!("command: {}", environment.command_line.join(" ")),
    ];
    if let Some(limit) = document.best_limit()
        && let Some(speed) = limit.operations_per_s
    {
        let median = duration(limit.latency.p50_ns);
        let title = limit.kind.title();
        lines.push(format!(
            "the disk's limit: {} per second, median {median} ({title})",
            number(speed.median)
        ));
    }
    let lines: Vec<String> = lines.iter().map(|line| escape(line)).collect();
    format!("<p class=\"facts\">{}</p>\n", lines.join("<br>\n"))
}

fn class_of(mood: Mood) -> &'static str {
    match mood {
        Mood::Good => " class=\"good\"",
        Mood::Bad => " class=\"bad\"",
        _ => "",
    }
}

fn verdict_lines(document: &Document) -> String {
    let line = |sentence: &verdict::Sentence| {
        let class = class_of(sentence.mood);
        format!("<p><b{class}>{}:</b> {}.</p>\n", sentence.about, escape(&sentence.text))
    };
    verdict::sentences(document).iter().map(line).collect()
}

/// A line for each row of waldio: its multiple of stock WAL, its share of the limit.
fn glance(document: &Document) -> String {
    let mut lines = String::new();
    for row in document.rows.iter().filter(|row| row.key.mode.uses_waldio()) {
        let Some(summary) = &row.summary else { continue };
        let Some(ratio) = summary.versus_stock_wal else { continue };
        let class = class_of(ratio_mood(Some(ratio)));
        let share =
            summary.share_of_limit.map_or_else(|| "-".to_owned(), |share| format!("{:.2}", share.median));
        lines.push_str(&format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td{class}>{:.2}</td><td>{:.2} to {:.2}</td><td>{share}</td></tr>\n",
            escape(&format!("{}, {}", row.key.workload.word(), row.key.schema.word())),
            row.key.synchronous.word().to_uppercase(),
            row.key.log.word(),
            escape(&row.key.library),
            number(summary.transactions_per_s.median),
            ratio.median,
            ratio.low,
            ratio.high,
        ));
    }
    if lines.is_empty() {
        return lines;
    }
    format!(
        "<h2>waldio beside stock WAL</h2>\n<table>\n<tr><th>workload, schema</th><th>synchronous</th><th>log</th><th>SQLite</th><th>tx/s</th>\
         <th>x stock WAL</th><th>interval</th><th>share of limit</th></tr>\n{lines}</table>\n"
    )
}

fn section(document: &Document, members: &[&Row]) -> String {
    let first = members[0];
    let told = |row: &&&Row| row.failure.is_none() && row.summary.is_some();
    let rows: Vec<&Row> = members.iter().filter(told).copied().collect();
    format!(
        "<h2>{}</h2>\n{}<div class=\"pair\">\n{}</div>\n{}",
        escape(&first.key.group_title()),
        bars::throughput(document, &rows),
        latency::plots(document, &rows),
        if first.key.workload == Workload::Read { String::new() } else { bars::bytes(&rows) }
    )
}
