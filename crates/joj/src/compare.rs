//! `joj compare`: two results side by side, from their files to the exit code.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::bench::compare::compare;
use joj_analysis::bench::document::{Document, FormatError};
use thiserror::Error;

use crate::command_line::CompareOptions;
use crate::machine::files::output_file::{self, OutputError};
use crate::show::compare::{judged, render};
use crate::show::paper::Paper;

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
    output_file::check_apart([&options.first, &options.second], &options.markdown)?;
    let (first, second) = (read(&options.first)?, read(&options.second)?);
    let comparison = compare(&first, &second);
    let judgement = options.fail_below.map(|ratio_min| (ratio_min, comparison.judge(ratio_min)));
    let shown = |paper: &Paper| {
        let verdict = judgement.as_ref().map(|(ratio_min, judgement)| judged(*ratio_min, judgement, paper));
        render(&comparison, [&first, &second], paper) + &verdict.unwrap_or_default()
    };
    output_file::report_with_markdown(
        None,
        options.markdown.as_deref(),
        &(),
        || shown(&Paper::of_output(options.wide)),
        || shown(&Paper::of_markdown(options.wide)),
    )?;
    match judgement {
        Some((_, judgement)) if !judgement.fallen.is_empty() => Ok(ExitCode::from(SLOWER_EXIT_CODE)),
        Some((_, judgement)) if judgement.judged == 0 => Err(CompareError::NothingJudged),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn read(file: &Path) -> Result<Document, CompareError> {
    let text = fs::read_to_string(file)
        .map_err(|error| CompareError::Unreadable { file: file.to_owned(), error })?;
    Document::parse(&text).map_err(|error| CompareError::Format { file: file.to_owned(), error })
}
