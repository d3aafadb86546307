//! A tracer: the kernel stops the program at each call that is looked at, and tells joj.
//!
//! ```text
//! launch (the command, behind a filter) | seize (a process that runs) -> tracer -> look (what a call asks for) -> CallCapture
//!
//! tracer     stops as they come, and what a thread does next
//! look       a call at its begin and at its end, with the memory behind its arguments
//! launch     starts a command that is traced from its first instruction on
//! filter     the seccomp filter that stops at some calls and lets all others run at full speed
//! request    ptrace(2), waitpid(2), process_vm_readv(2)
//! ```

pub mod tracer;
mod look;
mod launch;
mod filter;
mod request;
