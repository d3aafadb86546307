//! A thread for orders, that starts with the first order and never at load: servers load extensions and then fork. It ends when
//! no order came for a while, and starts with the next one: else a program whose `main` ends by `pthread_exit` would never end.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::ffi::kernel::signals;
use crate::ffi::memory;
use crate::threads::origin::Origin;

const STACK_BYTES: usize = 256 << 10;

/// How long a thread waits for an order: a start costs some 50 us.
const IDLE: Duration = Duration::from_secs(1);

/// Where orders go while the thread runs.
type Slot<T> = Mutex<Option<Sender<T>>>;

fn lock<T>(slot: &Slot<T>) -> MutexGuard<'_, Option<Sender<T>>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A handle on the thread, which ends with the last handle. After a fork there is none, and no order is taken: a child has
/// handles of its own (`process`).
#[derive(Debug)]
pub struct LazyThread<T> {
    name: &'static str,
    serve: fn(Orders<T>),
    idle: Duration,
    /// Whose thread it is: in a child, one that is gone may hold the slot.
    origin: Origin,
    slot: Arc<Slot<T>>,
}

impl<T> Clone for LazyThread<T> {
    fn clone(&self) -> Self {
        LazyThread { slot: Arc::clone(&self.slot), ..*self }
    }
}

impl<T: Send + 'static> LazyThread<T> {
    /// A thread that does not run yet, and will be this function on its orders.
    pub fn new(name: &'static str, serve: fn(Orders<T>)) -> LazyThread<T> {
        LazyThread { name, serve, idle: IDLE, origin: Origin::default(), slot: Arc::default() }
    }

    /// Hands an order over; false where no thread can be had.
    pub fn send(&self, order: T) -> bool {
        if self.origin.is_parent() {
            return false;
        }
        // Held until the order is there: a thread that ends looks for one under it.
        let mut slot = lock(&self.slot);
        if slot.is_none() {
            // A thread that finds no memory for what it needs to begin ends the process. Later there may be some.
            if !memory::has_room() {
                return false;
            }
            *slot = self.start();
        }
        slot.as_ref().is_some_and(|orders| orders.send(order).is_ok())
    }

    fn start(&self) -> Option<Sender<T>> {
        let (sender, orders) = channel();
        let (serve, orders) =
            (self.serve, Orders { orders, idle: self.idle, slot: Arc::downgrade(&self.slot) });
        // The host's signal handlers are not for this thread.
        signals::with_all_blocked(|| {
            let thread = std::thread::Builder::new().name(self.name.to_owned()).stack_size(STACK_BYTES);
            thread.spawn(move || serve(orders)).ok()
        })?;
        Some(sender)
    }
}

/// The thread's side.
#[derive(Debug)]
pub struct Orders<T> {
    orders: Receiver<T>,
    idle: Duration,
    slot: Weak<Slot<T>>,
}

impl<T> Orders<T> {
    /// The next order; `None` where the thread ends: no handle is left, or nothing came for a while.
    pub fn next(&self) -> Option<T> {
        match self.orders.recv_timeout(self.idle) {
            Ok(order) => return Some(order),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {}
        }
        let slot = self.slot.upgrade()?;
        let mut slot = lock(&slot);
        let order = self.orders.try_recv().ok();
        if order.is_none() {
            *slot = None;
        }
        order
    }

    /// The next order that comes until then.
    /// # Errors
    /// None came, or no handle is left.
    pub fn next_until(&self, due: Instant) -> Result<T, RecvTimeoutError> {
        self.orders.recv_timeout(due.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{self, ThreadId};

    /// Answers with its thread.
    fn answering(idle: Duration) -> LazyThread<Sender<ThreadId>> {
        let serve = |orders: Orders<Sender<ThreadId>>| {
            while let Some(answer) = orders.next() {
                let _ = answer.send(thread::current().id());
            }
        };
        LazyThread { idle, ..LazyThread::new("test", serve) }
    }

    fn ask(lazy: &LazyThread<Sender<ThreadId>>) -> ThreadId {
        let (answer, answered) = channel();
        assert!(lazy.send(answer));
        answered.recv_timeout(Duration::from_secs(60)).expect("an answer")
    }

    #[test]
    fn it_ends_when_nothing_comes_and_starts_with_the_next_order() {
        let lazy = answering(Duration::from_millis(20));
        let first = ask(&lazy);
        let began = Instant::now();
        while lock(&lazy.slot).is_some() {
            assert!(began.elapsed() < Duration::from_secs(60), "it does not end");
            thread::sleep(Duration::from_millis(1));
        }
        assert_ne!(ask(&lazy), first);
    }

    /// Orders come at the very moments at which it ends.
    #[test]
    fn no_order_is_lost_to_a_thread_that_ends() {
        let lazy = answering(Duration::from_micros(20));
        let askers = (0..3).map(|seed: u64| {
            let lazy = lazy.clone();
            thread::spawn(move || {
                (0..1000).for_each(|turn| {
                    ask(&lazy);
                    thread::sleep(Duration::from_micros((turn * 7 + seed * 13) % 60));
                });
            })
        });
        askers.collect::<Vec<_>>().into_iter().for_each(|asker| asker.join().expect("answered"));
    }

    #[test]
    fn it_ends_with_the_last_handle() {
        let (ended, end) = channel();
        let serve = |orders: Orders<Sender<()>>| {
            let kept: Vec<_> = std::iter::from_fn(|| orders.next()).collect();
            let _ = kept[0].send(());
        };
        let lazy = LazyThread { idle: Duration::from_secs(3600), ..LazyThread::new("test", serve) };
        assert!(lazy.send(ended));
        drop(lazy);
        assert!(end.recv_timeout(Duration::from_secs(60)).is_ok(), "it waits for orders that cannot come");
    }
}
