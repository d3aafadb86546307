//! System calls that no safe library offers: signals, locks of other processes, memory that processes share or a fork wipes.

pub(crate) mod signals;
pub(crate) mod leaked;
pub(crate) mod fork_word;
pub mod lock_probe;
pub(crate) mod shared_page;
