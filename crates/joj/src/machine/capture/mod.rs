//! Requests of the block layer and calls of programs, as they happen. Top to bottom:
//!
//! ```text
//! start      chooses a backend, or says why there is none
//! bpf        eBPF programs, compiled into joj: file, offset and memory of each request
//! tracefs    the kernel's own trace events: for kernels that refuse eBPF
//! selection  which devices and processes;  spool: events to a file that has no name
//! ```

pub mod start;
pub mod below;
pub mod trace_header;
pub mod bpf;
pub mod tracefs;
pub mod selection;
pub mod spool;
pub mod error;
mod event_bytes;
