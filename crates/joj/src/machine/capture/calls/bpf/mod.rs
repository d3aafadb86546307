//! Calls by eBPF: programs on the kernel's tracepoints hand up each call of the processes that are followed.
//!
//! ```text
//! capture   the programs at work (bpf/recording.bpf.c); without the feature `bpf`, `missing` stands for it
//! arrived   what they hand up, as it is, until the capture is over
//! record    the bytes that they hand up become events
//! table     what they do with each call
//! ```

#[cfg(feature = "bpf")]
pub mod capture;
#[cfg(not(feature = "bpf"))]
#[path = "missing.rs"]
pub mod capture;
#[cfg(feature = "bpf")]
mod arrived;
#[cfg(feature = "bpf")]
mod record;
#[cfg(feature = "bpf")]
mod table;
