//! A thread for orders, that starts with the first order and never at load: servers load extensions and then fork.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};

use crate::ffi::kernel::signals;
use crate::ffi::memory;

const STACK_BYTES: usize = 256 << 10;

/// A handle on the thread, which ends with the last handle. After a fork there is none, and orders go nowhere: a child has
/// handles of its own (`process`).
#[derive(Debug)]
pub struct LazyThread<T> {
    name: &'static str,
    serve: fn(Receiver<T>),
    orders: Arc<OnceLock<Option<Sender<T>>>>,
}

impl<T> Clone for LazyThread<T> {
    fn clone(&self) -> Self {
        LazyThread { orders: Arc::clone(&self.orders), ..*self }
    }
}

impl<T: Send + 'static> LazyThread<T> {
    /// A thread that does not run yet, and will be this function on its orders.
    pub fn new(name: &'static str, serve: fn(Receiver<T>)) -> LazyThread<T> {
        LazyThread { name, serve, orders: Arc::default() }
    }

    /// Hands an order over; false where no thread can be had.
    pub fn send(&self, order: T) -> bool {
        // A thread that finds no memory for what it needs to begin ends the process. Later there may be some.
        if self.orders.get().is_none() && !memory::has_room() {
            return false;
        }
        let orders = self.orders.get_or_init(|| self.start());
        orders.as_ref().is_some_and(|orders| orders.send(order).is_ok())
    }

    fn start(&self) -> Option<Sender<T>> {
        let (sender, orders) = channel();
        let serve = self.serve;
        // The host's signal handlers are not for this thread.
        signals::with_all_blocked(|| {
            let thread = std::thread::Builder::new().name(self.name.to_owned()).stack_size(STACK_BYTES);
            thread.spawn(move || serve(orders)).ok()
        })?;
        Some(sender)
    }
}
