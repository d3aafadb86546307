//! In which process something was made, so that a child of fork knows what is its parent's.
//!
//! SQLite forbids a child to use its parent's connections ("How To Corrupt", section 2.6), and yet programs do: a daemon opens its
//! database and forks, a pool is closed in each worker. What the parent's threads were about is never finished in the child:
//! it must not wait for a flush, a growth or a turn that is theirs.

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::ffi::kernel::fork_word::ForkWord;

/// This process's number; zero before it is asked for, and in a child.
static HERE: ForkWord = ForkWord::new();
/// The last number that was given out, to this process or one that it comes from.
static LAST: AtomicUsize = AtomicUsize::new(0);

/// The process that made a value. A kernel that wipes no memory on fork (before Linux 4.14) makes all processes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin(usize);

impl Default for Origin {
    /// This process.
    fn default() -> Origin {
        let here = HERE.get();
        let fresh = LAST.fetch_add(1, SeqCst) + 1;
        Origin(here.compare_exchange(0, fresh, SeqCst, SeqCst).map_or_else(|found| found, |_| fresh))
    }
}

impl Origin {
    /// Of another process, which had a child: this one.
    #[cfg(test)]
    pub fn elsewhere() -> Origin {
        Origin(0)
    }

    /// True in a child of the process where this was made.
    pub fn is_parent(self) -> bool {
        HERE.get().load(SeqCst) != self.0
    }
}
