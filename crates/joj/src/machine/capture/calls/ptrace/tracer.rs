//! Stops as they come, and what a thread does next.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::time::Duration;

use joj_analysis::recording::system_calls::captured::called::{CalledName, commands};
use joj_analysis::recording::system_calls::captured::capture::CallCapture;
use joj_analysis::recording::system_calls::captured::{
    CapturedCall, CapturedEvent, DescriptorKind, Sharing, ThreadEnd,
};

use super::filter::FORKS;
use super::launch;
use super::look::{self, Looker};
use super::request::{self, CallStop, ChildSignals, Tid};
use crate::machine::capture::calls::error::CallCaptureError;
use crate::machine::capture::calls::numbers::CallNumbers;
use crate::machine::capture::calls::{FRAMES_UNSEEN, held};
use crate::machine::proc::clock::shared_ns;
use crate::machine::proc::seccomp::OWN_ARCHITECTURE;

const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_THREAD: u64 = 0x10000;
const MAP_ANONYMOUS: u64 = 0x20;
/// A call of x86-64 with pointers of 32 bits.
const X32_BIT: u64 = 1 << 30;

/// How long is waited for threads of a running process to stop.
const FIRST_STOPS_NS: u64 = 1_000_000_000;
/// Signals with which job control stops a program.
const JOB_STOPS: [libc::c_int; 4] = [libc::SIGSTOP, libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];

/// How a trace goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceState {
    /// Nothing happened for a while.
    Quiet,
    /// Something did.
    Busy,
    /// No traced thread is left.
    Over,
}

/// A thread that is traced.
#[derive(Debug, Default)]
struct TracedTask {
    process: u32,
    under_way: Option<UnderWay>,
    /// When the call began that makes the next thread, and its flags.
    fork: (u64, u64),
}

#[derive(Debug)]
struct UnderWay {
    call: CapturedCall,
    was_there: Option<bool>,
}

/// A tracer of some processes. Dropped, it lets those go on that have no filter; the kernel ends the others.
pub struct Tracer {
    tasks: HashMap<Tid, TracedTask>,
    capture: CallCapture,
    looker: Looker,
    numbers: CallNumbers,
    /// Calls that are only counted, by what is said of them.
    counts: BTreeMap<(CalledName, u8, bool), (CapturedCall, u64)>,
    unfinished: BTreeMap<CalledName, u64>,
    signals: ChildSignals,
    /// The command, and its exit code when it has ended.
    command: Option<(Tid, Option<i32>)>,
}

impl Tracer {
    /// Starts a command.
    /// # Errors
    /// As [`launch::launch`].
    pub fn command(words: &[String]) -> Result<Self, CallCaptureError> {
        let inherited = held::inherited();
        let command = launch::launch(words)?;
        let mut tracer = Self::new(Some((command, None)));
        held::tell_command(&mut tracer.capture, command.unsigned_abs(), &inherited);
        tracer.insert(command);
        let _ = request::go_on(command, 0, false);
        Ok(tracer)
    }

    /// Traces a process that runs, with its threads and children.
    /// # Errors
    /// It is not there, or may not be traced.
    pub fn process(process: u32) -> Result<Self, CallCaptureError> {
        let mut tracer = Self::new(None);
        let processes = held::with_descendants(process);
        let mut seized = 0;
        for one in &processes {
            // A thread that another one makes meanwhile is in the second look.
            for _ in 0..2 {
                for thread in held::threads(*one).unwrap_or_default() {
                    let Ok(tid) = Tid::try_from(thread) else { continue };
                    if tracer.tasks.contains_key(&tid) {
                        continue;
                    }
                    match request::seize(tid, request::OPTIONS) {
                        Ok(()) => {
                            tracer.insert(tid);
                            let _ = request::interrupt(tid);
                            seized += 1;
                        }
                        Err(error) if thread == process => {
                            return Err(CallCaptureError::Seize { process, error });
                        }
                        Err(_) => {}
                    }
                }
            }
        }
        if seized == 0 {
            return Err(CallCaptureError::NoProcess(process));
        }
        let stops = tracer.first_stops();
        held::tell_running(&mut tracer.capture, &processes);
        stops.into_iter().for_each(|(thread, status)| tracer.status(thread, status));
        Ok(tracer)
    }

    /// Waits until all threads have stopped: what they have open stays so while it is read. One that waits for a disk stops later.
    fn first_stops(&mut self) -> Vec<(Tid, libc::c_int)> {
        let (mut stops, until_ns) = (Vec::new(), shared_ns() + FIRST_STOPS_NS);
        while stops.len() < self.tasks.len() && shared_ns() < until_ns {
            match request::next_status() {
                Ok(Some(stop)) => stops.push(stop),
                Ok(None) => self.signals.nap(Duration::from_millis(10)),
                Err(_) => break,
            }
        }
        stops
    }

    fn new(command: Option<(Tid, Option<i32>)>) -> Self {
        Self {
            tasks: HashMap::new(),
            capture: CallCapture::new(shared_ns()),
            looker: Looker::default(),
            numbers: CallNumbers::new(),
            counts: BTreeMap::new(),
            unfinished: BTreeMap::new(),
            signals: ChildSignals::keep(),
            command,
        }
    }

    /// The command's exit code, 128 and the signal's number where one ended it; `None` while it runs.
    pub fn exit_code(&self) -> Option<i32> {
        self.command.and_then(|(_, code)| code)
    }

    /// How many processes are traced.
    pub fn processes(&self) -> usize {
        let mut processes: Vec<u32> = self.tasks.values().map(|task| task.process).collect();
        processes.sort_unstable();
        processes.dedup();
        processes.len()
    }

    /// How many events there are.
    pub fn events(&self) -> usize {
        self.capture.events()
    }

    /// Handles the stops that wait, and waits for one up to `time`.
    /// # Errors
    /// The system tells nothing of children any more.
    pub fn step(&mut self, time: Duration) -> io::Result<TraceState> {
        match request::next_status() {
            Ok(Some((thread, status))) => {
                self.status(thread, status);
                Ok(TraceState::Busy)
            }
            Ok(None) => {
                self.signals.nap(time);
                Ok(TraceState::Quiet)
            }
            Err(error) if error.raw_os_error() == Some(libc::ECHILD) => Ok(TraceState::Over),
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(TraceState::Quiet),
            Err(error) => Err(error),
        }
    }

    /// Asks all processes to end.
    pub fn ask_to_end(&self) {
        self.send_all(libc::SIGTERM);
    }

    /// Makes all processes end.
    pub fn make_end(&self) {
        self.send_all(libc::SIGKILL);
    }

    fn send_all(&self, signal: libc::c_int) {
        let leaders = self.tasks.iter().filter(|(tid, task)| tid.unsigned_abs() == task.process);
        leaders.for_each(|(tid, _)| request::send(*tid, signal));
    }

    /// Lets all threads go on without a tracer: only for those without a filter.
    pub fn let_go(&mut self) {
        let threads: Vec<Tid> = self.tasks.keys().copied().collect();
        threads.iter().for_each(|thread| drop(request::interrupt(*thread)));
        // Each stops within the time that a call takes that cannot be interrupted.
        let until_ns = shared_ns() + 5_000_000_000;
        while !self.tasks.is_empty() && shared_ns() < until_ns {
            match request::next_status() {
                Ok(Some((thread, status))) if libc::WIFSTOPPED(status) => {
                    let (event, signal) = (status >> 16, status >> 8 & 0xff);
                    if !self.tasks.contains_key(&thread) {
                        self.insert(thread);
                    }
                    if event == libc::PTRACE_EVENT_CLONE
                        || event == libc::PTRACE_EVENT_FORK
                        || event == libc::PTRACE_EVENT_VFORK
                    {
                        // The new thread stops, too.
                        if let Some(child) =
                            request::event_message(thread).and_then(|one| Tid::try_from(one).ok())
                        {
                            self.insert(child);
                        }
                    }
                    let is_signal = event == 0 && signal & 0x7f != libc::SIGTRAP;
                    let _ = request::detach(thread, if is_signal { signal } else { 0 });
                    self.tasks.remove(&thread);
                }
                Ok(Some((thread, _))) => drop(self.tasks.remove(&thread)),
                Ok(None) => self.signals.nap(Duration::from_millis(10)),
                Err(_) => return,
            }
        }
    }

    /// What was captured.
    pub fn finish(mut self) -> CallCapture {
        for (call, calls) in self.counts.values() {
            self.capture.counted_calls(call, *calls);
        }
        if self.looker.frames_unseen > 0 {
            self.capture.counted(FRAMES_UNSEEN, self.looker.frames_unseen);
        }
        for (called, calls) in &self.unfinished {
            self.capture.counted(&format!("{}: its end was not seen", called.text()), *calls);
        }
        self.capture
    }

    fn insert(&mut self, thread: Tid) {
        let text = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let word = text.lines().find_map(|line| line.strip_prefix("Tgid:"));
        let process = word.and_then(|word| word.trim().parse().ok()).unwrap_or(thread.unsigned_abs());
        self.tasks.insert(thread, TracedTask { process, ..TracedTask::default() });
    }

    fn status(&mut self, thread: Tid, status: libc::c_int) {
        if libc::WIFSTOPPED(status) {
            self.stopped(thread, status);
            return;
        }
        let code =
            if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
        // Whom a tracer sees wait is not told: the program's other threads may have waited for its end.
        let mut end = ThreadEnd::ByOthers;
        if let Some((command, exit_code)) = &mut self.command
            && *command == thread
        {
            *exit_code = Some(code);
            end = ThreadEnd::WithProgram;
        }
        if let Some(task) = self.tasks.remove(&thread) {
            if let Some(under_way) = task.under_way {
                *self.unfinished.entry(under_way.call.called).or_default() += 1;
            }
            let (time_ns, thread) = (shared_ns(), thread.unsigned_abs());
            self.capture.push(CapturedEvent::Exit { time_ns, thread, end });
        }
    }

    fn stopped(&mut self, thread: Tid, status: libc::c_int) {
        if !self.tasks.contains_key(&thread) {
            self.insert(thread);
        }
        let (event, signal) = (status >> 16, status >> 8 & 0xff);
        let mut deliver = 0;
        match event {
            libc::PTRACE_EVENT_SECCOMP => self.at_call(thread),
            libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
                self.forked(thread)
            }
            libc::PTRACE_EVENT_EXEC => self.executed(thread),
            libc::PTRACE_EVENT_STOP if JOB_STOPS.contains(&signal) => {
                let _ = request::listen(thread);
                return;
            }
            0 if signal == libc::SIGTRAP | 0x80 => self.at_call(thread),
            0 => deliver = signal,
            _ => {}
        }
        let task = self.tasks.get(&thread);
        // Without a filter each call stops at its begin and its end.
        let to_call = self.command.is_none() || task.is_some_and(|task| task.under_way.is_some());
        let _ = request::go_on(thread, deliver, to_call);
    }

    fn at_call(&mut self, thread: Tid) {
        match request::call_stop(thread) {
            CallStop::Begin { architecture, number, arguments } => {
                if architecture != OWN_ARCHITECTURE || number & X32_BIT != 0 {
                    self.count(CapturedCall { called: CalledName::Foreign, ..CapturedCall::default() });
                } else {
                    self.begun(thread, number, arguments);
                }
            }
            CallStop::End(result) => self.ended(thread, result),
            CallStop::None => {}
        }
    }

    fn begun(&mut self, thread: Tid, number: u64, arguments: [u64; 6]) {
        let begin_ns = shared_ns();
        if libc::c_long::try_from(number).is_ok_and(|number| FORKS.contains(&number)) {
            let flags = look::clone_flags(thread, number, &arguments);
            if let Some(task) = self.tasks.get_mut(&thread) {
                task.fork = (begin_ns, flags);
            }
            return;
        }
        let Some(called) = self.numbers.get(number) else { return };
        let is_looked_at = match called {
            CalledName::Fcntl => commands::ALL.contains(&arguments[1]),
            CalledName::Ioctl => {
                commands::is_about_descriptor(arguments[1]) || commands::changes_a_file(arguments[1])
            }
            CalledName::Mmap => arguments[3] & MAP_ANONYMOUS == 0,
            _ => true,
        };
        if !is_looked_at {
            return;
        }
        let mut call = CapturedCall { begin_ns, called, arguments, ..CapturedCall::default() };
        if called.may_be_on_a_descriptor(&arguments) {
            call.descriptor = look::descriptor_kind(thread, arguments[0]);
        }
        let is_of_no_file = matches!(call.descriptor, DescriptorKind::Device | DescriptorKind::Other);
        if called.is_only_counted() || (called.needs_a_file() && is_of_no_file) {
            self.count(call);
            return;
        }
        let needs_a_file = match called {
            CalledName::Fcntl => commands::needs_a_file(arguments[1]),
            CalledName::Ioctl => !commands::is_about_descriptor(arguments[1]),
            _ => false,
        };
        if needs_a_file && is_of_no_file {
            return;
        }
        let was_there = look::was_there(thread, &call);
        if let Some(task) = self.tasks.get_mut(&thread) {
            call.process = task.process;
            call.thread = thread.unsigned_abs();
            task.under_way = Some(UnderWay { call, was_there });
        }
    }

    fn count(&mut self, call: CapturedCall) {
        let writes =
            call.called == CalledName::Mmap && call.arguments[2] & 2 != 0 && call.arguments[3] & 3 != 2;
        let key = (call.called, call.descriptor as u8, writes);
        self.counts.entry(key).or_insert((call, 0)).1 += 1;
    }

    fn ended(&mut self, thread: Tid, result: i64) {
        let under_way = self.tasks.get_mut(&thread).and_then(|task| task.under_way.take());
        let Some(UnderWay { mut call, was_there }) = under_way else { return };
        (call.end_ns, call.result) = (shared_ns(), result);
        self.looker.at_end(thread, &mut call, was_there);
        self.capture.push(CapturedEvent::Call(Box::new(call)));
    }

    fn forked(&mut self, thread: Tid) {
        let Some(child) = request::event_message(thread) else { return };
        let (begin_ns, flags) = self.tasks.get(&thread).map_or((0, 0), |task| task.fork);
        let has = |flag: u64| flags & flag != 0;
        let sharing =
            Sharing { files: has(CLONE_FILES), directory: has(CLONE_FS), process: has(CLONE_THREAD) };
        let parent = thread.unsigned_abs();
        self.capture.push(CapturedEvent::Fork { time_ns: begin_ns, parent, child, sharing });
        if let Ok(child) = Tid::try_from(child)
            && !self.tasks.contains_key(&child)
        {
            self.insert(child);
        }
    }

    fn executed(&mut self, thread: Tid) {
        let former = request::event_message(thread).unwrap_or(thread.unsigned_abs());
        if let Ok(former) = Tid::try_from(former)
            && former != thread
        {
            self.tasks.remove(&former);
        }
        self.insert(thread);
        let exec = CapturedEvent::Exec { time_ns: shared_ns(), thread: thread.unsigned_abs(), former };
        self.capture.push(exec);
    }
}
