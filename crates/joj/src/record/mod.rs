//! `joj record`: what a program asks of its files, recorded as it happens, or imported from another program's text.
//!
//! ```text
//! command -> live (machine/capture/calls) | import (strace, MobiGen) -> joj-analysis: recording -> trace_file
//!
//! command   which of them
//! live      a command or a process, recorded as it runs
//! import    a text
//! leaves    whether the files are as the recorded calls leave them
//! told      what is in a recording, and what is not
//! error     why there is none
//! ```

pub mod command;
pub mod live;
mod import;
mod leaves;
mod told;
pub mod error;
