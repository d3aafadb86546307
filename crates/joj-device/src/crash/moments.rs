//! Moments of a log at which the power is cut, by chance.
//!
//! Uniform over requests, not over time: a device that waits has one state, however long it waits.

use crate::chance::Chance;
use crate::number::{index, size};
use crate::request::RequestKind;
use crate::request_log::LoggedRequest;

/// A time from one moment to another, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First nanosecond.
    pub begin_ns: u64,
    /// Last nanosecond.
    pub end_ns: u64,
}

/// Which moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// In a request, or between it and the next.
    Anywhere,
    /// In a flush that is under way.
    Flush,
    /// In a request that begins in one of these times, or between it and the next.
    During(&'a [Span]),
    /// At one of these moments.
    At(&'a [u64]),
}

/// A moment of `place` in `within`; anywhere, where the log has no such place; `within`'s last, where it has no request at all.
/// `logged`: in order of submission.
pub fn moment(logged: &[LoggedRequest], within: Span, place: Place<'_>, chance: &mut Chance) -> u64 {
    let inside = |at_ns: u64| (within.begin_ns..=within.end_ns).contains(&at_ns);
    let candidates: Vec<Span> = match place {
        Place::At(moments) => {
            let moments = moments.iter().filter(|at_ns| inside(**at_ns));
            moments.map(|at_ns| Span { begin_ns: *at_ns, end_ns: *at_ns }).collect()
        }
        Place::Anywhere | Place::Flush | Place::During(_) => {
            let requests = logged.iter().enumerate().filter(|(_, logged)| {
                let at_ns = logged.submitted_ns;
                logged.request.kind != RequestKind::Read
                    && inside(at_ns)
                    && match place {
                        Place::Flush => logged.request.kind == RequestKind::Flush,
                        Place::During(spans) => {
                            spans.iter().any(|span| (span.begin_ns..=span.end_ns).contains(&at_ns))
                        }
                        Place::Anywhere | Place::At(_) => true,
                    }
            });
            requests.map(|(number, _)| span_of(logged, number, place, within)).collect()
        }
    };
    if candidates.is_empty() {
        return if place == Place::Anywhere {
            within.end_ns
        } else {
            moment(logged, within, Place::Anywhere, chance)
        };
    }
    let span = candidates[index(chance.below(size(candidates.len())))];
    exact(logged, span.begin_ns + chance.below(span.end_ns - span.begin_ns + 1), within)
}

/// The longest time, in nanoseconds, in which something was asked of the device without a pause longer than `gap_ns`. `logged`: in order of
/// submission; reads do not count.
pub fn longest_busy_ns(logged: &[LoggedRequest], gap_ns: u64) -> u64 {
    let (mut longest_ns, mut busy): (u64, Option<Span>) = (0, None);
    for one in logged.iter().filter(|one| one.request.kind != RequestKind::Read) {
        let begin_ns = match busy {
            Some(span) if one.submitted_ns <= span.end_ns.saturating_add(gap_ns) => span.begin_ns,
            _ => one.submitted_ns,
        };
        let end_ns = busy.map_or(0, |span| span.end_ns).max(one.completion.done_ns);
        longest_ns = longest_ns.max(end_ns - begin_ns);
        busy = Some(Span { begin_ns, end_ns });
    }
    longest_ns
}

/// The times in which request `number` is the newest one; in a flush, in which it is under way.
fn span_of(logged: &[LoggedRequest], number: usize, place: Place<'_>, within: Span) -> Span {
    let begin_ns = logged[number].submitted_ns;
    let end_ns = match place {
        Place::Flush => logged[number].completion.done_ns,
        _ => logged.get(number + 1).map_or(within.end_ns, |next| next.submitted_ns),
    };
    let end_ns = end_ns.saturating_sub(1).min(within.end_ns).max(begin_ns);
    Span { begin_ns, end_ns }
}

/// `at_ns`, or the next moment at which no request is done that overtook another: a [`Cut`](super::Cut) has to tell of such
/// a request that it is under way, though it was acknowledged.
pub(super) fn exact(logged: &[LoggedRequest], at_ns: u64, within: Span) -> u64 {
    let mut at_ns = at_ns;
    loop {
        let submitted = logged.iter().take_while(|logged| logged.submitted_ns <= at_ns);
        let (mut waiting_ns, mut overtaken_ns) = (None, None);
        for done_ns in submitted.map(|logged| logged.completion.done_ns) {
            if done_ns > at_ns {
                waiting_ns = waiting_ns.max(Some(done_ns));
            } else if waiting_ns.is_some() {
                overtaken_ns = waiting_ns;
            }
        }
        match overtaken_ns {
            Some(done_ns) if done_ns <= within.end_ns => at_ns = done_ns,
            _ => return at_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Completion, Detail};
    use crate::request::Request;

    const ALL: Span = Span { begin_ns: 0, end_ns: 10_000 };

    fn logged(request: Request, submitted_ns: u64, done_ns: u64) -> LoggedRequest {
        let completion = Completion { start_ns: submitted_ns, done_ns, detail: Detail::default() };
        LoggedRequest { request, submitted_ns, completion }
    }

    fn log() -> Vec<LoggedRequest> {
        vec![
            logged(Request::write(0, 4096), 100, 200),
            logged(Request::read(0, 4096), 250, 260),
            logged(Request::flush(), 300, 400),
            logged(Request::write(4096, 4096), 5_000, 5_100),
        ]
    }

    fn all_of(place: Place<'_>, within: Span) -> Vec<u64> {
        let (log, mut chance) = (log(), Chance::new(7));
        (0..500).map(|_| moment(&log, within, place, &mut chance)).collect()
    }

    #[test]
    fn a_moment_lies_where_it_was_asked_for() {
        assert!(all_of(Place::Flush, ALL).iter().all(|at_ns| (300..400).contains(at_ns)));
        let span = [Span { begin_ns: 4_000, end_ns: 6_000 }];
        assert!(all_of(Place::During(&span), ALL).iter().all(|at_ns| *at_ns >= 5_000));
        assert!(all_of(Place::At(&[77]), ALL).iter().all(|at_ns| *at_ns == 77));
    }

    #[test]
    fn each_request_is_as_likely_as_another_however_long_the_device_waits() {
        let anywhere = all_of(Place::Anywhere, ALL);
        for (begin, end) in [(100, 250), (300, 5_000), (5_000, 10_001)] {
            let share = anywhere.iter().filter(|at_ns| (begin..end).contains(*at_ns)).count();
            assert!((100..250).contains(&share), "{share} of 500 in {begin}..{end}");
        }
    }

    #[test]
    fn what_the_log_does_not_have_is_looked_for_anywhere() {
        let before = Span { begin_ns: 0, end_ns: 260 };
        assert!(all_of(Place::Flush, before).iter().all(|at_ns| (100..=260).contains(at_ns)));
        assert!(
            all_of(Place::At(&[]), Span { begin_ns: 6_000, end_ns: 9_000 }).iter().all(|at| *at == 9_000)
        );
    }

    #[test]
    fn what_follows_at_once_is_one_busy_time() {
        assert_eq!(longest_busy_ns(&[], 100), 0);
        assert_eq!(longest_busy_ns(&log(), 100), 300, "a write and its flush");
        assert_eq!(longest_busy_ns(&log(), 99), 100);
        assert_eq!(longest_busy_ns(&log(), 5_000), 5_000);
    }

    #[test]
    fn a_request_that_overtook_another_is_waited_for() {
        let log = [
            logged(Request::write(0, 4096), 100, 900),
            logged(Request::write(4096, 4096), 150, 200),
            logged(Request::flush(), 950, 990),
        ];
        assert_eq!([exact(&log, 160, ALL), exact(&log, 300, ALL), exact(&log, 960, ALL)], [160, 900, 960]);
    }
}
