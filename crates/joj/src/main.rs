//! The `joj` command. A file uses only files below it in this list.
//!
//! ```text
//! lab            plans measured in an emulated machine
//! whatif         a recording replayed in other configurations
//! replay         what a recording asks of its files, asked again of another disk
//! record         recordings of what programs ask of their files
//! compare        two results of `joj bench` side by side
//! schema         JSON Schemas of what `--json` writes
//! completions    what a shell needs to complete commands and options
//! man_pages      the same commands and options as pages for man
//! device         a disk over its addresses; the emulated devices, and what the model makes of them
//! monitor        what the machine does meanwhile
//! mobibench      Mobibench's tests, with its options and its output
//! bench          SQLite's journal modes and waldio on this machine's disk
//! trace          a capture or a saved trace, and what is made of it
//! help           the help of all commands, as wide as the terminal
//! command_line   options and help of all of them
//! workloads      the recordings that joj brings
//! show           results as people see them: tables, text, pages
//! trace_tables   analysed traces as tables for a fleet (Parquet)
//! trace_file     saved traces (Parquet)
//! machine        everything that touches the machine: system calls, `unsafe`
//! ```

mod lab;
mod whatif;
mod replay;
mod record;
mod compare;
mod schema;
mod completions;
mod man_pages;
mod device;
mod monitor;
mod mobibench;
mod bench;
mod trace;
mod help;
mod command_line;
mod workloads;
mod show;
mod trace_tables;
mod trace_file;
mod machine;

use std::error::Error;
use std::process::ExitCode;

use command_line::Command;
use command_line::lab::program_crash::BuiltIn;
use command_line::wrong_usage;
use machine::files::standard_output;
use workloads::Placed;

fn main() -> ExitCode {
    let command = help::parse().command;
    let result = standard_output::check_open().map_err(Into::into).and_then(|()| run(command));
    result.unwrap_or_else(|error| {
        eprintln!("joj: {error}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> Result<ExitCode, Box<dyn Error>> {
    Ok(match command {
        Command::Bench(options) => bench::command::run(&options)?,
        Command::Mobibench(options) => mobibench::command::run(&options)?,
        Command::Record(options) => record::command::run(&options)?,
        Command::Replay(mut options) => {
            let _placed = Placed::instead_of(&mut options.recording)?;
            if options.emulated.lab {
                lab::commands::replay::run(&options)?
            } else {
                replay::command::run(&options)?
            }
        }
        Command::Whatif(mut options) => {
            let _placed = options.recording.as_mut().map(Placed::instead_of).transpose()?;
            if options.emulated.is_asked() {
                lab::commands::whatif::run(&options)?
            } else {
                whatif::command::run(&options)?
            }
        }
        Command::Compare(options) => compare::run(&options)?,
        Command::Trace(options) => trace::command::run(&options)?,
        Command::TraceHeader(options) => trace::header_command::run(&options)?,
        Command::TraceGenerate(options) => trace::generate::run(&options)?,
        Command::Monitor(options) => monitor::run(&options)?,
        Command::Lab(options) => lab::commands::run::run(&options)?,
        Command::Crash(options) => match &options.built_in {
            Some(BuiltIn::Sqlite(options)) => lab::commands::run::crash(options)?,
            Some(BuiltIn::Merge { .. }) => wrong_usage(
                "there is no `joj crash merge`; `joj lab merge PART... --json FILE` joins the parts of all shards",
            ),
            None => lab::commands::program_crash::run(&options.program)?,
        },
        Command::LabGuest => lab::guest::agent::run(),
        Command::Schema(options) => schema::run(&options)?,
        Command::Completions { shell } => completions::run(shell)?,
        Command::Man { directory } => man_pages::run(&directory)?,
        Command::Device(options) => device::command::run(&options)?,
        Command::BenchWorker { task } => {
            bench::worker::serve::serve(task.as_deref()).map(|()| ExitCode::SUCCESS)?
        }
    })
}
