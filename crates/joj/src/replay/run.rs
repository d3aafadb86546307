//! The threads of a replay, from their start to their end.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::outcome::{Lateness, REPLAY_VERSION, ReplayOutcome};
use joj_analysis::statistics::{WHOLE, percentile};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::command_line::replay::OrderChoice;
use crate::machine::files::counters::Sources;
use crate::machine::files::place::Place;
use crate::machine::proc::clock;
use crate::machine::proc::signal;
use crate::machine::proc::usage::Usage;
use crate::machine::replayer::calls::ReplayFiles;
use crate::machine::replayer::trees::Roots;
use crate::machine::replayer::turns::Turn;
use crate::replay::error::ReplayError;
use crate::replay::plan::Plan;
use crate::replay::worker::{self, Lack, Shared, ThreadOutcome};
use crate::show::text::count;
use crate::trace::progress::ProgressLine;

/// So long the main thread sleeps between two looks at how far the others are.
const LOOK: Duration = Duration::from_millis(20);
/// What a thread of a replay needs of its stack: its memory for reads and writes lies elsewhere.
const STACK_BYTES: usize = 256 << 10;
/// What joj itself has open: standard streams, the directories, counters of the device.
const OWN_DESCRIPTORS: usize = 64;
/// A table for them takes 8 MiB.
const DESCRIPTORS_MAX: usize = 1 << 20;

/// What a replay gives.
#[derive(Debug)]
pub struct ReplayRun {
    /// Its sums.
    pub outcome: ReplayOutcome,
    /// How long each call of the recording took; 0 for those that were not made.
    pub durations_ns: Vec<u64>,
}

/// Makes the calls below these directories.
/// # Errors
/// A signal, a full disk, no thread.
pub fn run(plan: &Plan, roots: Roots<'_>, choice: OrderChoice) -> Result<ReplayRun, ReplayError> {
    let directory = roots.directory;
    allow_files(descriptors(&plan.recording.calls));
    // A sleep ends when it should, not 50 us later.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let files = ReplayFiles::new(roots, &plan.recording)
        .map_err(|error| ReplayError::File { path: directory.to_owned(), error })?;
    for call in plan.recording.calls.iter().filter(|call| call.kind == CallKind::Held) {
        let held = files.hold(call, &mut |_| !signal::is_stopped());
        held.map_err(|error| match error.raw_os_error() {
            Some(libc::EMFILE) => no_descriptor(plan),
            _ => ReplayError::of_file(directory, directory.join("a file without a name"), error),
        })?;
    }
    let kept = |calls: &Vec<u32>| if choice == OrderChoice::Dependent { calls.len() } else { 0 };
    let turns: Vec<Turn> = plan.order.threads.iter().map(|calls| Turn::keeping(kept(calls))).collect();
    let sources = Sources::of(&Place::of(directory));
    let (before, counted_before) = (Usage::now(), sources.read());
    let begin_ns = clock::shared_ns();
    let (stop, lack) = (AtomicBool::new(false), Mutex::new(None));
    let shared = Shared { plan, files, choice, turns, stop, lack, begin_ns };
    let outcomes = threads(&shared)?;
    let (used, device) = (Usage::now().since(&before), sources.read().device_since(&counted_before));
    match shared.lack.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        Some(Lack::Room(what)) => return Err(ReplayError::Full { place: directory.to_owned(), what }),
        Some(Lack::Descriptors) => return Err(no_descriptor(plan)),
        None => {}
    }
    if signal::is_stopped() {
        return Err(ReplayError::Stopped);
    }
    let durations_ns = durations(plan, &outcomes);
    let mut outcome = sum(plan, outcomes, begin_ns);
    outcome.order = choice.word().to_owned();
    outcome.device = device;
    outcome.cpu_us = used.cpu_user_us + used.cpu_system_us;
    outcome.cpu_system_us = used.cpu_system_us;
    Ok(ReplayRun { outcome, durations_ns })
}

/// By the place in the recording.
fn durations(plan: &Plan, outcomes: &[ThreadOutcome]) -> Vec<u64> {
    let mut durations_ns = vec![0; plan.recording.calls.len()];
    for (calls, outcome) in plan.order.threads.iter().zip(outcomes) {
        for (call, took_ns) in calls.iter().zip(&outcome.durations_ns) {
            durations_ns[*call as usize] = *took_ns;
        }
    }
    durations_ns
}

/// As many descriptors as the system lets this process have, and a table with room for so many. If the table of a process with threads
/// grows, that open waits some 8 ms for all processors (`synchronize_rcu` in `expand_fdtable` of the kernel); it gets no smaller.
fn allow_files(needed: usize) {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    let allowed = usize::try_from(limit.maximum.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let last = needed.min(allowed).min(DESCRIPTORS_MAX).saturating_sub(1);
    if let (Ok(any), Ok(last)) = (File::open("/proc/self/status"), i32::try_from(last)) {
        drop(rustix::io::fcntl_dupfd_cloexec(any, last));
    }
}

/// How many descriptors a replay may have at once: its own, and all that the recording opens, closed by then or not.
fn descriptors(calls: &[RecordedCall]) -> usize {
    let opens = |call: &&RecordedCall| matches!(call.kind, CallKind::Open | CallKind::Dup | CallKind::Held);
    OWN_DESCRIPTORS + calls.iter().filter(opens).count()
}

/// A replay has the descriptors of all recorded processes.
fn no_descriptor(plan: &Plan) -> ReplayError {
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let needed = OWN_DESCRIPTORS + open_at_once(&plan.recording.calls);
    ReplayError::Descriptors { allowed, needed }
}

/// How many descriptors were open at once in the recording, as a replay has them.
fn open_at_once(calls: &[RecordedCall]) -> usize {
    let (mut open, mut all, mut most): (HashMap<u32, usize>, usize, usize) = (HashMap::new(), 0, 0);
    for call in calls.iter().filter(|call| call.description != 0 && call.result >= 0) {
        let descriptors = open.entry(call.description).or_default();
        match call.kind {
            CallKind::Open | CallKind::Dup | CallKind::Held => {
                (*descriptors, all) = (*descriptors + 1, all + 1)
            }
            CallKind::Close if !call.leaves_open() && *descriptors > 0 => {
                (*descriptors, all) = (*descriptors - 1, all - 1);
            }
            CallKind::Released => all -= std::mem::take(descriptors),
            _ => {}
        }
        most = most.max(all);
    }
    most
}

/// Ends all threads where one panics: others may wait for its calls.
struct EndAll<'a>(&'a AtomicBool);

impl Drop for EndAll<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

fn threads(shared: &Shared<'_>) -> Result<Vec<ThreadOutcome>, ReplayError> {
    let threads = shared.turns.len();
    thread::scope(|scope| {
        let mut running = Vec::new();
        for index in 0..threads {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            let work = move || {
                let _others = EndAll(&shared.stop);
                worker::run(shared, index)
            };
            match thread.spawn_scoped(scope, work) {
                Ok(thread) => running.push(thread),
                Err(error) => {
                    shared.stop.store(true, Ordering::Relaxed);
                    return Err(ReplayError::Threads { threads, error });
                }
            }
        }
        watch(shared, || running.iter().all(thread::ScopedJoinHandle::is_finished));
        let ended = running.into_iter().map(|thread| thread.join().map_err(|_| ReplayError::Panicked));
        ended.collect()
    })
}

/// Shows how far the threads are, and ends them where a signal asks for that.
fn watch(shared: &Shared<'_>, is_over: impl Fn() -> bool) {
    let mut progress = ProgressLine::begin();
    let all = shared.plan.recording.calls.len() as u64;
    let mut pause = Duration::from_micros(200);
    while !is_over() {
        if signal::is_stopped() {
            shared.stop.store(true, Ordering::Relaxed);
        }
        progress.tell(|| {
            let made: u64 = shared.turns.iter().map(|turn| u64::from(turn.made())).sum();
            format!("replaying, {} of {} calls; Ctrl-C gives it up", count(made), count(all))
        });
        clock::pause(pause);
        pause = (pause * 2).min(LOOK);
    }
}

/// What no replay makes, and how often: what the recording counts, and calls that failed.
fn not_replayed(plan: &Plan) -> BTreeMap<String, u64> {
    let recording = &plan.recording;
    let facts = recording.header.recording.as_ref();
    let mut all = facts.map(|facts| facts.not_replayed.clone()).unwrap_or_default();
    let is_failed = |call: &&RecordedCall| call.kind.is_replayed() && call.fails_for_others_reasons();
    let leaves_open = |call: &&RecordedCall| call.leaves_open();
    let mut add = |what: &str, calls: usize| {
        if calls > 0 {
            all.insert(what.to_owned(), calls as u64);
        }
    };
    let calls = &recording.calls;
    let failed = calls.iter().filter(is_failed).count() + plan.without_their_reason.len();
    add("calls that failed for a reason that a replay does not have", failed);
    add("closes of what is open elsewhere", calls.iter().filter(leaves_open).count());
    all
}

fn sum(plan: &Plan, outcomes: Vec<ThreadOutcome>, begin_ns: u64) -> ReplayOutcome {
    let recording = &plan.recording;
    let header = &recording.header;
    let mut sum = ReplayOutcome {
        version: REPLAY_VERSION,
        source: serde_json::to_value(header.source)
            .map_or_else(|_| String::new(), |word| word.as_str().unwrap_or_default().to_owned()),
        compat: plan.compat.is_some(),
        threads: plan.order.threads.len() as u64,
        skipped: plan.compat.map(|(skipped, _)| skipped),
        files: plan.compat.map(|(_, files)| files),
        inferred: header.inferred.clone(),
        not_replayed: not_replayed(plan),
        recorded_elapsed_ns: recording
            .calls
            .iter()
            .filter(|call| !call.kind.is_time_alone())
            .map(RecordedCall::end_ns)
            .max()
            .unwrap_or(0),
        ..ReplayOutcome::default()
    };
    let mut late_ns = Vec::new();
    for thread in outcomes {
        for kind in CallKind::ALL.iter().filter(|kind| kind.is_replayed()) {
            let found = thread.kinds.get(usize::from(kind.code())).copied().unwrap_or_default();
            if found.calls + found.not_made > 0 {
                let all = sum.by_call.entry(kind.text().to_owned()).or_default();
                all.calls += found.calls;
                all.differ += found.differ;
                all.not_made += found.not_made;
            }
        }
        sum.read_bytes += thread.read_bytes;
        sum.written_bytes += thread.written_bytes;
        sum.in_calls_ns += thread.in_calls_ns;
        sum.elapsed_ns = sum.elapsed_ns.max(thread.end_ns.saturating_sub(begin_ns));
        late_ns.extend(thread.late_ns);
    }
    sum.calls = sum.by_call.values().map(|kind| kind.calls).sum();
    let syncs = CallKind::ALL.iter().filter(|kind| kind.is_sync());
    let calls_of = |kind: &CallKind| Some((kind.text().to_owned(), sum.by_call.get(kind.text())?.calls));
    sum.syncs = syncs.filter_map(calls_of).collect();
    late_ns.sort_unstable();
    let at = |parts| percentile(&late_ns, parts);
    sum.lateness = at(50_000).zip(at(99_000)).zip(at(WHOLE)).map(|((p50_ns, p99_ns), max_ns)| Lateness {
        p50_ns,
        p99_ns,
        max_ns,
    });
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_descriptors_has_room_for_all_before_the_replay_begins() {
        let table = || -> usize {
            let status = std::fs::read_to_string("/proc/self/status").unwrap();
            let size = status.lines().find_map(|line| line.strip_prefix("FDSize:")).expect("FDSize");
            size.trim().parse().unwrap()
        };
        let limit = getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX);
        let needed = (table() + 300).min(usize::try_from(limit).unwrap());
        allow_files(needed);
        assert!(table() >= needed, "{} of {needed}", table());
    }
}
