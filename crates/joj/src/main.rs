//! The `joj` command. A file uses only files below it in this list.

mod trace_command;
mod trace_header_command;
mod lab_command;
mod lab_report_command;
mod lab_crash_command;
mod bench_command;
mod lab;
mod trace_generate;
mod compare;
mod device_command;
mod monitor_command;
mod bench;
mod trace;
mod cli;
mod lab_options;
mod lab_crash_options;
mod trace_options;
mod monitor_options;
mod device_options;
mod waldio_option;
mod show;
mod trace_file;
mod machine;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};
use machine::standard_output;

fn main() -> ExitCode {
    let command = Cli::parse().command;
    let result = standard_output::check_open().and_then(|()| run(command));
    result.unwrap_or_else(|message| {
        eprintln!("joj: {message}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> Result<ExitCode, String> {
    match command {
        Command::Bench(options) => bench_command::run(&options),
        Command::Compare(options) => compare::run(&options),
        Command::Trace(options) => trace_command::run(&options),
        Command::TraceHeader(options) => trace_header_command::run(&options),
        Command::TraceGenerate(options) => trace_generate::run(&options),
        Command::Monitor(options) => monitor_command::run(&options),
        Command::Lab(options) => lab_command::run(&options),
        Command::LabGuest => lab::guest::agent::run(),
        Command::Device(options) => device_command::run(&options),
        Command::BenchWorker => bench::worker::serve().map(|()| ExitCode::SUCCESS),
    }
}
