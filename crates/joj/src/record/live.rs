//! A command or a process, recorded as it runs.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::RandomState;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use joj_analysis::recording::Recording;
use joj_analysis::recording::hidden_names;
use joj_analysis::recording::paths::{bytes_of, mount_point_of, text_of};
use joj_analysis::recording::system_calls::captured::FileIdentity;
use joj_analysis::recording::system_calls::captured::presence::FilesNow;
use joj_analysis::recording::system_calls::links::LinksBefore;
use joj_analysis::trace::header::Source;
use joj_analysis::trace::texts::{Text, Texts};

use crate::command_line::record::{MethodChoice, RecordOptions};
use crate::machine::capture::calls::bpf::capture::BpfCalls;
use crate::machine::capture::calls::error::CallCaptureError;
use crate::machine::capture::calls::held;
use crate::machine::capture::calls::ptrace::tracer::{TraceState, Tracer};
use crate::machine::files::mounts::{self, Mount};
use crate::machine::files::output_file;
use crate::machine::proc::clock::{calendar_ns, shared_ns};
use crate::machine::proc::process_number::{self, Owner};
use crate::machine::proc::signal::{self, is_stopped};
use crate::machine::proc::watched_command::WatchedCommand;
use crate::record::error::RecordError;
use crate::record::leaves;
use crate::record::told::told;
use crate::show::text::count;
use crate::trace::progress::ProgressLine;
use crate::trace_file::TraceWriter;

/// How long a look for events waits.
const POLL: Duration = Duration::from_millis(50);
/// After Ctrl-C: how long the command, which got it too if it came from the terminal, has to end by itself, and how long after
/// SIGTERM.
const GRACE_NS: u64 = 1_000_000_000;
const LAST_GRACE_NS: u64 = 5_000_000_000;

/// What came of a capture.
struct RecordedRun {
    recording: Recording,
    /// The command's; 0 without one.
    exit_code: i32,
}

/// Records what the options ask for.
/// # Errors
/// It could not begin, or the recording cannot be written: there is none then.
pub fn run(options: &RecordOptions) -> Result<ExitCode, RecordError> {
    let exit_code = to_file(options)?;
    if options.command.is_empty() && is_stopped() {
        return Ok(ExitCode::from(signal::STOPPED_EXIT_CODE));
    }
    Ok(ExitCode::from(u8::try_from(exit_code).unwrap_or(1)))
}

/// The same, and gives the command's exit code, 0 without one.
/// # Errors
/// As [`run`].
pub fn to_file(options: &RecordOptions) -> Result<i32, RecordError> {
    output_file::check_writable([&options.output])?;
    signal::install().map_err(RecordError::Signals)?;
    let words = words(&options.command)?;
    record(options, &words, &words, |_| true)
}

/// Records a command that joj starts for itself. `told` is what the recording calls it. Its exit code; unless that is 0, and after a
/// signal, there is no recording.
/// # Errors
/// It could not begin, or the recording cannot be written: there is none then.
pub fn record_own(
    output: &Path,
    command: &[OsString],
    told: &[OsString],
) -> Result<(i32, bool), RecordError> {
    let options = RecordOptions::of_own_command(output);
    let is_written = Cell::new(false);
    let is_kept = |exit_code| {
        is_written.set(exit_code == 0 && !is_stopped());
        is_written.get()
    };
    let exit_code = record(&options, &words(command)?, &words(told)?, is_kept)?;
    Ok((exit_code, is_written.get()))
}

/// Records, and writes the recording where the exit code lets it. The exit code of the command, 0 without one.
fn record(
    options: &RecordOptions,
    words: &[String],
    told_words: &[String],
    is_kept: impl Fn(i32) -> bool,
) -> Result<i32, RecordError> {
    // Not after a day of recording, but now.
    let writer = TraceWriter::create_recording(&options.output)?;
    let started_unix_ns = calendar_ns();
    let RecordedRun { mut recording, exit_code } = capture(options, words)?;
    if !is_kept(exit_code) {
        return Ok(exit_code);
    }
    if !recording.calls.iter().any(|call| call.kind.is_replayed()) {
        return Err(RecordError::NothingRecorded);
    }
    let header = &mut recording.header;
    header.writer = concat!("joj ", env!("CARGO_PKG_VERSION")).to_owned();
    header.started_unix_ns = started_unix_ns;
    header.kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    header.command = told_words.to_vec();
    header.process = options.pid;
    if let Some(ending) = &mut header.ending {
        ending.cut_short = is_stopped().then(|| "stopped by a signal".to_owned());
    }
    if let Some(facts) = header.recording.as_mut().filter(|_| sees_files_of(options.pid)) {
        facts.mount_points = mount_points(&recording.texts);
    }
    // A process that goes on changes them, too.
    if options.pid.is_none() && !is_stopped() {
        let others = leaves::others(&recording, !options.hide_names);
        recording.header.inferred.extend(others);
    }
    if options.hide_names {
        // The key is random, and gone when this returns.
        hidden_names::hide(&mut recording, &RandomState::new());
    }
    writer.write_recording(&recording)?;
    // Standard output is the command's.
    eprint!("{}", told(&recording, &options.output.display().to_string()));
    Ok(exit_code)
}

/// The words of a command as text.
/// # Errors
/// One of them is none.
pub fn words(command: &[OsString]) -> Result<Vec<String>, RecordError> {
    let word =
        |word: &OsString| word.to_str().map(str::to_owned).ok_or_else(|| RecordError::NoUtf8(word.clone()));
    command.iter().map(word).collect()
}

fn capture(options: &RecordOptions, words: &[String]) -> Result<RecordedRun, RecordError> {
    match options.method {
        MethodChoice::Bpf => by_bpf(options, words, start_bpf(options)?),
        MethodChoice::Ptrace => by_tracer(options, words),
        MethodChoice::Auto => match start_bpf(options) {
            Ok(calls) => by_bpf(options, words, calls),
            // The tracer would say the same.
            Err(error @ CallCaptureError::NoProcess(_)) => Err(error.into()),
            Err(bpf) => {
                eprintln!("joj: records by a tracer, without eBPF: {bpf}");
                by_tracer(options, words)
            }
        },
    }
}

fn start_bpf(options: &RecordOptions) -> Result<BpfCalls, CallCaptureError> {
    let bytes = u32::try_from(options.buffer_bytes).unwrap_or(u32::MAX);
    options.pid.map_or_else(|| BpfCalls::command(bytes), |process| BpfCalls::process(process, bytes))
}

/// With eBPF programs: until the command or the process has ended.
fn by_bpf(
    options: &RecordOptions,
    words: &[String],
    mut calls: BpfCalls,
) -> Result<RecordedRun, RecordError> {
    let (inherited, links) = (held::inherited(), links_before(options.pid));
    let mut command = match options.pid {
        Some(_) => None,
        None => Some(WatchedCommand::start(words, false).map_err(CallCaptureError::from)?),
    };
    if let Some(command) = &command {
        calls.tell_command(command.id(), &inherited);
    }
    let end_ns = options.for_ns.map(|for_ns| shared_ns().saturating_add(for_ns));
    let (mut ending, mut progress) = (CommandEnding::default(), ProgressLine::begin());
    loop {
        calls.poll(POLL)?;
        let is_time = end_ns.is_some_and(|end_ns| shared_ns() >= end_ns);
        let Some(command) = &mut command else {
            let is_over = options.pid.is_some_and(|process| !is_there(process));
            if is_stopped() || is_time || is_over {
                break;
            }
            let (seconds, events) = (progress.seconds(), calls.events());
            progress.tell(|| format!("{seconds} s, {events} calls, {} lost; Ctrl-C ends", calls.lost()));
            continue;
        };
        if command.exit_code().is_some() {
            break;
        }
        match ending.step(is_time) {
            EndingStep::Ask => command.ask_to_end(),
            EndingStep::Make => command.make_end(),
            EndingStep::Wait => {}
        }
    }
    let exit_code = command.as_mut().map_or(0, WatchedCommand::wait);
    calls.poll(Duration::ZERO)?;
    let left = calls.processes();
    if command.is_some() && left > 0 {
        eprintln!(
            "joj: the command has ended, and {left} of its processes go on: they are no longer recorded"
        );
    }
    let (mut capture, lost) = calls.finish()?;
    if lost > 0 {
        capture.infer(&format!(
            "{} events were lost, because the kernel's buffer was full: calls are missing, and a replay may differ. --buffer gives it more room.",
            count(lost)
        ));
    }
    capture.ask_for_files(files_now(options.pid));
    let mut recording = capture.finish(Source::Bpf, links);
    if let Some(ending) = &mut recording.header.ending {
        ending.lost = lost;
    }
    Ok(RecordedRun { recording, exit_code })
}

/// True where joj has names for the files of a process: it has the same mounts, and its root is seen. To what joj starts they do.
fn sees_files_of(process: Option<u32>) -> bool {
    let mounts = |process: &str| {
        let status = fs::metadata(format!("/proc/{process}/ns/mnt")).ok()?;
        Some((status.dev(), status.ino()))
    };
    process.is_none_or(|process| {
        let (own, process) = (mounts("self"), process.to_string());
        own.is_some() && own == mounts(&process) && held::root(&process).is_some()
    })
}

/// Where the filesystems are mounted that these paths lie on.
fn mount_points(paths: &Texts) -> Vec<String> {
    let place = |mount: &Mount| mount.mount_point.to_str().map(str::to_owned);
    let all: Vec<String> = mounts::list().unwrap_or_default().iter().filter_map(place).collect();
    let numbers = 0..u32::try_from(paths.count()).unwrap_or(u32::MAX);
    let texts = numbers.map(|number| paths.get(Text(number))).filter(|text| text.starts_with('/'));
    let found: BTreeSet<&str> = texts.filter_map(|path| mount_point_of(path, &all)).collect();
    found.into_iter().map(str::to_owned).collect()
}

/// The symbolic links that programs find. Those of a process whose root is not seen, or whose mounts are not joj's, are not looked at.
fn links_before(process: Option<u32>) -> LinksBefore {
    if !sees_files_of(process) {
        return LinksBefore::default();
    }
    LinksBefore::new(|path| {
        let target = fs::read_link(OsStr::from_bytes(&bytes_of(path))).ok()?;
        Some(text_of(target.as_os_str().as_bytes()).into_owned())
    })
}

/// What a path is at the end, under the same condition.
fn files_now(process: Option<u32>) -> FilesNow {
    if !sees_files_of(process) {
        return FilesNow::default();
    }
    FilesNow::new(|path| {
        let status = fs::symlink_metadata(OsStr::from_bytes(&bytes_of(path))).ok()?;
        let file = FileIdentity { inode: status.ino(), device: status.dev() };
        Some((status.mode(), status.len(), file))
    })
}

/// True while a thread of a process runs: one that has ended, and whose parent has not waited for it, is there as a zombie.
fn is_there(process: u32) -> bool {
    !matches!(process_number::owner(process), Owner::Ended | Owner::Nobody)
}

/// By a tracer: until its last process has ended.
fn by_tracer(options: &RecordOptions, words: &[String]) -> Result<RecordedRun, RecordError> {
    let links = links_before(options.pid);
    let mut tracer = match options.pid {
        Some(process) => Tracer::process(process)?,
        None => Tracer::command(words)?,
    };
    let end_ns = options.for_ns.map(|for_ns| shared_ns().saturating_add(for_ns));
    let failed = |error: io::Error| CallCaptureError::Tracer { what: "wait for what is traced", error };
    let mut ending = CommandEnding::default();
    let mut progress = ProgressLine::begin();
    let mut is_told = false;
    while tracer.step(POLL).map_err(failed)? != TraceState::Over {
        let is_time = end_ns.is_some_and(|end_ns| shared_ns() >= end_ns);
        if options.pid.is_some() {
            if is_stopped() || is_time {
                tracer.let_go();
                break;
            }
            let (seconds, events) = (progress.seconds(), tracer.events());
            progress.tell(|| format!("{seconds} s, {events} calls; Ctrl-C ends"));
            continue;
        }
        if tracer.exit_code().is_some() && !is_told && tracer.processes() > 0 {
            is_told = true;
            let processes = tracer.processes();
            eprintln!(
                "joj: the command has ended, and {processes} of its processes go on: they are recorded until they end; Ctrl-C ends them"
            );
        }
        match ending.step(is_time) {
            EndingStep::Ask => tracer.ask_to_end(),
            EndingStep::Make => tracer.make_end(),
            EndingStep::Wait => {}
        }
    }
    let exit_code = tracer.exit_code().unwrap_or(0);
    let mut capture = tracer.finish();
    capture.infer("A tracer stopped the program at each of these calls: they took longer, and think time includes a part of it.");
    capture.ask_for_files(files_now(options.pid));
    Ok(RecordedRun { recording: capture.finish(Source::Ptrace, links), exit_code })
}

/// How a command is brought to its end after Ctrl-C, or when its time is over.
#[derive(Debug, Default)]
struct CommandEnding {
    since_ns: Option<u64>,
    steps: usize,
}

/// What is done now for the end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndingStep {
    /// Nothing.
    Wait,
    /// It is asked to end.
    Ask,
    /// It is made to.
    Make,
}

impl CommandEnding {
    /// The next step, once.
    fn step(&mut self, is_time: bool) -> EndingStep {
        if !is_time && !is_stopped() {
            return EndingStep::Wait;
        }
        let since_ns = *self.since_ns.get_or_insert_with(shared_ns);
        // What came from the terminal the command got, too.
        let grace_ns = if is_time { 0 } else { GRACE_NS };
        let steps = [(grace_ns, EndingStep::Ask), (grace_ns + LAST_GRACE_NS, EndingStep::Make)];
        match steps.get(self.steps) {
            Some((after_ns, step)) if shared_ns() - since_ns >= *after_ns => {
                self.steps += 1;
                *step
            }
            _ => EndingStep::Wait,
        }
    }
}
