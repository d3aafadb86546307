//! The states that are worth to be looked at: all of a short log, a sample of a long one, none twice.
//!
//! Two states are the same where each sector was last written by the same request and as much had been promised.

use std::collections::HashSet;

use super::moments::{Place, Span, exact, moment};
use super::{CrashStates, Cut, History, Missing, Pick};
use crate::chance::Chance;
use crate::number::index;
use crate::request::RequestKind;
use crate::request_log::LoggedRequest;

/// Where there are more choices than this many times the states that are asked for, they are not all made.
const CHOICES_PER_STATE: u64 = 8;
/// Choices of what a cut keeps, of which a sample takes one.
const SAMPLED_PICKS: usize = 8;
/// A sample that finds nothing new so many times for each state that is asked for has found all that it can find.
const TRIES_PER_STATE: usize = 8;

/// Which states.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// When the power may be cut.
    pub within: Span,
    /// When something was promised, ascending.
    pub promises_ns: &'a [u64],
    /// At most so many states.
    pub count: usize,
    /// Chooses them where there are more.
    pub seed: u64,
    /// A cut may tear blocks into sectors.
    pub torn: bool,
}

/// A state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// When the power is cut.
    pub at_ns: u64,
    /// What of the log had been asked and done.
    pub cut: Cut,
    /// What the cut takes.
    pub missing: Missing,
    /// How many promises had been made.
    pub promised: usize,
}

/// States to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In order of their time.
    pub states: Vec<Planned>,
    /// Every moment is among them, and of what a cut keeps: nothing, all, each first part, each block alone, and all but it.
    pub is_systematic: bool,
    /// Choices that led to a state that was there already.
    pub same: u64,
}

/// The states of a log that are worth to be looked at. `logged` and `history` are the same log, without reads. A long log takes seconds; none
/// where `go_on` says no meanwhile.
pub fn plan(
    logged: &[LoggedRequest],
    history: &History,
    wanted: Wanted<'_>,
    go_on: &dyn Fn() -> bool,
) -> Option<Plan> {
    let moments = moments(logged, wanted);
    let mut found = Found { history, wanted, known: HashSet::new(), plan: Plan::default() };
    let choices_max = CHOICES_PER_STATE * wanted.count as u64;
    let mut choices = moments.len() as u64;
    for at in &moments {
        if choices > choices_max || !go_on() {
            break;
        }
        choices += self::choices(&CrashStates::new(history, at.cut)) - 1;
    }
    if choices <= choices_max {
        for at in moments.iter().take_while(|_| go_on()) {
            let states = CrashStates::new(history, at.cut);
            let settled = states.settled_fingerprint();
            for pick in states.systematic_picks(wanted.torn.then_some(wanted.seed)) {
                found.add(*at, &states, settled, pick);
            }
        }
        found.plan.is_systematic = found.plan.states.len() <= wanted.count;
        let mut chance = Chance::new(wanted.seed);
        while found.plan.states.len() > wanted.count {
            let one = index(chance.below(found.plan.states.len() as u64));
            found.plan.states.remove(one);
        }
    } else {
        found.sample(logged, go_on);
    }
    found.plan.states.sort_by_key(|state| (state.at_ns, state.missing.writes()));
    go_on().then_some(found.plan)
}

/// A moment, and what it means for the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct At {
    at_ns: u64,
    cut: Cut,
    promised: usize,
}

impl At {
    fn of(logged: &[LoggedRequest], wanted: Wanted<'_>, at_ns: u64) -> At {
        let promised = wanted.promises_ns.partition_point(|promise_ns| *promise_ns <= at_ns);
        At { at_ns, cut: Cut::at(logged, at_ns), promised }
    }
}

/// Each moment from which on something is otherwise than before.
fn moments(logged: &[LoggedRequest], wanted: Wanted<'_>) -> Vec<At> {
    let Span { begin_ns, end_ns } = wanted.within;
    let of_requests = logged
        .iter()
        .filter(|one| one.request.kind != RequestKind::Read)
        .flat_map(|one| [one.submitted_ns, one.completion.done_ns]);
    let all = of_requests.chain(wanted.promises_ns.iter().copied()).chain([begin_ns, end_ns]);
    let mut times: Vec<u64> = all
        .filter(|at_ns| (begin_ns..=end_ns).contains(at_ns))
        .map(|at_ns| exact(logged, at_ns, wanted.within))
        .collect();
    times.sort_unstable();
    times.dedup();
    let mut moments: Vec<At> = times.into_iter().map(|at_ns| At::of(logged, wanted, at_ns)).collect();
    moments.dedup_by_key(|at| (at.cut, at.promised));
    moments
}

fn choices(states: &CrashStates<'_>) -> u64 {
    match states.volatile_blocks() as u64 {
        0 => 1,
        blocks => 2 * blocks + states.volatile_writes() + 1,
    }
}

struct Found<'a> {
    history: &'a History,
    wanted: Wanted<'a>,
    known: HashSet<(u64, usize)>,
    plan: Plan,
}

impl Found<'_> {
    fn add(&mut self, at: At, states: &CrashStates<'_>, settled: u64, pick: Pick) {
        let missing = states.missing(pick);
        if self.known.insert((states.fingerprint(&missing, settled), at.promised)) {
            let At { at_ns, cut, promised } = at;
            self.plan.states.push(Planned { at_ns, cut, missing, promised });
        } else {
            self.plan.same += 1;
        }
    }

    /// A third at a promise, a third in a flush, a third anywhere.
    fn sample(&mut self, logged: &[LoggedRequest], go_on: &dyn Fn() -> bool) {
        let wanted = self.wanted;
        let mut chance = Chance::new(wanted.seed);
        for number in 0..wanted.count * TRIES_PER_STATE {
            if self.plan.states.len() >= wanted.count || !go_on() {
                break;
            }
            let place = match number % 3 {
                0 => Place::At(wanted.promises_ns),
                1 => Place::Flush,
                _ => Place::Anywhere,
            };
            let at = At::of(logged, wanted, moment(logged, wanted.within, place, &mut chance));
            let states = CrashStates::new(self.history, at.cut);
            let picks = states.picks(SAMPLED_PICKS, chance.next(), wanted.torn);
            let pick = picks[index(chance.below(picks.len() as u64))];
            self.add(at, &states, states.settled_fingerprint(), pick);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_writes::LogEntry;
    use crate::model::{Completion, Detail};
    use crate::request::Request;

    const ALL: Span = Span { begin_ns: 0, end_ns: 1_000_000 };

    /// One request after another, each of 10 ns: writes of a block with these bytes, and flushes.
    fn log(steps: &[Option<(u64, u8)>]) -> (Vec<LoggedRequest>, History) {
        let request = |step: &Option<(u64, u8)>| match step {
            Some((block, _)) => Request::write(block * 4096, 4096),
            None => Request::flush(),
        };
        let entry = |step: &Option<(u64, u8)>| match step {
            Some((block, byte)) => LogEntry::Write {
                offset_bytes: block * 4096,
                data: vec![*byte; 4096],
                preflush: false,
                fua: false,
            },
            None => LogEntry::Flush,
        };
        let logged = steps.iter().enumerate().map(|(number, step)| {
            let submitted_ns = 100 * (number as u64 + 1);
            let completion =
                Completion { start_ns: submitted_ns, done_ns: submitted_ns + 10, detail: Detail::default() };
            LoggedRequest { request: request(step), submitted_ns, completion }
        });
        (logged.collect(), History::from(steps.iter().map(entry).collect::<Vec<_>>()))
    }

    fn planned(steps: &[Option<(u64, u8)>], promises_ns: &[u64], count: usize, torn: bool) -> Plan {
        let (logged, history) = log(steps);
        plan(&logged, &history, Wanted { within: ALL, promises_ns, count, seed: 5, torn }, &|| true).unwrap()
    }

    #[test]
    fn a_short_log_is_gone_through_and_no_state_comes_twice() {
        // Nothing; 1; 2; both: the order of two writes does not tell.
        let plan = planned(&[Some((0, 1)), Some((1, 2)), None], &[], 100, false);
        let texts: Vec<String> = plan.states.iter().map(|state| state.missing.to_string()).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(plan.is_systematic);
        assert!(plan.same > 0);
    }

    #[test]
    fn the_same_bytes_with_more_promised_are_another_state() {
        let steps = [Some((0, 1)), None];
        let without = planned(&steps, &[], 100, false).states.len();
        let with = planned(&steps, &[5_000], 100, false);
        assert_eq!(with.states.len(), without + 1);
        assert_eq!(with.states.last().map(|state| state.promised), Some(1));
    }

    #[test]
    fn torn_blocks_are_among_them_where_the_device_tears() {
        let steps = [Some((0, 1)), Some((1, 2))];
        let is_torn = |torn| planned(&steps, &[], 100, torn).states.iter().any(|one| one.missing.is_torn());
        assert_eq!([is_torn(false), is_torn(true)], [false, true]);
    }

    #[test]
    fn of_a_long_log_there_are_as_many_as_were_asked_for() {
        let steps: Vec<_> = (0..400).map(|number| Some((number, 1 + (number % 200) as u8))).collect();
        let promises: Vec<u64> = (1..40).map(|number| number * 1_000).collect();
        let plan = planned(&steps, &promises, 50, false);
        assert_eq!((plan.states.len(), plan.is_systematic), (50, false));
        assert_eq!(plan, planned(&steps, &promises, 50, false), "the same seed gives the same");
        let at_promises = plan.states.iter().filter(|state| promises.contains(&state.at_ns)).count();
        assert!(at_promises >= 10, "{at_promises} of 50 at a promise");
    }

    #[test]
    fn a_state_that_is_planned_can_be_made_again() {
        let steps: Vec<_> = (0..6_u8).map(|number| Some((u64::from(number % 3), number + 1))).collect();
        let (logged, history) = log(&steps);
        let wanted = Wanted { within: ALL, promises_ns: &[], count: 1_000, seed: 1, torn: true };
        assert_eq!(plan(&logged, &history, wanted, &|| false), None, "it was given up");
        for state in plan(&logged, &history, wanted, &|| true).unwrap().states {
            assert_eq!(Cut::at(&logged, state.at_ns), state.cut);
            let states = CrashStates::new(&history, state.cut);
            assert!(states.can_lack(&state.missing), "{}", state.missing);
            for wrong in ["9:1", "0:7"] {
                assert!(!states.can_lack(&wrong.parse().unwrap()), "{wrong}");
            }
            let again: Missing = state.missing.to_string().parse().unwrap();
            let settled = states.settled_fingerprint();
            assert_eq!(states.fingerprint(&again, settled), states.fingerprint(&state.missing, settled));
        }
    }
}
