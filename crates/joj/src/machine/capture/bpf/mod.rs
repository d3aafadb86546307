//! A capture by eBPF: object (the programs, loaded) -> record (the bytes they send) -> spool.
//!
//! ```text
//! capture         the whole capture; without the feature `bpf`, `missing` stands for it
//! logged_blocks   what a journal was given of each block last: how much of it really changed
//! object          the programs: found in this file, fitted to the running kernel, loaded
//! record          the bytes that they hand up become events
//! settings        what they are told before they are loaded
//! calls           the system calls that they look at, by number and name
//! ```

#[cfg(feature = "bpf")]
pub mod capture;
#[cfg(not(feature = "bpf"))]
#[path = "missing.rs"]
pub mod capture;
#[cfg(feature = "bpf")]
mod logged_blocks;
#[cfg(feature = "bpf")]
pub(in crate::machine::capture) mod object;
#[cfg(feature = "bpf")]
mod record;
#[cfg(feature = "bpf")]
mod settings;
#[cfg(feature = "bpf")]
mod calls;
