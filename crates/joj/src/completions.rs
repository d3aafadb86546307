//! `joj completions`: what a shell needs to complete joj's commands and options.

use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::command_line::Cli;
use crate::machine::files::output_file::{self, OutputError};

/// Runs `joj completions`.
/// # Errors
/// It cannot be printed.
pub fn run(shell: Shell) -> Result<ExitCode, OutputError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut for_people(), "joj", &mut script);
    output_file::print(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}

/// The command line without the commands that help does not list: shells would offer them.
fn for_people() -> clap::Command {
    let all = Cli::command();
    let listed = all.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    clap::Command::new("joj").version(env!("CARGO_PKG_VERSION")).subcommands(listed)
}
