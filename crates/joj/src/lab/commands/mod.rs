//! `joj lab run`, `merge`, `report`, `crash`, `exec`, `joj crash`, `joj replay --lab` and `joj whatif --lab`: what they ask of the lab, and what they print.
//!
//! ```text
//! run          a plan, from its options to its exit code
//! crash        crash states, from their options to the exit code
//! replay       a recording on emulated disks, from the options to the exit code
//! whatif       a recording in all configurations on emulated disks, from the options to the exit code
//! exec         a command on emulated disks, from the options to the exit code
//! program_crash  a program's crash states, from the options to the exit code
//! host_command a command of this machine's as a guest is told of it
//! disks        one outcome for each emulated disk: for replay, whatif and exec
//! recordings   the recordings that a plan's cells replay
//! parts        what guests are made of, as the options name it
//! error        why a command has no result
//! merge        the parts of shards, from their files to the exit code of one run
//! report       results beside what the papers printed
//! ```

pub mod run;
pub mod crash;
pub mod replay;
pub mod whatif;
mod exec;
pub mod program_crash;
mod host_command;
mod disks;
mod recordings;
mod parts;
pub mod error;
pub mod merge;
pub mod report;
