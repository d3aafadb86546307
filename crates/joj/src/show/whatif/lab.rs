//! What `joj whatif` found on emulated disks: a table for each, and before them how long each configuration takes on all.

use joj_analysis::bench::key::Word;
use joj_analysis::recording::whatif::advice::seconds;
use joj_analysis::recording::whatif::configuration::Configuration;
use joj_analysis::recording::whatif::lab_result::{WhatifLabDisk, WhatifLabOutcome, WhatifLabResult};
use joj_analysis::recording::whatif::outcome::{WaitRange, WhatifFigures, WhatifResult};

use crate::show::sheet::Sheet;
use crate::show::svg::escape;
use crate::show::whatif::page::{body, document};
use crate::show::whatif::{markdown_body, text as text_of};

/// The result for a terminal.
pub fn text(result: &WhatifLabResult) -> String {
    let mut text = format!("{}\n", result.machine);
    text += &overview(result).map_or_else(String::new, |sheet| sheet.text());
    for disk in &result.disks {
        text += "\n";
        text += &match &disk.outcome {
            WhatifLabOutcome::Measured(found) => text_of(found),
            WhatifLabOutcome::Failed(reason) => failed(disk, reason) + "\n",
        };
    }
    text
}

/// The result in Markdown.
pub fn markdown(result: &WhatifLabResult) -> String {
    let mut text = format!("# What would make it faster\n\n{}\n", result.machine);
    text += &overview(result).map_or_else(String::new, |sheet| format!("\n{}", sheet.markdown()));
    for disk in &result.disks {
        text += &format!("\n## {}\n\n", name(disk));
        text += &match &disk.outcome {
            WhatifLabOutcome::Measured(found) => markdown_body(found),
            WhatifLabOutcome::Failed(reason) => failed(disk, reason) + "\n",
        };
    }
    text
}

/// The result as one HTML page.
pub fn page(result: &WhatifLabResult) -> String {
    let mut text = format!(
        "<h1>What would make it faster</h1>\n<p class=\"facts\">{}</p>\n",
        escape(&result.machine.to_string())
    );
    text += &overview(result).map_or_else(String::new, |sheet| sheet.html());
    for disk in &result.disks {
        text += &format!("<h2>{}</h2>\n", escape(&name(disk)));
        text += &match &disk.outcome {
            WhatifLabOutcome::Measured(found) => body(found),
            WhatifLabOutcome::Failed(reason) => format!("<p>{}</p>\n", escape(&failed(disk, reason))),
        };
    }
    document(&result.recording, &text)
}

fn name(disk: &WhatifLabDisk) -> String {
    format!("{} {}", disk.filesystem.word(), disk.device)
}

fn failed(disk: &WhatifLabDisk, reason: &str) -> String {
    format!("{}: FAILED: {reason}", name(disk))
}

/// With its range where waits make one.
fn elapsed(figures: &WhatifFigures) -> String {
    let median = seconds(figures.elapsed_ns.median);
    let range = |waits: WaitRange| {
        format!("{median} ({} to {})", seconds(waits.shortest_ns), seconds(waits.longest_ns))
    };
    figures.waits.map_or_else(|| median.clone(), range)
}

/// Elapsed times of each configuration on each disk; none where there is one disk.
fn overview(result: &WhatifLabResult) -> Option<Sheet> {
    let found: Vec<(String, &WhatifResult)> = result
        .disks
        .iter()
        .filter_map(|disk| match &disk.outcome {
            WhatifLabOutcome::Measured(found) => Some((name(disk), &**found)),
            WhatifLabOutcome::Failed(_) => None,
        })
        .collect();
    if found.len() < 2 {
        return None;
    }
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    let mut sheet = Sheet::new("elapsed", &[&[""], &names[..]].concat());
    for configuration in Configuration::ALL {
        let cell = |(_, result): &(String, &WhatifResult)| {
            let figures = result.figures(*configuration);
            figures.map_or_else(|| "-".to_owned(), elapsed)
        };
        let cells: Vec<String> = found.iter().map(cell).collect();
        if cells.iter().any(|cell| cell != "-") {
            sheet.line([vec![configuration.title().to_owned()], cells].concat());
        }
    }
    Some(sheet)
}

#[cfg(test)]
mod tests {
    use joj_analysis::filesystem::Filesystem;
    use joj_analysis::recording::whatif::outcome::{WhatifOutcome, WhatifRow};
    use joj_analysis::statistics::Estimate;

    use super::*;

    fn disk(device: &str, elapsed_ns: f64) -> WhatifLabDisk {
        let one = |value: f64| Estimate::of(&[value]).unwrap();
        let figures = WhatifFigures {
            elapsed_ns: one(elapsed_ns),
            waits: None,
            ratio: one(1.0),
            blocked_ns: one(1e9),
            syncs: Some(7),
            device_bytes: None,
            differing: 0,
        };
        let configuration = Configuration::Recorded;
        let outcome = WhatifOutcome::Measured(figures);
        let row = WhatifRow { configuration, gives_up: "nothing".to_owned(), outcome, rerun: None };
        let result = WhatifResult {
            rounds: 1,
            emulated: true,
            place: format!("ext4 on {device}"),
            rows: vec![row],
            ..WhatifResult::default()
        };
        let outcome = WhatifLabOutcome::Measured(Box::new(result));
        WhatifLabDisk { filesystem: Filesystem::Ext4, device: device.to_owned(), outcome }
    }

    #[test]
    fn each_disk_has_a_table_and_all_have_one_together() {
        let failed = WhatifLabDisk {
            outcome: WhatifLabOutcome::Failed("the <guest> ended".to_owned()),
            ..disk("<c>", 0.0)
        };
        let result = WhatifLabResult {
            format: String::new(),
            version: 1,
            recording: "app\u{202e}\u{1b}.joj".to_owned(),
            machine: Default::default(),
            disks: vec![disk("a", 2e9), disk("b", 3e9), failed],
        };
        let text = text(&result);
        assert!(text.contains("\nelapsed"), "{text}");
        assert!(text.contains("  as recorded  2.00 s  3.00 s\n"), "{text}");
        assert!(
            text.contains(
                "replayed on ext4 on a, one round; another may differ, most on cards (docs/whatif.md, "
            ),
            "{text}"
        );
        assert!(text.contains("ext4 <c>: FAILED: the <guest> ended\n"), "{text}");
        assert!(!text.contains("low to high"), "{text}");
        let markdown = markdown(&result);
        assert!(markdown.contains("\n| as recorded | 2.00 s | 3.00 s |\n"), "{markdown}");
        assert!(markdown.contains("\n## ext4 b\n"), "{markdown}");
        let page = page(&result);
        assert!(page.contains("<title>joj whatif: app\\u{202e}\\u{1b}.joj</title>"), "{page}");
        assert!(page.contains("<h2>ext4 &lt;c&gt;</h2>") && !page.contains("<guest>"), "{page}");
        let one = WhatifLabResult { disks: vec![disk("a", 2e9)], ..result };
        assert!(!super::text(&one).contains("\nelapsed"));
    }
}
