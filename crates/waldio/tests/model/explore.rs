//! Runs one program under many schedules.
//!
//! Three ways to choose the next thread: at random; by priorities that change at a few random steps (PCT, which is good
//! at leaving one thread behind for long); and every schedule with at most so many preemptions, one after the other.
//! Each with a clock that only runs when nobody else can, and with one that runs at any moment.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, Runner};
use waldio::testing::model;
use waldio::testing::planted::{self, Bug};

/// How time passes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Only while nobody can do anything: what takes time here waits for time.
    Patient,
    /// At any moment: a thread may stand still until every deadline is over.
    Hasty,
    /// As `Hasty`; and waits end for no reason.
    Fickle,
}

/// Steps of one schedule. Whoever needs more waits for ever, awake.
const STEPS_MAX: usize = 50_000;

/// A scheduler that leaves to another what is allowed.
struct Rules<S> {
    inner: S,
    clock: Clock,
    /// So many in one schedule, of which so many are left.
    preemptions: Option<(usize, usize)>,
}

impl<S: Scheduler> Scheduler for Rules<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.preemptions = self.preemptions.map(|(most, _)| (most, most));
        self.inner.new_execution()
    }

    fn next_task(&mut self, tasks: &[&Task], current: Option<TaskId>, yields: bool) -> Option<TaskId> {
        let clock = TaskId::from(model::CLOCK);
        let fickle = self.clock == Clock::Fickle;
        let mut allowed: Vec<&Task> =
            tasks.iter().copied().filter(|task| fickle || task.runnable()).collect();
        if self.clock == Clock::Patient && allowed.len() > 1 {
            allowed.retain(|task| task.id() != clock);
        }
        let goes_on = current.filter(|current| !yields && allowed.iter().any(|task| task.id() == *current));
        if let (Some((_, 0)), Some(current)) = (self.preemptions, goes_on) {
            allowed.retain(|task| task.id() == current);
        }
        let next = self.inner.next_task(&allowed, current, yields)?;
        if let (Some((_, left)), Some(current)) = (&mut self.preemptions, goes_on)
            && next != current
        {
            *left -= 1;
        }
        Some(next)
    }

    fn next_u64(&mut self) -> u64 {
        self.inner.next_u64()
    }
}

fn bound(name: &str, default: usize) -> usize {
    std::env::var(name).ok().map_or(default, |text| text.parse().expect("a number"))
}

/// How many schedules of each kind are explored.
fn schedules() -> usize {
    bound("MODEL_SCHEDULES", 500)
}

/// How many preemptions each schedule of an exhaustive search has at most. Starting the threads takes some of them.
fn preemptions() -> usize {
    bound("MODEL_PREEMPTIONS", 4)
}

fn run(inner: impl Scheduler + 'static, clock: Clock, bounded: bool, program: fn()) -> usize {
    let mut config = Config::new();
    config.max_steps = shuttle::MaxSteps::FailAfter(STEPS_MAX);
    config.silence_warnings = true;
    config.failure_persistence = FailurePersistence::None;
    let rules = Rules { inner, clock, preemptions: bounded.then(|| (preemptions(), 0)) };
    Runner::new(rules, config).run(move || model::run(program))
}

/// Explores `program` with these clocks and every way to choose; returns how many schedules were run. Panics where one
/// fails.
pub fn explore(clocks: &[Clock], program: fn()) -> usize {
    let (count, seed) = (schedules(), 1);
    let mut explored = 0;
    for &clock in clocks {
        explored += run(RandomScheduler::new_from_seed(seed, count), clock, false, program);
        if clock != Clock::Fickle {
            explored += run(PctScheduler::new_from_seed(seed, 3, count), clock, false, program);
            explored += run(DfsScheduler::new(Some(count), false), clock, true, program);
        }
    }
    explored
}

/// Runs `program` under every schedule with so few preemptions. For the smallest programs only.
pub fn holds_under_all(program: fn()) {
    let explored = run(DfsScheduler::new(None, false), Clock::Patient, true, program);
    println!("all {explored} schedules of at most {} preemptions", preemptions());
}

/// The complaint of the first schedule that fails with `bug` planted.
pub fn complaint(bug: Bug, clocks: &[Clock], program: fn()) -> Option<String> {
    planted::set_here(Some(bug));
    let result = catch_unwind(AssertUnwindSafe(|| explore(clocks, program)));
    planted::set_here(None);
    let panic = result.err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

/// `program` holds under every schedule that is explored.
pub fn holds(clocks: &[Clock], program: fn()) {
    println!("{} schedules", explore(clocks, program));
}

/// `program` fails with `bug` planted, and says so with these words.
pub fn finds(bug: Bug, words: &str, clocks: &[Clock], program: fn()) {
    let complaint = complaint(bug, clocks, program).unwrap_or_else(|| panic!("{bug:?} was not found"));
    assert!(complaint.contains(words), "{bug:?} was found by another promise: {complaint}");
    println!("{bug:?}: {complaint}");
}

/// Nobody waited for time to pass.
pub fn assert_took_at_most(limit: Duration) {
    assert!(
        model::elapsed() <= limit,
        "somebody waited: it took {:?} instead of {limit:?}",
        model::elapsed()
    );
}
