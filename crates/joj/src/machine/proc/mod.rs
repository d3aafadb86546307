//! Processes, time, signals, memory. Top to bottom:
//!
//! ```text
//! give_way          a thread that lets others go first on its processor
//! memory            how much memory there is for something large
//! interrupts        how often each device interrupted the processors
//! worker_process    runs one task in a process of its own
//! proc_files        the texts of /proc that a monitor reads again and again
//! watched_command   a program that runs while it is watched
//! seccomp           filters of system calls: with one of them syncs do nothing
//! process_number    which process or thread a number means
//! usage             what this process has used so far
//! terminal          how wide the terminal is, and whether it has colours
//! signal            Ctrl-C: ends the worker, and lets the program clean up
//! clock             the two clocks: one that never jumps, and the calendar's
//! ```

pub(in crate::machine) mod give_way;
pub mod memory;
pub mod interrupts;
pub mod worker_process;
pub mod proc_files;
pub mod watched_command;
pub mod seccomp;
pub mod process_number;
pub mod usage;
pub mod terminal;
pub mod signal;
pub mod clock;
