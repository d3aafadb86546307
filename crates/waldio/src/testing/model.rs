//! The primitives of a model checker: threads that run one at a time in an order that a scheduler chooses, and a time
//! that passes when the scheduler says so.
//!
//! Locks, atomics and threads are shuttle's, which knows no time. So whoever waits with a deadline stands in a list
//! here, and a thread of the model's, the clock, takes one step for each deadline that passes: the scheduler explores
//! a time-out like any other step. A scheduler that lets the clock run only when nobody else can explores a machine
//! that is quick; one that lets it run at any moment, a machine where any thread may stand still for long.
//!
//! All threads of one model are on one thread of the system. Nothing here works outside of `run`.

use std::cell::RefCell;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{self, Arc, LockResult, PoisonError};
use std::time::{Duration, Instant};

use shuttle::thread::Thread;

pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// The number of the clock's thread: the first that `run` starts.
pub const CLOCK: usize = 1;
/// What a thread that yields the processor spends by it.
const YIELD: Duration = Duration::from_micros(50);

/// One thread that waits.
#[derive(Debug)]
struct WaitingThread {
    thread: Thread,
    woken: sync::atomic::AtomicBool,
}

impl WaitingThread {
    fn here() -> Arc<WaitingThread> {
        Arc::new(WaitingThread { thread: shuttle::thread::current(), woken: false.into() })
    }

    fn is_woken(&self) -> bool {
        self.woken.load(SeqCst)
    }

    fn wake(&self) {
        if !self.woken.swap(true, SeqCst) {
            self.thread.unpark();
        }
    }
}

/// What one schedule knows of time.
#[derive(Debug, Default)]
struct World {
    now: Duration,
    timers: Vec<(Duration, Arc<WaitingThread>)>,
    /// Who sleeps at which word.
    at_words: Vec<(usize, Arc<WaitingThread>)>,
    clock: Option<Arc<WaitingThread>>,
    over: bool,
}

thread_local! {
    static WORLD: RefCell<World> = RefCell::default();
    /// Time zero, of every schedule.
    static BEGAN: Instant = Instant::now();
}

fn world<T>(act: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(act)
}

/// Runs `body` as one schedule, from time zero; shuttle calls it, once for each.
pub fn run(body: impl FnOnce()) {
    WORLD.set(World::default());
    let clock = shuttle::thread::spawn(run_clock);
    body();
    world(|world| world.over = true);
    wake_clock();
    assert!(clock.join().is_ok(), "the clock's thread panicked");
}

fn run_clock() {
    while !world(|world| world.over) {
        if world(|world| world.timers.is_empty()) {
            world(|world| world.clock = Some(WaitingThread::here()));
            shuttle::thread::park();
            continue;
        }
        // The scheduler's choice: how long everything else takes.
        shuttle::thread::sleep(Duration::ZERO);
        for sleeper in world(World::next_deadline) {
            sleeper.wake();
        }
    }
}

fn wake_clock() {
    if let Some(clock) = world(|world| world.clock.take()) {
        clock.wake();
    }
}

impl World {
    /// Lets the time pass up to the first deadline, and returns whose have come.
    fn next_deadline(&mut self) -> Vec<Arc<WaitingThread>> {
        let Some(first) = self.timers.iter().map(|(deadline, _)| *deadline).min() else { return Vec::new() };
        self.now = self.now.max(first);
        let now = self.now;
        self.timers.extract_if(.., |(deadline, _)| *deadline <= now).map(|(_, sleeper)| sleeper).collect()
    }
}

/// Returns when `sleeper`, this thread, is woken, or at `deadline`; earlier where the scheduler wants it.
fn park(sleeper: &Arc<WaitingThread>, deadline: Option<Duration>) {
    if let Some(deadline) = deadline {
        world(|world| world.timers.push((deadline, Arc::clone(sleeper))));
        wake_clock();
    }
    shuttle::thread::park();
    world(|world| world.timers.retain(|(_, other)| !Arc::ptr_eq(other, sleeper)));
}

/// What time it is.
pub fn now() -> Instant {
    BEGAN.with(|began| *began + elapsed())
}

/// How much time passed since `run` began.
pub fn elapsed() -> Duration {
    world(|world| world.now)
}

/// What the standard library has under these names.
pub mod thread {
    use super::{Duration, WaitingThread, YIELD, park, world};

    pub use shuttle::thread::{JoinHandle, Scope, scope, spawn};

    /// Lets others run; takes a moment.
    pub fn yield_now() {
        world(|world| world.now += YIELD);
        shuttle::thread::yield_now();
    }

    /// Does nothing for so long.
    pub fn sleep(duration: Duration) {
        let (sleeper, until) = (WaitingThread::here(), super::elapsed() + duration);
        while super::elapsed() < until {
            park(&sleeper, Some(until));
        }
    }
}

/// Sleeps while `word` is zero; may return earlier.
pub(crate) fn wait_while_zero(word: &AtomicU32) {
    // The load is where others run; nobody does between it and the sleep, as in the kernel.
    if word.load(SeqCst) == 0 {
        let sleeper = WaitingThread::here();
        world(|world| world.at_words.push((address(word), Arc::clone(&sleeper))));
        park(&sleeper, None);
        world(|world| world.at_words.retain(|(_, other)| !Arc::ptr_eq(other, &sleeper)));
    }
}

/// Wakes one thread that sleeps at `word`.
pub(crate) fn wake_one(word: &AtomicU32) {
    let first = world(|world| {
        let at = world.at_words.iter().position(|(other, _)| *other == address(word))?;
        Some(world.at_words.remove(at).1)
    });
    if let Some(sleeper) = first {
        sleeper.wake();
    }
}

fn address(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word).addr()
}

/// As the standard library's.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    inner: shuttle::sync::Mutex<T>,
}

/// As the standard library's.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    inner: shuttle::sync::MutexGuard<'a, T>,
}

impl<T> Mutex<T> {
    /// As the standard library's.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { inner: shuttle::sync::Mutex::new(value) }
    }

    /// As the standard library's.
    /// # Errors
    /// A holder panicked.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let guard = |inner| MutexGuard { mutex: self, inner };
        self.inner.lock().map(guard).map_err(|poison| PoisonError::new(guard(poison.into_inner())))
    }
}

impl<T> std::ops::Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T> std::ops::DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.inner
    }
}

/// As the standard library's, with waits that end.
#[derive(Debug, Default)]
pub struct Condvar {
    sleepers: sync::Mutex<Vec<Arc<WaitingThread>>>,
}

impl Condvar {
    fn sleepers(&self) -> sync::MutexGuard<'_, Vec<Arc<WaitingThread>>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As the standard library's; nobody asks what ended the wait.
    /// # Errors
    /// A holder of the lock panicked.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        duration: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, ())> {
        let (sleeper, deadline) = (WaitingThread::here(), elapsed() + duration);
        let MutexGuard { mutex, inner } = guard;
        // Others run before the lock is given back, and nobody between that and the sleep.
        drop(inner);
        self.sleepers().push(Arc::clone(&sleeper));
        park(&sleeper, Some(deadline));
        self.sleepers().retain(|other| !Arc::ptr_eq(other, &sleeper));
        let locked = mutex.lock();
        locked.map(|guard| (guard, ())).map_err(|poison| PoisonError::new((poison.into_inner(), ())))
    }

    /// Whether somebody waits, woken or not.
    pub fn is_waited_on(&self) -> bool {
        !self.sleepers().is_empty()
    }

    /// As the standard library's: the one who has waited longest.
    pub fn notify_one(&self) {
        let first = self.sleepers().iter().find(|sleeper| !sleeper.is_woken()).cloned();
        if let Some(sleeper) = first {
            sleeper.wake();
        }
    }

    /// As the standard library's.
    pub fn notify_all(&self) {
        let all = self.sleepers().clone();
        for sleeper in all {
            sleeper.wake();
        }
    }
}
