//! Why calls cannot be recorded, or no more of them.

use std::io;

use thiserror::Error;

use crate::machine::capture::error::BpfError;
use crate::machine::proc::watched_command::StartError;

/// Why calls cannot be recorded.
#[derive(Debug, Error)]
pub enum CallCaptureError {
    /// There is no such command, or it cannot be run.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The process cannot be traced.
    #[error("cannot trace process {process}: {error}; {}", remedy(.error))]
    Seize {
        /// The process.
        process: u32,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// The tracer's means are refused.
    #[error("cannot {what}: {error}")]
    Tracer {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// eBPF programs know processes by other numbers than joj.
    #[error(
        "joj runs in a pid namespace of its own (a container): eBPF programs know its processes by other numbers"
    )]
    #[cfg_attr(not(feature = "bpf"), expect(dead_code, reason = "a joj without eBPF has only one reason"))]
    Namespace,
    /// eBPF cannot be used.
    #[error(transparent)]
    Bpf(#[from] BpfError),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::EPERM) => {
            "it is another user's, another program traces it, or kernel.yama.ptrace_scope forbids it: run joj as root"
        }
        Some(libc::ESRCH) => "it has ended",
        _ => "run joj as root",
    }
}
