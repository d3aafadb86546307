//! A capture by eBPF: object (the programs, loaded) -> record (the bytes they send) -> spool. Without the feature `bpf`, `missing`.

#[cfg(feature = "bpf")]
pub mod capture;
#[cfg(not(feature = "bpf"))]
#[path = "missing.rs"]
pub mod capture;
#[cfg(feature = "bpf")]
mod logged_blocks;
#[cfg(feature = "bpf")]
mod object;
#[cfg(feature = "bpf")]
mod record;
#[cfg(feature = "bpf")]
mod settings;
#[cfg(feature = "bpf")]
mod calls;
