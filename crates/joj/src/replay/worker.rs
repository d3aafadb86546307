//! One recorded thread's calls, made again: it waits for those of others, then for its time, and makes the call.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::recording::order::Wait;
use joj_analysis::recording::outcome::KindOutcome;

use crate::command_line::replay::OrderChoice;
use crate::machine::proc::clock;
use crate::machine::proc::signal;
use crate::machine::replayer::calls::{IoMemory, ReplayFiles};
use crate::machine::replayer::turns::Turn;
use crate::replay::plan::Plan;

/// A shorter wait is spent looking at the clock: a sleep takes longer.
const LOOK_NS: u64 = 60_000;
/// So long a thread sleeps at most before it looks whether the replay is to end.
const SLEEP_NS: u64 = 50_000_000;
/// ENOSPC and EDQUOT.
const FULL: [i64; 2] = [28, 122];
/// EMFILE.
const NO_DESCRIPTOR: i64 = 24;

/// What all threads of a replay share.
pub struct Shared<'a> {
    /// What is to be done.
    pub plan: &'a Plan,
    /// Where.
    pub files: ReplayFiles,
    /// When.
    pub choice: OrderChoice,
    /// Whose turn it is.
    pub turns: Vec<Turn>,
    /// Set where the replay is to end.
    pub stop: AtomicBool,
    /// What the replay lacks, and the recorded program did not.
    pub lack: Mutex<Option<Lack>>,
    /// [`clock::shared_ns`] at the time that is 0 in the recording.
    pub begin_ns: u64,
}

/// Why a replay ends early.
#[derive(Debug)]
pub enum Lack {
    /// The disk is full: what could not be written.
    Room(String),
    /// No descriptor is left.
    Descriptors,
}

/// What came of one thread.
#[derive(Debug, Default)]
pub struct ThreadOutcome {
    /// By the code of a [`CallKind`].
    pub kinds: Vec<KindOutcome>,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Time inside its calls.
    pub in_calls_ns: u64,
    /// When its last call ended.
    pub end_ns: u64,
    /// How late each call began that had a time, in nanoseconds.
    pub late_ns: Vec<u64>,
    /// How long each of its calls took, in their order.
    pub durations_ns: Vec<u64>,
}

impl Shared<'_> {
    /// Ends the replay. The first reason is told.
    fn end(&self, lack: Lack) {
        let mut first = self.lack.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        first.get_or_insert(lack);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Makes all calls of a thread.
pub fn run(shared: &Shared<'_>, thread: usize) -> ThreadOutcome {
    let order = &shared.plan.order;
    let mut memory = IoMemory::new(thread as u64 + 1);
    let mut outcome = ThreadOutcome { kinds: vec![KindOutcome::default(); 256], ..ThreadOutcome::default() };
    let is_made = |index: &u32| !shared.plan.recording.calls[*index as usize].kind.is_time_alone();
    let last_made = order.threads[thread].iter().rposition(is_made).map_or(0, |before| before + 1);
    let calls = order.threads[thread].iter().zip(1..);
    // Since when the thread does by itself what comes before its next call. What joj itself does meanwhile is not added to it.
    let mut free_ns = None;
    for (&index, made) in calls {
        let call = &shared.plan.recording.calls[index as usize];
        let waits = order.waits(index as usize);
        let is_turn =
            waits.iter().all(|wait| shared.turns[wait.thread as usize].wait(wait.calls, &shared.stop));
        if !is_turn || shared.stop.load(Ordering::Relaxed) {
            break;
        }
        let since_ns = free_ns.unwrap_or_else(|| began_ns(shared, thread));
        let in_calls_ns = outcome.in_calls_ns;
        let is_left_out = shared.plan.left_out.get(index as usize).is_some_and(|is_left_out| *is_left_out)
            || call.fails_for_others_reasons()
            || shared.plan.without_their_reason.contains(&index)
            || call.leaves_open();
        // What a recording says of the time before is done before.
        if !is_left_out && (call.kind == CallKind::Released || !call.kind.is_no_call()) {
            if let Some(at_ns) = time_of(shared, call, index as usize, since_ns) {
                if !pause(at_ns, &shared.stop) {
                    break;
                }
                outcome.late_ns.push(clock::shared_ns().saturating_sub(at_ns));
            }
            free_ns = Some(one(shared, call, &mut memory, &mut outcome));
        }
        if let Some(woken_ns) = woken_ns(shared, index, free_ns.unwrap_or(since_ns)) {
            if !pause(woken_ns, &shared.stop) {
                break;
            }
            free_ns = Some(woken_ns);
        }
        outcome.durations_ns.push(outcome.in_calls_ns - in_calls_ns);
        if !call.kind.is_time_alone() && made as usize >= last_made {
            outcome.end_ns = clock::shared_ns();
        }
        shared.turns[thread].ended(made, || free_ns.unwrap_or_else(clock::shared_ns));
        shared.turns[thread].advance(made);
    }
    outcome
}

/// When the thread is woken or gets a lock: so long after its waker's last call as in the recording, but not before it waits. `None` where no
/// such time is to be kept. `since_ns`: since when it does what it does before.
fn woken_ns(shared: &Shared<'_>, index: u32, since_ns: u64) -> Option<u64> {
    let wakeup = shared.plan.order.wakeups.get(&index)?;
    let [waker_ns, asked_ns] = [&wakeup.waker, &wakeup.asked].map(|wait| ended_ns(shared, wait));
    let woken_ns = wakeup.goes_on_ns(waker_ns, asked_ns, since_ns);
    (shared.choice == OrderChoice::Dependent).then_some(woken_ns)
}

/// When the fork that began a thread was over, or else the replay's begin.
fn began_ns(shared: &Shared<'_>, thread: usize) -> u64 {
    shared.plan.order.begins[thread].as_ref().map_or(shared.begin_ns, |fork| ended_ns(shared, fork))
}

fn ended_ns(shared: &Shared<'_>, wait: &Wait) -> u64 {
    shared.turns[wait.thread as usize].ended_ns(wait.calls)
}

/// When the call has to begin, of [`clock::shared_ns`]; `None` for at once. `since_ns`: since when its thread does what comes before.
fn time_of(shared: &Shared<'_>, call: &RecordedCall, index: usize, since_ns: u64) -> Option<u64> {
    let ready_ns = shared.plan.order.ready_ns[index];
    match shared.choice {
        OrderChoice::Fast => None,
        OrderChoice::Timed => Some(shared.begin_ns + call.begin_ns),
        // In the recording that was at `ready_ns`.
        OrderChoice::Dependent if ready_ns == 0 => Some(shared.begin_ns + call.begin_ns),
        OrderChoice::Dependent => Some(since_ns + call.begin_ns.saturating_sub(ready_ns)),
    }
}

/// Waits for a time; false where the replay is to end before.
fn pause(at_ns: u64, stop: &AtomicBool) -> bool {
    loop {
        let now_ns = clock::shared_ns();
        if now_ns >= at_ns {
            return true;
        }
        if stop.load(Ordering::Relaxed) {
            return false;
        }
        match at_ns - now_ns {
            left_ns if left_ns > LOOK_NS => {
                clock::pause(Duration::from_nanos((left_ns - LOOK_NS / 2).min(SLEEP_NS)));
            }
            _ => std::hint::spin_loop(),
        }
    }
}

/// Makes a call; when it was over.
fn one(shared: &Shared<'_>, call: &RecordedCall, memory: &mut IoMemory, outcome: &mut ThreadOutcome) -> u64 {
    let begun_ns = clock::shared_ns();
    let result = shared.files.make(call, memory);
    // It takes as long as there is much to drop, which is another machine's memory and not the disk.
    if call.kind == CallKind::DropCaches && shared.choice != OrderChoice::Fast {
        pause(begun_ns + call.duration_ns, &shared.stop);
    }
    let ended_ns = clock::shared_ns();
    let in_call_ns = ended_ns.saturating_sub(begun_ns);
    let kind = &mut outcome.kinds[usize::from(call.kind.code())];
    let Some(result) = result else {
        kind.not_made += 1;
        return ended_ns;
    };
    kind.calls += 1;
    outcome.in_calls_ns += in_call_ns;
    let moved_bytes = u64::try_from(result).unwrap_or(0);
    if call.kind.is_read() {
        outcome.read_bytes += moved_bytes;
    } else if call.kind.is_write() {
        outcome.written_bytes += moved_bytes;
    }
    kind.differ += u64::from(!is_same(call, result));
    let is_short = call.kind.is_write() && (0..call.result).contains(&result);
    if is_short || (FULL.contains(&-result) && call.result != result) {
        shared.end(Lack::Room(no_room(call, shared.plan.recording.texts.get(call.path), result)));
    } else if -result == NO_DESCRIPTOR && call.result != result {
        shared.end(Lack::Descriptors);
    } else if signal::is_stopped() {
        shared.stop.store(true, Ordering::Relaxed);
    }
    ended_ns
}

/// What a call could not write; `path`: the file that it names, if any.
fn no_room(call: &RecordedCall, path: &str, result: i64) -> String {
    let what = if path.is_empty() { String::new() } else { format!(" of {path}") };
    let how = match (call.bytes, result) {
        (0, _) => "failed; a file system without a free inode is full, too (df -i)".to_owned(),
        (bytes, 0..) => format!("of {bytes} bytes wrote {result}"),
        (bytes, _) => format!("of {bytes} bytes failed"),
    };
    format!("{}{what} {how}", call.kind.text())
}

/// True where a call came out as in the recording. Descriptors have other numbers.
fn is_same(call: &RecordedCall, result: i64) -> bool {
    match call.kind {
        CallKind::Open | CallKind::Dup | CallKind::DropCaches if call.result >= 0 => result >= 0,
        CallKind::Fork | CallKind::Released => true,
        CallKind::Fstat | CallKind::Stat | CallKind::Lstat | CallKind::Access if call.result >= 0 => {
            result == 0
        }
        _ => result == call.result,
    }
}
