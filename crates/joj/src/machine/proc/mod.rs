//! Processes, time, signals, memory.

pub(in crate::machine) mod give_way;
pub mod memory;
pub mod interrupts;
pub mod worker_process;
pub mod proc_files;
pub mod watched_command;
pub mod usage;
pub mod signal;
pub mod clock;
