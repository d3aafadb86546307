//! `joj man`: a page for man of each command, from its options and its help. Packages install them.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::CommandFactory;
use clap_mangen::Man;
use thiserror::Error;

use crate::command_line::Cli;

/// Why a page is not there.
#[derive(Debug, Error)]
#[error("cannot write {}: {error}; name a directory where files can be made", .path.display())]
pub struct ManError {
    /// The page, or the directory.
    path: PathBuf,
    /// What the system said.
    #[source]
    error: io::Error,
}

/// Runs `joj man`.
/// # Errors
/// What cannot be written.
pub fn run(directory: &Path) -> Result<ExitCode, ManError> {
    fs::create_dir_all(directory).map_err(|error| ManError { path: directory.to_owned(), error })?;
    let mut command = Cli::command().disable_help_subcommand(true);
    // Gives each command the words in front of it as its name.
    command.build();
    write_pages(&command, directory)?;
    Ok(ExitCode::SUCCESS)
}

/// The pages of a command and of those below it, but for those that are not for people.
fn write_pages(command: &clap::Command, directory: &Path) -> Result<(), ManError> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write_pages(below, directory)?;
    }
    let man = Man::new(command.clone()).source(concat!("joj ", env!("CARGO_PKG_VERSION"))).manual("joj");
    let path = directory.join(man.get_filename());
    page(&man, command)
        .and_then(|text| fs::write(&path, text))
        .map_err(|error| ManError { path: path.clone(), error })
}

fn page(man: &Man, command: &clap::Command) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    man.render_title(&mut text)?;
    man.render_name_section(&mut text)?;
    man.render_synopsis_section(&mut text)?;
    man.render_description_section(&mut text)?;
    if command.get_arguments().any(|argument| !argument.is_hide_set()) {
        man.render_options_section(&mut text)?;
    }
    if command.get_subcommands().any(|below| !below.is_hide_set()) {
        man.render_subcommands_section(&mut text)?;
    }
    if let Some(help) = command.get_after_help() {
        text.extend_from_slice(notes(&help.to_string()).as_bytes());
    }
    Ok(text)
}

/// What stands below the options: examples, a line each, and paragraphs. clap_mangen would make one paragraph of it all.
fn notes(help: &str) -> String {
    let mut roff = String::new();
    let (mut is_verbatim, mut in_notes) = (false, false);
    for line in help.lines() {
        if line.starts_with(' ') != is_verbatim {
            is_verbatim = !is_verbatim;
            roff.push_str(if is_verbatim { ".nf\n" } else { ".fi\n" });
        }
        let is_prose = !is_verbatim && !line.is_empty();
        // Into a string nothing fails.
        let _ = match line {
            "Examples:" => {
                in_notes = false;
                writeln!(roff, ".SH EXAMPLES")
            }
            "" if in_notes => writeln!(roff, ".PP"),
            "" => Ok(()),
            line if is_prose && !in_notes => {
                in_notes = true;
                writeln!(roff, ".SH NOTES\n{}", plain(line))
            }
            line => writeln!(roff, "{}", plain(line)),
        };
    }
    if is_verbatim {
        roff.push_str(".fi\n");
    }
    roff
}

/// A line whose characters stand for themselves.
fn plain(line: &str) -> String {
    let escaped = line.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_keep_their_lines_and_paragraphs_do_not() {
        let help = "Examples:\n  joj a   one\n  joj b \\ two\n\nIt ends.\n.So it does.\n\nAnd more.";
        let expected = ".SH EXAMPLES\n.nf\n  joj a   one\n  joj b \\e two\n.fi\n.SH NOTES\nIt ends.\n\\&.So it does.\n.PP\nAnd more.\n";
        assert_eq!(notes(help), expected);
        assert_eq!(notes("  a-b"), ".nf\n  a\\-b\n.fi\n");
        assert_eq!(notes("Only text."), ".SH NOTES\nOnly text.\n");
    }
}
