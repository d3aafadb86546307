//! A capture from its start to its findings: the command runs meanwhile, or time passes.

use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::Duration;

use joj_analysis::trace::event::{DeviceNumber, Event, EventKind};
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::{Header, MountedFilesystem, Source};
use joj_analysis::trace::texts::Texts;

use crate::command_line::trace::{BackendChoice, TraceOptions};
use crate::machine::capture::below::disk_of_path;
use crate::machine::capture::error::CaptureError;
use crate::machine::capture::mount_watch::MountWatch;
use crate::machine::capture::selection::Selection;
use crate::machine::capture::spool::Spool;
use crate::machine::capture::start::Capture;
use crate::machine::capture::trace_header::{self, CaptureEnd};
use crate::machine::proc::clock::shared_ns;
use crate::machine::proc::process_number::{self, Owner};
use crate::machine::proc::signal::{self, is_stopped};
use crate::machine::proc::watched_command::WatchedCommand;
use crate::trace::analysis::{Analysis, AnalysisOptions, Findings};
use crate::trace::error::{Stopped, TraceError};
use crate::trace::progress::{ProgressLine, go_on};

/// How long a poll waits for events.
const POLL: Duration = Duration::from_millis(100);
/// A command's last requests may still be under way when it ends.
const LINGER_NS: u64 = 200_000_000;

const OTHER_NUMBERS: &str = "joj ran in a pid namespace of its own (a container): processes have their numbers outside of \
    it, and what /proc says of them is missing";

const EVERYBODYS: &str =
    "so nobody knows which processes are the command's: sync calls, commits and checkpoints are everybody's";

/// A capture that is over.
#[derive(Debug)]
pub struct Captured {
    /// What came of it.
    pub findings: Findings,
    /// The names that the findings mention.
    pub texts: Texts,
    /// The command's exit code; 0 without a command.
    pub exit_code: u8,
    /// True where a signal ended the capture.
    pub is_cut_short: bool,
}

/// Captures what the options ask for.
/// # Errors
/// It could not begin, or not go on; nothing is left behind, and no file looks like a whole trace.
pub fn run(options: &TraceOptions, types: FileTypes) -> Result<Captured, TraceError> {
    let words = command_words(options)?;
    options.pid.map_or(Ok(()), check_process)?;
    let chosen = chosen_disks(options)?;
    let devices = (!chosen.is_empty()).then_some(chosen.as_slice());
    let mut header = trace_header::header(devices, &words, Source::default())?;
    let mut mounts = MountWatch::begin(&header);
    let mut capture = begin(options, &selection(options, devices.is_some(), &header), &words)?;
    header.source = capture.source();
    header.process = options.pid;
    header.inferred.extend(capture.limits().iter().cloned());
    header.inferred.extend((!process_number::has_kernels_numbers()).then(|| OTHER_NUMBERS.to_owned()));
    let before = trace_header::counters(&header);
    // The trace begins here, and the calendar's time of it is later by as much.
    header.started_unix_ns += before.at_ns.saturating_sub(header.started_ns);
    header.started_ns = before.at_ns;
    let own = devices.is_some().then(|| header.filesystems.iter().map(|one| one.device).collect());
    let disks = header.disks.iter().map(|disk| disk.whole).collect();
    if words.is_empty() {
        eprintln!("joj: captures {}; Ctrl-C ends it", until(options));
    }
    let analysis = Analysis::new(&header, types, &AnalysisOptions::by(options))?;
    let mut out = Chosen { analysis, own, disks, span_ns: before.at_ns..u64::MAX };
    let to_stderr = options.json.as_deref() == Some(Path::new("-"));
    // The command may unmount at once.
    look(&mut mounts, &mut capture, &mut out);
    let mut command = if words.is_empty() { None } else { Some(WatchedCommand::start(&words, to_stderr)?) };
    if let Some(command) = &command {
        // In a container that is not the number that the records have.
        header.command_process = Some(command.id()).filter(|_| process_number::is_in_first_namespace());
        header.command_process.into_iter().for_each(|process| out.analysis.command_runs(process));
        if header.command_process.is_none() && !options.everybody {
            header.inferred.push(EVERYBODYS.to_owned());
        }
    }
    let result = watch(options, &mut capture, &mut out, &mut mounts, command.as_mut());
    let exit_code = command.as_mut().map_or(0, WatchedCommand::wait);
    result?;
    let after = trace_header::counters(&header);
    out.span_ns.end = after.at_ns;
    let lost = capture.stop()?;
    look(&mut mounts, &mut capture, &mut out);
    note_gone(&mut header, &mounts);
    // Some of what it does not know it learned meanwhile.
    let since = capture.limits().iter().filter(|limit| !header.inferred.contains(limit)).cloned();
    let since: Vec<String> = since.collect();
    header.inferred.extend(since);
    let is_cut_short = is_stopped();
    let cut_short = is_cut_short.then(|| "stopped by a signal".to_owned());
    let mut ending = trace_header::ending(&before, &after, CaptureEnd { events: 0, lost, cut_short });
    // From here on Ctrl-C means the analysis.
    signal::forget_stop();
    let texts = analyse(capture, &mut out)?;
    if !out.analysis.has_traffic() {
        let disks: Vec<&str> = header.disks.iter().map(|disk| disk.name.as_str()).collect();
        let exit_code = u8::try_from(exit_code).ok().filter(|code| *code != 0);
        return Err(TraceError::NothingCaptured { disks: disks.join(", "), exit_code });
    }
    ending.events = out.analysis.events();
    header.ending = Some(ending);
    if header.command_process.is_some() {
        header.command_processes = out.analysis.command_processes();
    }
    let findings = out.analysis.finish(&header, &texts)?;
    Ok(Captured { findings, texts, exit_code: u8::try_from(exit_code).unwrap_or(1), is_cut_short })
}

/// Nothing is known of a filesystem that is unmounted: another may have its device and its disk.
fn look(mounts: &mut MountWatch, capture: &mut Capture, out: &mut Chosen) {
    for (device, until_ns) in mounts.look() {
        capture.forget(device);
        out.analysis.ends(device, until_ns);
    }
}

/// Says in the head which filesystems were unmounted, and which were mounted, of which not everything is known.
fn note_gone(header: &mut Header, mounts: &MountWatch) {
    for (device, until_ns) in mounts.gone() {
        for filesystem in header.filesystems.iter_mut().filter(|filesystem| filesystem.device == device) {
            filesystem.until_ns = Some(until_ns);
            let MountedFilesystem { kind, mount_point, .. } = filesystem;
            header.inferred.push(format!(
                "{kind} at {mount_point} was unmounted, or another lay on top; from {:.1} s on it is not known what is written to \
                 its disk or read from there",
                until_ns.saturating_sub(header.started_ns) as f64 / 1e9
            ));
        }
    }
    for (kind, mount_point) in mounts.came() {
        header.inferred.push(format!(
            "{kind} at {mount_point} was mounted meanwhile: not all of its sync calls, locks and names are seen"
        ));
    }
}

/// How long a capture without a command lasts.
fn until(options: &TraceOptions) -> String {
    let process = options.pid.map(|pid| format!("until process {pid} ends"));
    let time = options.for_ns.map(|for_ns| format!("for {} s", for_ns as f64 / 1e9));
    match (process, time) {
        (Some(process), Some(time)) => format!("{process}, {time} at most"),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => "until a signal comes".to_owned(),
    }
}

/// Whether it is a process that runs, and that the kernel's records call so.
fn check_process(number: u32) -> Result<(), TraceError> {
    match process_number::owner(number) {
        Owner::Process if process_number::has_kernels_numbers() => Ok(()),
        Owner::Process => Err(TraceError::OtherNumbers(number)),
        Owner::Ended => Err(TraceError::EndedProcess(number)),
        Owner::ThreadOf(process) => Err(TraceError::Thread { thread: number, process }),
        Owner::Nobody => Err(TraceError::NoProcess(number)),
    }
}

/// What was only taken until now becomes events.
fn analyse(capture: Capture, out: &mut Chosen) -> Result<Texts, TraceError> {
    let mut progress = ProgressLine::begin();
    let mut tell = |share: f64| {
        progress.tell(|| format!("analysing, {:.0} % done; Ctrl-C gives it up", share * 100.0));
        if go_on().is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let drained = capture.drain(&mut tell, &mut |event, texts| out.take(event, texts));
    drained.map_err(|error| match error {
        CaptureError::GivenUp => Stopped.into(),
        error => error.into(),
    })
}

/// What is kept of a capture: where disks were chosen, nothing that programs do with files elsewhere.
struct Chosen {
    analysis: Analysis,
    /// The filesystems on the chosen disks; `None` for all.
    own: Option<Vec<DeviceNumber>>,
    /// The whole disks that are captured.
    disks: Vec<DeviceNumber>,
    /// From the first reading of the disks' counters to the last, in the trace's clock.
    span_ns: Range<u64>,
}

impl Chosen {
    fn take(&mut self, event: &Event, texts: &Texts) {
        if is_outside(event, &self.span_ns) {
            return;
        }
        let elsewhere = |own: &Vec<DeviceNumber>| !own.contains(&event.file.device);
        // Requests were chosen by their disk.
        if event.kind != EventKind::Queue && event.file.is_some() && self.own.as_ref().is_some_and(elsewhere)
        {
            return;
        }
        self.analysis.event(event, texts);
    }
}

/// True for what is not the trace's. A request's events before or after the span are in no counter of the disks. A call, a lock or a
/// commit after it may be seen in part, because the kernel's probes end one after the other. What becomes known of files is never outside.
fn is_outside(event: &Event, span_ns: &Range<u64>) -> bool {
    if event.kind.is_of_a_request() {
        return !span_ns.contains(&event.time_ns);
    }
    let is_of_files = event.kind.changes_a_file() || matches!(event.kind, EventKind::Named | EventKind::Lost);
    !is_of_files && event.time_ns >= span_ns.end
}

/// Polls until the command ended, the time is over, or a signal came.
fn watch(
    options: &TraceOptions,
    capture: &mut Capture,
    out: &mut Chosen,
    mounts: &mut MountWatch,
    mut command: Option<&mut WatchedCommand>,
) -> Result<(), TraceError> {
    let mut end_ns = options.for_ns.map(|for_ns| shared_ns().saturating_add(for_ns));
    let mut progress = ProgressLine::begin();
    let mut lingers = false;
    let mut is_spill_told = false;
    while !is_stopped() && !out.analysis.has_failed() && end_ns.is_none_or(|end_ns| shared_ns() < end_ns) {
        capture.poll(POLL, &mut |event, texts| out.take(event, texts))?;
        look(mounts, capture, out);
        let ended = command.as_mut().is_some_and(|command| command.exit_code().is_some());
        if ended && !lingers {
            lingers = true;
            end_ns = Some(shared_ns().saturating_add(LINGER_NS));
        }
        if options.pid.is_some_and(|pid| process_number::owner(pid) != Owner::Process) {
            break;
        }
        if !is_spill_told && let Some(directory) = capture.spilled_to() {
            is_spill_told = true;
            tell_spill(&directory, out);
        }
        if let Some(problem) = capture.problem() {
            eprintln!("joj: {problem}");
        }
        let (seconds, events) = (progress.seconds(), capture.taken());
        progress.tell(|| format!("{seconds} s, {events} events, {} lost; Ctrl-C ends", capture.lost()));
    }
    Ok(())
}

/// A temporary file on a disk that is traced is in the trace: nobody shall take it for the command's.
fn tell_spill(directory: &Path, out: &Chosen) {
    let Ok(below) = disk_of_path(directory) else { return };
    if below.disks.iter().any(|disk| out.disks.contains(disk)) {
        eprintln!(
            "joj: what was captured no longer fits into memory; the trace shows how joj writes it to its temporary file \
             joj-spool-{} in {}, which lies on a traced disk. TMPDIR names another place",
            std::process::id(),
            directory.display()
        );
    }
}

fn command_words(options: &TraceOptions) -> Result<Vec<String>, TraceError> {
    let word = |word: &std::ffi::OsString| {
        word.to_str().map(str::to_owned).ok_or_else(|| TraceError::NoUtf8(word.clone()))
    };
    options.command.iter().map(word).collect()
}

/// The whole disks that the options name; none where they name none.
fn chosen_disks(options: &TraceOptions) -> Result<Vec<DeviceNumber>, TraceError> {
    let mut devices = Vec::new();
    for path in &options.device {
        let node = Path::new("/dev").join(path);
        let below = disk_of_path(path).or_else(|error| disk_of_path(&node).map_err(|_| error))?;
        below.notes.iter().for_each(|note| eprintln!("joj: {note}"));
        devices.extend(below.disks);
    }
    devices.sort_unstable();
    devices.dedup();
    Ok(devices)
}

/// What to capture: where disks were chosen, those of the header, which has the disks of their journals too.
fn selection(options: &TraceOptions, is_chosen: bool, header: &Header) -> Selection {
    let wholes = header.disks.iter().map(|disk| disk.whole);
    let mut devices: Vec<DeviceNumber> = if is_chosen { wholes.collect() } else { Vec::new() };
    devices.sort_unstable();
    devices.dedup();
    // What a journal's thread writes is for whoever waits, so that the calls of all must be known.
    let kinds = header.filesystems.iter().map(|filesystem| filesystem.kind.clone()).collect();
    Selection { devices, kinds, open_files_of: options.pid, log_contents: options.log_contents }
}

/// Begins to capture, by eBPF if it can.
fn begin(options: &TraceOptions, selection: &Selection, words: &[String]) -> Result<Capture, TraceError> {
    let known = known_files(options, words);
    let spool = || Spool::new(&std::env::temp_dir(), options.spool_bytes);
    match options.backend {
        BackendChoice::Bpf => Ok(Capture::bpf(selection, spool())?),
        BackendChoice::Tracefs => Ok(Capture::tracefs(selection, &known, spool())?),
        BackendChoice::Auto => Capture::bpf(selection, spool()).or_else(|bpf| {
            match Capture::tracefs(selection, &known, spool()) {
                Ok(capture) => {
                    eprintln!("joj: captures through tracefs, without eBPF: {bpf}");
                    Ok(capture)
                }
                Err(tracefs) => Err(TraceError::NoWay { bpf: Box::new(bpf), tracefs: Box::new(tracefs) }),
            }
        }),
    }
}

/// Where files may lie that were there before: what the options and the command name, and where the command runs.
fn known_files(options: &TraceOptions, words: &[String]) -> Vec<PathBuf> {
    let mut known: Vec<PathBuf> = options.device.iter().filter(|path| path.is_dir()).cloned().collect();
    for path in words.iter().skip(1).map(PathBuf::from).filter(|path| path.exists()) {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        known.push(if path.is_dir() { path } else { parent.unwrap_or(Path::new(".")).to_owned() });
    }
    known.sort_unstable();
    known.dedup();
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_ends_for_all_that_is_done_at_one_moment() {
        let is_kept = |kind, time_ns| !is_outside(&Event { kind, time_ns, ..Event::default() }, &(10..20));
        for kind in [EventKind::Queue, EventKind::Complete] {
            assert_eq!([9, 10, 19, 20].map(|time_ns| is_kept(kind, time_ns)), [false, true, true, false]);
        }
        // A call that was under way at the start has its end in the trace.
        let of_calls = [EventKind::SyncBegin, EventKind::SyncEnd, EventKind::DurableWrite];
        let of_others =
            [EventKind::Lock, EventKind::JournalBegin, EventKind::JournalWait, EventKind::JournalEnd];
        for kind in of_calls.into_iter().chain(of_others) {
            assert_eq!([9, 19, 20].map(|time_ns| is_kept(kind, time_ns)), [true, true, false], "{kind:?}");
        }
        // tracefs learns names later than they were given.
        for kind in [EventKind::Named, EventKind::Unlinked, EventKind::Extent, EventKind::Lost] {
            assert!(is_kept(kind, 30), "{kind:?}");
        }
    }
}
