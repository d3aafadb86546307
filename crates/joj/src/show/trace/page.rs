//! A trace as one HTML page that needs nothing else: its tables, its pictures, its first transactions.

use joj_analysis::trace::header::Header;
use joj_analysis::trace::points::Points;
use joj_analysis::trace::steps::TransactionSteps;
use joj_analysis::trace::summary::Summary;
use joj_analysis::trace::texts::Texts;

use crate::show::bench::page;
use crate::show::sheet::Sheet;
use crate::show::svg::escape;
use crate::show::text::count;
use crate::show::trace::costs;
use crate::show::trace::head;
use crate::show::trace::plots::colours::CLASS_COLOURS;
use crate::show::trace::plots::curves;
use crate::show::trace::plots::panels as trace_panels;
use crate::show::trace::plots::scatter;
use crate::show::trace::steps as trace_steps;
use crate::show::trace::text as trace_text;
use crate::show::trace::volumes;
use crate::show::words::{percent, plain};

const STYLE: &str = "
:root { color-scheme: light dark; }
figure { margin: .6em 0 1.4em; }
figcaption, .caption { color: #555; font-size: 13.5px; max-width: 820px; margin: .2em 0 1em; }
svg .inside { fill: #fff; font-size: 11px; font-weight: 600; }
svg .frame { fill: none; stroke: #bbb; }
svg .band { fill: #d55e00; fill-opacity: .08; }
svg .gap { font-size: 10.5px; fill: #888; font-style: italic; }
svg .flush { stroke: #555; stroke-width: 1; }
svg .size { fill: none; stroke: #888; }
svg circle { fill-opacity: .5; stroke-opacity: .8; stroke-width: .8; }
svg circle.hollow { fill-opacity: 0 !important; stroke-width: 1.3; }
summary { cursor: pointer; }
.pair { align-items: flex-start; }
td { white-space: pre; }
h3 { font-size: 1em; margin: 1.2em 0 .4em; }
@media (prefers-color-scheme: dark) {
body { color: #e4e4e4; background: #171717; }
h2 { border-color: #3a3a3a; }
svg text { fill: #d0d0d0; }
svg .library, svg .tick, svg .limit-label { fill: #a8a8a8; }
svg .grid { stroke: #303030; }
svg .interval, svg .limit { stroke: #ddd; }
svg .frame { stroke: #4a4a4a; }
svg .band { fill-opacity: .18; }
svg .flush { stroke: #bbb; }
svg circle { fill-opacity: .75; }
/* Dark blue and green are hard to see on black. */
svg [fill='#0072b2'] { fill: #3289cc; }
svg circle.c0 { fill: #4aa3e6; stroke: #4aa3e6; }
svg [fill='#009e73'] { fill: #12a57c; }
svg circle.c2 { fill: #1fbf92; stroke: #1fbf92; }
th, td { border-color: #333; }
.facts, figcaption, .caption { color: #a8a8a8; }
pre { background: #222; }
.warning { background: #3a2f12; }
}
";

/// The page.
pub fn page(summary: &Summary, points: &Points, transactions: &[TransactionSteps], texts: &Texts) -> String {
    let mut body = String::from("<h1>What a trace wrote, and what for</h1>\n");
    let facts: Vec<String> = head::facts(summary).iter().map(|line| escape(line)).collect();
    body.push_str(&format!("<p class=\"facts\">{}</p>\n", facts.join("<br>\n")));
    for warning in head::careful(summary) {
        body.push_str(&format!("<p class=\"warning\"><b>Careful:</b> {}.</p>\n", escape(&warning)));
    }
    let device = devices(summary);
    body.push_str(&commits(summary, &device));
    body.push_str(&contents(summary, &device));
    body.push_str(&section("Where and when", &scatter::pictures(points, &summary.header), "", ""));
    body.push_str(&persistence(summary, points, &device));
    body.push_str(&times(summary, &device));
    body.push_str(&of_sheets(&[volumes::files(summary), volumes::disks(summary)]));
    body.push_str(&steps(summary, transactions, texts));
    let text = escape(&trace_text::summary(summary));
    body.push_str(&format!(
        "<h2>All figures</h2>\n<details><summary>as text</summary><pre>{text}</pre></details>\n"
    ));
    page::whole(&format!("joj trace: {}", title(summary)), &style(), &body)
}

/// When and where the requests of the disk with the most of them went, as one SVG document; `None` where there was none.
pub fn picture(points: &Points, header: &Header) -> Option<String> {
    scatter::busiest(points, header).map(|svg| page::alone(&svg, &style()))
}

fn style() -> String {
    let colours =
        |(code, colour): (usize, &&str)| format!("svg .c{code} {{ fill: {colour}; stroke: {colour}; }}\n");
    let colours: String = CLASS_COLOURS.iter().enumerate().map(colours).collect();
    format!("{STYLE}{colours}")
}

fn title(summary: &Summary) -> String {
    match summary.header.command.as_slice() {
        [] => devices(summary),
        command => plain(&command.join(" ")),
    }
}

/// The disks in words, for captions.
fn devices(summary: &Summary) -> String {
    let disks: Vec<String> = head::disks(summary).into_iter().map(head::device).collect();
    if disks.is_empty() { "an unknown disk".to_owned() } else { disks.join("; ") }
}

/// A heading over pictures, what they show, and tables; nothing where there is neither picture nor table.
fn section(title: &str, pictures: &str, caption: &str, tables: &str) -> String {
    if pictures.is_empty() && tables.is_empty() {
        return String::new();
    }
    let caption = match (pictures, caption) {
        ("", _) | (_, "") => String::new(),
        _ => format!("<p class=\"caption\">{}</p>\n", escape(caption)),
    };
    format!("<h2>{}</h2>\n{pictures}{caption}{tables}", escape(title))
}

fn of_sheets(sheets: &[Sheet]) -> String {
    sheets.iter().map(|sheet| section(&sheet.title, "", "", &sheet.html())).collect()
}

fn commits(summary: &Summary, device: &str) -> String {
    let caption = format!("Means of all that were seen on {device}. JOJ is part of the journal's bytes.");
    let picture = trace_panels::transactions(summary);
    section("SQLite's commits", &picture, &caption, &costs::transactions(summary).html())
}

fn contents(summary: &Summary, device: &str) -> String {
    let caption = format!(
        "Shares of {} write requests to {device}: as in Fig. 2 of \"I/O Stack Optimization for Smartphones\" (USENIX ATC 2013). \
         The legend names the share of each bar, upper bar first.",
        count(summary.counts.writes.requests)
    );
    let panels: String = volumes::panels(summary)
        .iter()
        .filter(|sheet| !sheet.lines.is_empty())
        .map(|sheet| format!("<h3>{}</h3>\n{}", escape(&sheet.title), sheet.html()))
        .collect();
    let mut tables = volumes::classes(summary).html();
    if !panels.is_empty() {
        tables.push_str(&format!("<details><summary>the panels as tables</summary>\n{panels}</details>\n"));
    }
    section("What it was for", &trace_panels::panels(summary), &caption, &tables)
}

fn persistence(summary: &Summary, points: &Points, device: &str) -> String {
    let mut pictures = curves::ratio_cdf(summary) + &curves::ratio_over_time(points);
    if !pictures.is_empty() {
        pictures = format!("<div class=\"pair\">\n{pictures}</div>\n");
    }
    let caption = format!(
        "R of a sync call is the share of the filesystem's journal in what it wrote on {device}: 0 where only data went out, \
         near 1 where almost only the journal did. Of the bytes that such calls wrote, the journal's control blocks are: {}. The device \
         flushed in {} of their time.",
        costs::control_share(&summary.persistence),
        percent(summary.persistence.flush_share)
    );
    let sheet = costs::persistence(summary);
    section(&sheet.title, &pictures, &caption, &sheet.html())
}

fn times(summary: &Summary, device: &str) -> String {
    let caption = format!(
        "Times on {device}. Each line has marks, from left to right, at 50 %, 90 % and 99 % of the values, and ends at the \
         longest. Time is on a logarithmic scale."
    );
    let tables = costs::sync_calls(summary).html() + &costs::latencies(summary).html();
    section("How long it took", &curves::latencies(summary), &caption, &tables)
}

fn steps(summary: &Summary, transactions: &[TransactionSteps], texts: &Texts) -> String {
    let Some((first, others)) = transactions.split_first() else { return String::new() };
    let header = &summary.header;
    let told =
        |transactions: &[TransactionSteps]| escape(&trace_steps::transactions(transactions, texts, header));
    let mut html = format!("<pre>{}</pre>\n", told(std::slice::from_ref(first)));
    if !others.is_empty() {
        let more = others.len();
        html.push_str(&format!(
            "<details><summary>{more} more</summary><pre>{}</pre></details>\n",
            told(others)
        ));
    }
    let caption = "Microseconds from the start, what was called and what was written, how long it took, and the thread that gave \
                   it to the driver.";
    section("Step by step", &html, caption, "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::show::trace::sample::{self, Sample, SampleWriter};

    fn page_of(sample: &Sample) -> String {
        page(&sample.summary, &sample.points, &sample.transactions, &sample.texts)
    }

    /// Commits in both modes with checkpoints between, reads, metadata written back, and writes that nobody knows.
    fn plausible() -> Sample {
        let mut writer = SampleWriter::new("/data/com.example/databases/app.db");
        writer.read(270_800, 4096);
        writer.read(270_816, 32_768);
        for commit in 0..120 {
            writer.commit_with_rollback_journal();
            writer.pause(1 + commit * 7 % 13);
            writer.commit_with_log(commit);
            writer.pause(commit * 5 % 3);
            if commit % 30 == 29 {
                writer.checkpoint();
            }
            if commit % 40 == 20 {
                writer.unplaced_write(900_000);
                writer.metadata_written_back();
            }
        }
        writer.finish(&sample::header())
    }

    #[test]
    fn a_page_has_all_pictures_and_needs_nothing_else() {
        let html = page_of(&plausible());
        for part in [
            "Block types",
            "File types",
            "Sizes of write",
            "when, where",
            "R over time",
            "Journal block ratio",
        ] {
            assert!(html.contains(part), "{part}");
        }
        for outside in ["<script", "http://", "https://", "<link", "@import", "url("] {
            assert!(!html.contains(outside), "{outside}");
        }
        assert!(html.contains("unattributed: nobody saw whose they are"), "what is not placed is said");
        keep("JOJ_TRACE_PAGE", &html);
    }

    /// To look at it: the variable says into which file.
    fn keep(variable: &str, html: &str) {
        if let Some(file) = std::env::var_os(variable) {
            std::fs::write(file, html).expect("the page is written");
        }
    }

    #[test]
    fn a_picture_of_merged_requests_says_so_and_stays_small() {
        let mut writer = SampleWriter::new("/data/app.db");
        for request in 0..30_000_u64 {
            // Spread over a gigabyte, without a pattern.
            writer.unplaced_write(request.wrapping_mul(7_919_777) % (1 << 18) * 8);
        }
        let sample = writer.finish(&sample::header());
        let html = page_of(&sample);
        assert!(html.contains("points stand for them") && html.contains("30,000 requests to loop2"));
        assert!(html.len() < 3 << 20, "{} bytes", html.len());
        keep("JOJ_TRACE_MERGED_PAGE", &html);
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let mut header = sample::header();
        header.command = vec!["<script>alert(1)</script>".to_owned()];
        header.disks[0].name = "loop2\"><script>".to_owned();
        header.disks[0].behind = Some("</svg><script>".to_owned());
        header.filesystems[0].options = "<script>".to_owned();
        header.inferred = vec!["<script>".to_owned()];
        header.ending.as_mut().expect("it has one").interrupts = vec![("<script>&\"".to_owned(), 9)];
        let mut writer = SampleWriter::new("/<script>alert(\"x\")</script>&\u{1b}.db");
        writer.commit_with_rollback_journal();
        let html = page_of(&writer.finish(&header));
        assert!(!html.contains("<script") && !html.contains("</svg><script"), "{html}");
        assert!(
            !html.contains('\u{1b}') && html.contains("&lt;script&gt;alert(&quot;x&quot;)"),
            "names stay readable"
        );
        let figures = html.matches("<svg ").count();
        assert_eq!(html.matches("</svg>").count(), figures, "no picture was cut");
    }

    #[test]
    fn an_empty_trace_is_a_page_that_says_so() {
        let html = page(&Summary::default(), &Points::default(), &[], &Texts::default());
        assert!(html.contains("No request was seen") && !html.contains("<svg"), "{html}");
    }
}
