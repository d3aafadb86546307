//! `joj lab report`: results of the lab beside what the papers printed.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use joj_analysis::lab::report::accepted;
use joj_analysis::lab::report::compare::compare;
use joj_analysis::lab::result::LabResult;

use crate::lab::papers;
use crate::lab_options::ReportOptions;
use crate::machine::output_file;
use crate::show::{lab_report_page, lab_report_text};

/// Runs `joj lab report`.
/// # Errors
/// Which file is no result, and why; what could not be written.
pub fn run(options: &ReportOptions) -> Result<ExitCode, String> {
    let results =
        options.results.iter().map(|file| read(file)).collect::<Result<Vec<LabResult>, String>>()?;
    // Tables of devices alone stay without values until the device model is asked here.
    let report = compare(&papers::all()?, &results, &[]);
    if let Some(file) = &options.html {
        output_file::check_writable(file)?;
        output_file::write(file, &lab_report_page::page(&report))?;
    }
    let text = match &options.json {
        None => lab_report_text::text(&report),
        Some(file) => {
            let json = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
            if file.as_os_str() == "-" {
                format!("{json}\n")
            } else {
                output_file::check_writable(file)?;
                output_file::write(file, &json)?;
                lab_report_text::text(&report)
            }
        }
    };
    // A closed pipe (`| head`) is the reader's choice, not an error.
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

fn read(file: &Path) -> Result<LabResult, String> {
    let name = file.display();
    let text = fs::read_to_string(file).map_err(|error| {
        format!("cannot read {name}: {error}; give a file that `joj lab run PLAN --json FILE` wrote")
    })?;
    accepted::parse(&text).map_err(|error| format!("cannot use {name}: {error}"))
}
