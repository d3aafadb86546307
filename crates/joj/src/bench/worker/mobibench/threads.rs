//! Threads that begin together, and what each took.
//!
//!   thread: make ready | wait for all | timed | tell | tidy up
//!   here:   caches dropped once all are ready; clock from the start of all to the end of the last

use std::collections::BTreeSet;
use std::fs;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use joj_analysis::mobibench::document::ContextSwitches;
use joj_analysis::monitor::proc::stat::Stat;

use crate::bench::worker::mobibench::progress::TestProgress;
use crate::bench::worker::task::Refusal;
use crate::machine::proc::clock::now_ns;

/// How often the line of progress changes.
const SHOW: Duration = Duration::from_millis(200);

/// What a thread does; it is made, timed and finished in the thread.
pub trait ThreadTest {
    /// Does all of it; the latencies of its operations in nanoseconds.
    /// # Errors
    /// What failed, where, how to mend it.
    fn measure(&mut self, progress: &TestProgress) -> Result<Vec<u64>, Refusal>;

    /// Looks whether all is as it should be, and tidies up. The clock does not count it.
    /// # Errors
    /// What is wrong.
    fn finish(self) -> Result<(), Refusal>;
}

/// What the clock saw.
#[derive(Debug)]
pub struct Timed {
    pub elapsed_ns: u64,
    /// Of each thread.
    pub latencies_ns: Vec<Vec<u64>>,
    /// Ticks of all processors at the begin and at the end: active, idle, iowait.
    pub cpu_ticks: Option<([u64; 3], [u64; 3])>,
    /// Of the one thread.
    pub context_switches: Option<ContextSwitches>,
}

/// What a thread reports, with its number.
#[derive(Clone, Copy)]
enum Sign {
    Ready(u32),
    /// At this time.
    Done(u32, u64),
    /// Whatever came of it, a panic too.
    Ended(u32),
}

/// How a thread reports; dropping it is the last sign.
struct Voice {
    number: u32,
    signs: Sender<Sign>,
}

impl Voice {
    fn tell(&self, sign: Sign) {
        // The other end listens until each thread has told or ended.
        let _ = self.signs.send(sign);
    }
}

impl Drop for Voice {
    fn drop(&mut self) {
        self.tell(Sign::Ended(self.number));
    }
}

/// What a thread has at its end.
struct ThreadEnd {
    latencies_ns: Vec<u64>,
    context_switches: Option<ContextSwitches>,
}

/// Runs a test in each of so many threads. `make` makes a thread's test by its number; `at_start` runs when all are ready.
/// # Errors
/// That of the thread that failed first; the others stop.
pub fn run<T: ThreadTest>(
    threads: u32,
    progress: &TestProgress,
    make: impl Fn(u32) -> Result<T, Refusal> + Sync,
    at_start: impl FnOnce(),
) -> Result<Timed, Refusal> {
    let (signs, heard) = mpsc::channel();
    thread::scope(|scope| {
        let (mut starters, mut handles) = (Vec::new(), Vec::new());
        for number in 0..threads {
            let (starter, start) = mpsc::channel();
            let (voice, make) = (Voice { number, signs: signs.clone() }, &make);
            starters.push(starter);
            handles.push(scope.spawn(move || {
                let end = one(|| make(number), progress, &voice, &start);
                end.unwrap_or_else(|failure| {
                    progress.fail(failure);
                    None
                })
            }));
        }
        // The threads' own are the last: without them nobody listens any more.
        drop(signs);
        let ready = listen(&heard, threads, progress, "making the files ready");
        let (mut began_ns, mut before) = (0, None);
        if ready.len() == handles.len() {
            progress.begin_anew();
            at_start();
            before = cpu_ticks();
            began_ns = now_ns();
            for starter in &starters {
                // Each of them waits for it.
                let _: Result<(), _> = starter.send(());
            }
        }
        // Who waits for a start that does not come ends.
        drop(starters);
        let done = listen(&heard, threads, progress, "measuring");
        let after = cpu_ticks();
        progress.clear();
        let ended_ns = done.into_iter().max().unwrap_or(began_ns);
        let ends: Vec<_> = handles.into_iter().map(|handle| handle.join()).collect();
        if let Some(failure) = progress.failure() {
            return Err(failure);
        }
        let panicked = |_| Refusal::new("a thread of the test panicked".to_owned());
        let ends = ends.into_iter().collect::<Result<Vec<Option<ThreadEnd>>, _>>().map_err(panicked)?;
        let ends: Vec<ThreadEnd> = ends.into_iter().flatten().collect();
        let context_switches = ends.first().and_then(|end| end.context_switches).filter(|_| threads == 1);
        Ok(Timed {
            elapsed_ns: ended_ns.saturating_sub(began_ns),
            latencies_ns: ends.into_iter().map(|end| end.latencies_ns).collect(),
            cpu_ticks: before.zip(after),
            context_switches,
        })
    })
}

/// A thread; nothing where it was never started.
fn one<T: ThreadTest>(
    make: impl FnOnce() -> Result<T, Refusal>,
    progress: &TestProgress,
    voice: &Voice,
    start: &Receiver<()>,
) -> Result<Option<ThreadEnd>, Refusal> {
    let mut test = make()?;
    voice.tell(Sign::Ready(voice.number));
    if start.recv().is_err() {
        return Ok(None);
    }
    let before = context_switches();
    let latencies_ns = test.measure(progress)?;
    let done_ns = now_ns();
    let after = context_switches();
    voice.tell(Sign::Done(voice.number, done_ns));
    test.finish()?;
    let switches = after.zip(before).map(|(after, before)| ContextSwitches {
        total: after.total - before.total,
        voluntary: after.voluntary - before.voluntary,
    });
    Ok(Some(ThreadEnd { latencies_ns, context_switches: switches }))
}

/// Waits until each thread is ready, or done, or ended. When those that did not fail were; fewer than the threads where some failed.
fn listen(heard: &Receiver<Sign>, threads: u32, progress: &TestProgress, what: &str) -> Vec<u64> {
    let (mut told, mut times) = (BTreeSet::new(), Vec::new());
    while told.len() < threads as usize {
        let (number, time_ns) = match heard.recv_timeout(SHOW) {
            Ok(Sign::Ready(number)) => (number, Some(now_ns())),
            Ok(Sign::Done(number, at_ns)) => (number, Some(at_ns)),
            Ok(Sign::Ended(number)) => (number, None),
            Err(RecvTimeoutError::Timeout) => {
                progress.show(what);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        if told.insert(number) {
            times.extend(time_ns);
        }
    }
    times
}

fn cpu_ticks() -> Option<[u64; 3]> {
    let [active, idle, iowait, _] = Stat::parse(&fs::read_to_string("/proc/stat").ok()?).ok()?.ticks;
    Some([active, idle, iowait])
}

/// Of this thread until now.
fn context_switches() -> Option<ContextSwitches> {
    let text = fs::read_to_string("/proc/thread-self/status").ok()?;
    let number = |name: &str| -> Option<u64> {
        text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
    };
    let voluntary = number("voluntary_ctxt_switches:")?;
    Some(ContextSwitches { total: voluntary + number("nonvoluntary_ctxt_switches:")?, voluntary })
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Fails, or panics, where it is told to.
    struct Fragile(&'static str);

    impl Fragile {
        fn reach(&self, place: &str) -> Result<(), Refusal> {
            assert!(self.0 != format!("{place}, panic"), "as it was told");
            if self.0 == place { Err(Refusal::new(place.to_owned())) } else { Ok(()) }
        }
    }

    impl ThreadTest for Fragile {
        fn measure(&mut self, _: &TestProgress) -> Result<Vec<u64>, Refusal> {
            self.reach("measure").map(|()| vec![1])
        }

        fn finish(self) -> Result<(), Refusal> {
            self.reach("finish")
        }
    }

    fn run_fragile(place: &'static str) -> (Result<Timed, Refusal>, bool) {
        let started = Mutex::new(false);
        let make = |number| {
            let test = Fragile(if number == 1 { place } else { "" });
            test.reach("make").map(|()| test)
        };
        let timed = run(3, &TestProgress::new(true), make, || *started.lock().unwrap() = true);
        (timed, started.into_inner().unwrap())
    }

    #[test]
    fn a_thread_that_fails_ends_the_test_wherever_it_is() {
        for (place, expected, is_started) in [
            ("make", "make", false),
            ("make, panic", "panicked", false),
            ("measure", "measure", true),
            ("measure, panic", "panicked", true),
            ("finish", "finish", true),
        ] {
            let (timed, started) = run_fragile(place);
            assert!(timed.unwrap_err().message.contains(expected), "{place}");
            assert_eq!(started, is_started, "{place}");
        }
        let timed = run_fragile("").0.unwrap();
        assert_eq!((timed.latencies_ns, timed.context_switches), (vec![vec![1]; 3], None));
    }

    /// Goes on until it is stopped, but for the last of the threads.
    struct Endless(u32);

    impl ThreadTest for Endless {
        fn measure(&mut self, progress: &TestProgress) -> Result<Vec<u64>, Refusal> {
            if self.0 == 2 {
                return Err(Refusal::new("the cause".to_owned()));
            }
            loop {
                progress.advance(1)?;
            }
        }

        fn finish(self) -> Result<(), Refusal> {
            panic!("it was not finished")
        }
    }

    #[test]
    fn the_cause_is_told_and_not_that_others_stopped() {
        let failure = run(3, &TestProgress::new(true), |number| Ok(Endless(number)), || {}).unwrap_err();
        assert_eq!(failure.message, "the cause");
    }
}
