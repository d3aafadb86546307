//! A thread that lets others go first on its processor: what joj does with records can wait, what it traces cannot.

use rustix::process::{getpriority_process, setpriority_process};

/// A nice value (sched(7)): programs with the usual one get nine times as much of a processor that they share with it.
const NICE: i32 = 10;

/// The calling thread gives way while this lives, and until [`GiveWay::end`].
#[derive(Debug)]
pub struct GiveWay {
    before: Option<i32>,
}

impl GiveWay {
    /// Threads and processes made from now on inherit it. Does nothing where the thread gives way already, or may not.
    pub fn begin() -> Self {
        let before = getpriority_process(None).ok().filter(|before| *before < NICE);
        let set = before.filter(|_| setpriority_process(None, NICE).is_ok());
        Self { before: set }
    }

    /// Takes its share again, as far as the system lets it (CAP_SYS_NICE); the thread must be the one that began.
    pub fn end(&mut self) {
        if let Some(before) = self.before.take() {
            let _ = setpriority_process(None, before);
        }
    }
}

impl Drop for GiveWay {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_way_for_a_while_and_others_do_not() {
        let nice = || getpriority_process(None).unwrap();
        let before = nice();
        let mut way = GiveWay::begin();
        assert_eq!(nice(), NICE.max(before));
        way.end();
        // Without the privilege it stays as it is.
        if rustix::process::geteuid().is_root() {
            assert_eq!(nice(), before);
            drop(GiveWay::begin());
            assert_eq!(nice(), before);
        }
    }
}
