//! `joj trace`: a capture or a saved trace, and what is made of it. A file uses only files below it.
//!
//! ```text
//! command -> live (a capture) | saved (input: a file, a pipe) -> analysis -> findings, exports
//!
//! command          from the options to the exit code
//! header_command   `joj trace-header`: what a trace would say of this machine
//! generate         `joj trace-generate`: a trace of any length, without a capture
//! generate_fleet   the tables of a fleet of such traces, and what they must say
//! document         what `--json` writes: the summary, and what each transaction cost
//! live             a capture from its start to its findings
//! saved            a saved trace, of joj or of another program
//! input            its bytes: a file, standard input, a pipe
//! analysis         what is made of events on their way
//! exports          traces in other formats, written meanwhile
//! progress         how far something is that takes more than a second
//! error            why there is no result
//! ```

pub mod command;
pub mod header_command;
pub mod generate;
mod generate_fleet;
pub mod document;
pub mod live;
pub mod saved;
pub mod input;
pub mod analysis;
mod exports;
pub mod progress;
pub mod error;
