//! Requests of the block layer and calls of programs, as they happen. Top to bottom:
//!
//! ```text
//! calls          calls of programs on files, for a recording
//! start          chooses a backend, or says why there is none
//! below          which disks lie below a file, a directory or a device node
//! mount_watch    which filesystems of that head are mounted still
//! trace_header   the head of a trace: disks, filesystems, and where these keep what is not data
//! bpf            eBPF programs, compiled into joj: file, offset and memory of each request
//! tracefs        the kernel's own trace events: for kernels that refuse eBPF
//! selection      which devices and processes
//! spool          records that wait: in memory, then in a file that has no name
//! error          why nothing can be captured, or nothing more
//! event_bytes    an event as bytes, for its way through the spool
//! ```

pub mod calls;
pub mod start;
pub mod below;
pub mod mount_watch;
pub mod trace_header;
pub mod bpf;
pub mod tracefs;
pub mod selection;
pub mod spool;
pub mod error;
mod event_bytes;
