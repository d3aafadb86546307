//! The `joj` command.

mod bench;
mod cli;
mod compare;
mod machine;
mod page;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Bench(options) => bench::command::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::BenchWorker => bench::worker::serve().map(|()| ExitCode::SUCCESS),
    };
    result.unwrap_or_else(|message| {
        eprintln!("joj: {message}");
        ExitCode::FAILURE
    })
}
