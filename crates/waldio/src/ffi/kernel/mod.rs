//! System calls that no safe library offers, and memory that processes share or a fork wipes. Top to bottom:
//!
//! ```text
//! cancellation  a thread that is cancelled ends behind our work, not in it
//! signals       the signal mask of a thread, which a new thread inherits
//! leaked        references to values that are never freed, by their addresses
//! fork_word     a word that a child of fork finds zero: how a child is known
//! lock_probe    whether another process has a database open, without opening or closing anything of it
//! shared_page   a page that processes share: the queue for the write lock between them
//! ```

pub(crate) mod cancellation;
pub(crate) mod signals;
pub(crate) mod leaked;
pub(crate) mod fork_word;
pub mod lock_probe;
pub(crate) mod shared_page;
