//! `joj lab report`: results of the lab beside what the papers printed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use joj_analysis::lab::report::accepted::{self, ResultError};
use joj_analysis::lab::report::compare::compare;
use joj_analysis::lab::result::LabResult;
use joj_device::description::DescriptionError;
use thiserror::Error;

use crate::command_line::lab::ReportOptions;
use crate::command_line::wrong_usage;
use crate::lab::shipped::device_values;
use crate::lab::shipped::error::ShippedError;
use crate::lab::shipped::papers;
use crate::machine::files::output_file::{self, OutputError};
use crate::show::lab::report::page as report_page;
use crate::show::lab::report::text as report_text;

/// Why there is no report.
#[derive(Debug, Error)]
pub enum ReportError {
    /// A result cannot be read.
    #[error("cannot read {}: {error}; give a file that `joj lab run PLAN --json FILE` wrote", .file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file is no result that a report can use.
    #[error("cannot use {}: {error}", .file.display())]
    Unusable {
        /// The file.
        file: PathBuf,
        /// Why not.
        #[source]
        error: ResultError,
    },
    /// A paper's table that joj brings is damaged.
    #[error(transparent)]
    Paper(#[from] ShippedError),
    /// A paper's table names a device that joj does not bring.
    #[error(transparent)]
    Device(#[from] DescriptionError),
    /// The report cannot be printed or written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs `joj lab report`.
/// # Errors
/// Which file is no result, and why; what could not be written.
pub fn run(options: &ReportOptions) -> Result<ExitCode, ReportError> {
    if let Some(what) = output_file::both_printed(&options.json, &options.markdown) {
        return Ok(wrong_usage(what));
    }
    let files = [&options.html, &options.json, &options.markdown];
    output_file::check_apart(&options.results, files.into_iter().flatten())?;
    let results =
        options.results.iter().map(|file| read(file)).collect::<Result<Vec<LabResult>, ReportError>>()?;
    let papers = papers::all()?;
    let report = compare(&papers, &results, &device_values::of(&papers)?);
    let written = output_file::write_where(options.html.as_deref(), || report_page::page(&report));
    let reported = output_file::report_with_markdown(
        options.json.as_deref(),
        options.markdown.as_deref(),
        &report,
        || report_text::text(&report),
        || report_text::markdown(&report),
    );
    written.and(reported)?;
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<LabResult, ReportError> {
    let text =
        fs::read_to_string(file).map_err(|error| ReportError::Unreadable { file: file.to_owned(), error })?;
    accepted::parse(&text).map_err(|error| ReportError::Unusable { file: file.to_owned(), error })
}

#[cfg(test)]
mod tests {
    //! Goal: a result becomes the report beside it. Method: a made-up result, and the text it must become; where the text is
    //! meant to change, `JOJ_BLESS=1 cargo test -p joj made_up` writes it anew, to be read before it is committed.

    use super::*;
    use joj_analysis::lab::report::outcome::Report;

    const RESULT: &str = include_str!("../../../../../fixtures/lab/made_up_result.json");
    const EXPECTED: &str = include_str!("../../../../../fixtures/lab/made_up_report.txt");

    fn report() -> Report {
        compare(&papers::all().unwrap(), &[accepted::parse(RESULT).unwrap()], &[])
    }

    #[test]
    fn a_made_up_result_becomes_the_text_beside_it() {
        let text = report_text::text(&report());
        if std::env::var_os("JOJ_BLESS").is_some() {
            let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/lab/made_up_report.txt");
            fs::write(file, &text).unwrap();
        } else {
            for (line, expected) in text.lines().zip(EXPECTED.lines()) {
                assert_eq!(line, expected, "the first line that differs");
            }
            assert_eq!(text.len(), EXPECTED.len(), "it is cut off, or goes on");
        }
    }

    /// GitHub's tables: each line has as many bars as its head, and no text one of its own.
    #[test]
    fn the_markdown_of_a_made_up_result_has_whole_tables() {
        let text = report_text::markdown(&report());
        let bars = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut wanted = None;
        let mut tables = 0;
        for line in text.lines() {
            match wanted {
                _ if !line.starts_with('|') => wanted = None,
                None => (wanted, tables) = (Some(bars(line)), tables + 1),
                Some(count) => assert_eq!(bars(line), count, "{line}"),
            }
        }
        assert!(tables > 2 && text.contains("\n## "), "{text}");
    }

    #[test]
    fn the_page_of_a_made_up_result_has_its_tables_pictures_and_reasons() {
        let page = report_page::page(&report());
        for part in [
            "Table 2",
            "<svg",
            "LS-MVBT",
            "newer kernel and SQLite",
            "the device is full",
            "joj lab run atc13-table2",
        ] {
            assert!(page.contains(part), "{part} is not in the page");
        }
        assert!(!page.contains("<script") && !page.contains("http"), "it needs something else");
    }

    #[test]
    fn the_report_is_read_back_from_its_json() {
        let report = report();
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }

    #[test]
    fn what_is_no_result_is_refused_by_its_name() {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let said = read(file).unwrap_err().to_string();
        assert!(said.contains("Cargo.toml") && said.contains("no result of the lab"), "{said}");
        let said = read(Path::new("there/is/none.json")).unwrap_err().to_string();
        assert!(said.contains("cannot read there/is/none.json"), "{said}");
    }
}
