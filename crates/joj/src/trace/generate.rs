//! `joj trace-generate`: a trace of any length for tests and benchmarks, without capturing anything.

use std::process::ExitCode;

use joj_analysis::trace::generate;
use joj_analysis::trace::header::{Ending, Header};

use crate::command_line::{TraceGenerateOptions, wrong_usage};
use crate::machine::proc::usage::Usage;
use crate::trace::error::TraceError;
use crate::trace::generate_fleet;
use crate::trace_file::{TraceReader, TraceWriter};

/// Writes the trace, and reads it back where that is asked for.
/// # Errors
/// Where the file cannot be written or read.
pub fn run(options: &TraceGenerateOptions) -> Result<ExitCode, TraceError> {
    if let (Some(traces), Some(directory)) = (options.fleet, &options.out) {
        return generate_fleet::run(traces, directory, options);
    }
    let Some(file) = &options.file else { return Ok(wrong_usage("no FILE to write, and no `--fleet`")) };
    let begin = Usage::now();
    let mut writer = TraceWriter::create(file)?;
    let mut ended_ns = 0;
    generate::generate(options.events, &mut |event, texts| {
        ended_ns = event.time_ns;
        writer.push(event, texts)
    })?;
    let ending = Some(Ending { ended_ns, ..Ending::default() });
    let events = writer.finish(&Header { ending, ..generate::header() })?;
    report("wrote", events, &begin);
    if options.read {
        let begin = Usage::now();
        let mut reader = TraceReader::open(file)?;
        let (mut events, mut bytes) = (0, 0u64);
        reader.for_each(&mut |event, _| {
            events += 1;
            bytes = bytes.wrapping_add(event.bytes);
        })?;
        report("read", events, &begin);
    }
    Ok(ExitCode::SUCCESS)
}

fn report(what: &str, events: u64, begin: &Usage) {
    // Processor time: a busy machine takes longer by the clock.
    let used = Usage::now().since(begin);
    let milliseconds = (used.cpu_user_us + used.cpu_system_us) / 1_000;
    println!("{what} {events} events in {milliseconds} ms of processor time");
}
