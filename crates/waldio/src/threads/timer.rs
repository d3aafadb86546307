//! A thread that does things when they are due. It runs while there is something to do (`lazy_thread`).

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;

use crate::threads::lazy_thread::{LazyThread, Orders};

/// What is done; returns when it is due again, `None` where it is done for good.
type Act = Box<dyn FnMut() -> Option<Instant> + Send>;

/// Something to do at a time.
struct Order {
    due: Instant,
    /// One order waits for each key.
    key: Option<usize>,
    act: Act,
}

impl fmt::Debug for Order {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Order").field("due", &self.due).finish_non_exhaustive()
    }
}

/// A handle on the thread, which ends with the last handle.
#[derive(Debug, Clone)]
pub struct Timer(LazyThread<Order>);

impl Timer {
    /// A timer whose thread does not run yet.
    pub fn new(name: &'static str) -> Timer {
        Timer(LazyThread::new(name, serve))
    }

    /// Has `act` run at this time, or later where another one takes long; false where no thread can be had. One that panics is done.
    pub fn order(&self, due: Instant, act: impl FnMut() -> Option<Instant> + Send + 'static) -> bool {
        self.0.send(Order { due, key: None, act: Box::new(act) })
    }

    /// The same in place of what waits under this key, and no later than that would have run.
    pub fn order_instead(
        &self,
        key: usize,
        due: Instant,
        act: impl FnMut() -> Option<Instant> + Send + 'static,
    ) -> bool {
        self.0.send(Order { due, key: Some(key), act: Box::new(act) })
    }
}

#[allow(clippy::needless_pass_by_value, reason = "the thread owns its orders")]
fn serve(orders: Orders<Order>) {
    let mut waiting: Vec<Order> = Vec::new();
    loop {
        let next = match waiting.iter().map(|order| order.due).min() {
            Some(due) => orders.next_until(due),
            None => orders.next().ok_or(RecvTimeoutError::Disconnected),
        };
        match next {
            Ok(mut order) => {
                waiting.retain(|waits| {
                    let stays = order.key.is_none() || waits.key != order.key;
                    if !stays {
                        order.due = order.due.min(waits.due);
                    }
                    stays
                });
                waiting.push(order);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        waiting.retain_mut(|order| {
            if order.due > now {
                return true;
            }
            let due = catch_unwind(AssertUnwindSafe(&mut order.act)).ok().flatten();
            order.due = due.unwrap_or(now);
            due.is_some()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    #[test]
    fn what_is_due_first_runs_first_and_again_as_often_as_it_says() {
        let (timer, began) = (Timer::new("test"), Instant::now());
        let (done, runs) = channel();
        for (name, milliseconds, mut left) in [("later", 40, 0), ("sooner", 10, 2)] {
            let done = done.clone();
            assert!(timer.order(began + Duration::from_millis(milliseconds), move || {
                done.send((name, Instant::now())).ok()?;
                left -= 1;
                (left > 0).then(|| Instant::now() + Duration::from_millis(1))
            }));
        }
        drop(done);
        let runs: Vec<_> = runs.iter().collect();
        let [soonest, .., latest] = &*runs else { panic!("{runs:?}") };
        assert_eq!((runs.len(), soonest.0), (3, "sooner"));
        assert!(soonest.1 >= began + Duration::from_millis(10), "{runs:?}");
        assert!(latest.1 >= began + Duration::from_millis(11), "{runs:?}");
    }

    #[test]
    fn what_another_takes_the_place_of_is_forgotten_at_once() {
        let (timer, hour) = (Timer::new("test"), Duration::from_secs(3600));
        let order = |key: usize, after: Duration| {
            let (done, ran) = channel();
            assert!(timer.order_instead(key, Instant::now() + after, move || {
                let _ = done.send(());
                None
            }));
            ran
        };
        let [first, other] = [1, 2].map(|key| order(key, hour));
        let second = order(1, Duration::from_millis(5));
        let minute = Duration::from_secs(60);
        assert_eq!(first.recv_timeout(minute), Err(RecvTimeoutError::Disconnected));
        assert_eq!(second.recv_timeout(minute), Ok(()));
        assert_eq!(other.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty), "it waits on");
    }

    /// What waits may have been put off since it was ordered, to a moment that nobody else knows.
    #[test]
    fn what_takes_the_place_of_another_runs_no_later() {
        let timer = Timer::new("test");
        let (done, ran) = channel();
        assert!(timer.order_instead(1, Instant::now() + Duration::from_millis(20), || None));
        assert!(timer.order_instead(1, Instant::now() + Duration::from_secs(3600), move || {
            let _ = done.send(());
            None
        }));
        assert!(ran.recv_timeout(Duration::from_secs(60)).is_ok(), "it waits for its own hour");
    }

    #[test]
    fn one_that_panics_ends_no_other() {
        let timer = Timer::new("test");
        assert!(timer.order(Instant::now(), || panic!("planted")));
        let (done, ran) = channel();
        assert!(timer.order(Instant::now(), move || {
            let _ = done.send(());
            None
        }));
        assert!(ran.recv_timeout(Duration::from_secs(60)).is_ok());
    }
}
