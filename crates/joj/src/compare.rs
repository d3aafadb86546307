//! `joj compare`: two results side by side.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::bench::compare::{Comparison, Judgement, Speeds, Verdict, compare};
use joj_analysis::bench::document::{Document, FormatError};
use thiserror::Error;

use crate::command_line::CompareOptions;
use crate::machine::files::output_file::{self, OutputError};
use crate::show::text::{columns, number, or_dash};

/// A row is slower than `--fail-below` allows.
const SLOWER_EXIT_CODE: u8 = 3;

/// Why two results cannot be compared.
#[derive(Debug, Error)]
pub enum CompareError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}; give a file that `joj bench --json FILE` wrote", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file is no result that this joj can read.
    #[error("cannot use {}: {error}", .file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        #[source]
        error: FormatError,
    },
    /// `--fail-below` would succeed whatever the second result is.
    #[error(
        "no row can be judged by --fail-below: it takes three runs or more of the same row in both results; \
         measure both with the same options, and --runs 5"
    )]
    NothingJudged,
    /// The comparison cannot be printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs `joj compare`.
/// # Errors
/// Which file is no result, and why.
pub fn run(options: &CompareOptions) -> Result<ExitCode, CompareError> {
    let (first, second) = (read(&options.first)?, read(&options.second)?);
    let comparison = compare(&first, &second);
    let judgement = options.fail_below.map(|ratio_min| (ratio_min, comparison.judge(ratio_min)));
    let verdict = judgement.as_ref().map(|(ratio_min, judgement)| judged(*ratio_min, judgement));
    output_file::print(&(render(&comparison, [&first, &second]) + &verdict.unwrap_or_default()))?;
    match judgement {
        Some((_, judgement)) if !judgement.fallen.is_empty() => Ok(ExitCode::from(SLOWER_EXIT_CODE)),
        Some((_, judgement)) if judgement.judged == 0 => Err(CompareError::NothingJudged),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// What `--fail-below` found, row by row.
fn judged(ratio_min: f64, judgement: &Judgement) -> String {
    let count = judgement.fallen.len();
    if count == 0 {
        return format!("\nNone of {} rows is below {ratio_min}.\n", judgement.judged);
    }
    let lines = judgement.fallen.iter().map(|(key, why)| vec![format!("  {key}:"), why.clone()]);
    format!("\nBelow {ratio_min}, or missing, are {count} rows:\n{}", columns(&lines.collect::<Vec<_>>()))
}

fn read(file: &Path) -> Result<Document, CompareError> {
    let text = fs::read_to_string(file)
        .map_err(|error| CompareError::Unreadable { file: file.to_owned(), error })?;
    Document::parse(&text).map_err(|error| CompareError::Format { file: file.to_owned(), error })
}

fn render(comparison: &Comparison, documents: [&Document; 2]) -> String {
    let mut text = String::new();
    for (place, document) in ["first: ", "second:"].iter().zip(documents) {
        let warnings = match document.warnings.len() {
            0 => String::new(),
            count => format!(", {count} warning(s): {}", kinds(document)),
        };
        text.push_str(&format!("{place} {}{warnings}\n", document.environment.started_at));
    }
    if comparison.differences.is_empty() {
        text.push_str("\nThe conditions are the same.\n");
    } else {
        text.push_str("\nConditions that differ:\n");
        let line = |item: &joj_analysis::bench::compare::Difference| {
            vec![format!("  {}:", item.what), item.first.clone(), "->".to_owned(), item.second.clone()]
        };
        text.push_str(&columns(&comparison.differences.iter().map(line).collect::<Vec<_>>()));
    }
    if comparison.pairs.is_empty() && comparison.contended.is_empty() {
        text.push_str("\nThey have no sound row in common.\n");
    }
    text.push_str(&pairs(comparison));
    text.push_str(&contended(comparison));
    for (key, reason) in &comparison.unpaired {
        text.push_str(&format!("left out, {}: {key}\n", reason.text()));
    }
    text
}

fn kinds(document: &Document) -> String {
    let kinds: Vec<&str> = document.warnings.iter().map(|warning| warning.kind.as_str()).collect();
    kinds.join(", ")
}

fn pairs(comparison: &Comparison) -> String {
    let head = ["", "tx/s first", "second", "ratio", "of the limit", "p50 ratio", ""];
    let mut lines = vec![head.map(str::to_owned).to_vec()];
    if let Some(ratio) = comparison.limit_ratio {
        let cells = ["the disk's limit", "", "", &format!("{ratio:.2}"), "1.00", "", ""];
        lines.push(cells.map(str::to_owned).to_vec());
    }
    for pair in &comparison.pairs {
        lines.push(cells(pair.key.to_string(), &pair.speeds, pair.latency_ratio));
    }
    if comparison.pairs.is_empty() {
        return String::new();
    }
    format!(
        "\n{}\nRatio above 1: the second is faster; p50 ratio above 1: its median commit is slower. Of the limit: the same ratio of \
         shares of what the disk can do. Where intervals overlap, or the row moved with the disk, or there are fewer than three runs, it may be chance.\n",
        columns(&lines)
    )
}

/// One pair in a table; `latency_ratio` is that of its last column of numbers.
fn cells(key: String, speeds: &Speeds, latency_ratio: Option<f64>) -> Vec<String> {
    let two_digits = |ratio: f64| format!("{ratio:.2}");
    vec![
        key,
        number(speeds.first.median),
        number(speeds.second.median),
        two_digits(speeds.ratio),
        or_dash(speeds.share_ratio, two_digits),
        or_dash(latency_ratio, two_digits),
        match speeds.verdict {
            Verdict::Differs => "",
            Verdict::Overlap => "intervals overlap",
            Verdict::DiskMoved => "moved with the disk",
            Verdict::FewRuns => "too few runs",
        }
        .to_owned(),
    ]
}

fn contended(comparison: &Comparison) -> String {
    if comparison.contended.is_empty() {
        return String::new();
    }
    let mut lines = vec![
        ["", "commits/s first", "second", "ratio", "of the limit", "worst wait", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    for pair in &comparison.contended {
        lines.push(cells(pair.key.to_string(), &pair.speeds, pair.worst_wait_ratio));
    }
    format!(
        "\n{}\nRatio above 1: the second commits faster. Worst wait below 1: the second's longest waits are shorter.\n",
        columns(&lines)
    )
}
