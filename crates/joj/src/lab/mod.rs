//! The lab: a plan is measured in an emulated machine, with Debian's kernel and emulated devices. Top to bottom:
//!
//! ```text
//! host   plan, recording -> work -> guest_pool { image -> snapshot -> QEMU, several at a time }
//! guest  agent -> device, volume -> worker -> one result a cell, in a directory that both see
//!
//! commands     `joj lab run`, `crash`, `exec` and `report`, `joj replay --lab`
//! work         what guests are given to do: a plan's cells, crash states, replays, a command
//! machine      the emulated machine as jobs and results tell of it
//! guest_pool   several guests at a time, until every unit of work has a report
//! snapshot     the memory of a guest that has booted and waits for a job
//! kept         recordings that are kept in a directory, and what each belongs to
//! turn         of several jojs one makes what the others then find made
//! life         one life of a guest, from the snapshot to power off
//! costs        what a transaction costs, from the trace of a cell
//! host_share   the directory that host and guest share, seen from the host
//! error        why a guest, or a unit of its work, came to no end
//! image        what a guest boots from
//! shipped      plans, devices and papers' tables: compiled in, or the user's
//! guest        what runs in the emulated machine
//! jobs         what the host tells the guest about crash states, replays and commands
//! written_for  what the requests of such a log were for
//! recorded_log the log of a device that was recorded to be cut
//! job          what the host tells the guest about the cells of a plan, and what all jobs share
//! file_hash    the bytes of a file in a hash
//! ```
//!
//! A file uses only files below it.

pub mod commands;
mod work;
pub mod machine;
pub mod guest_pool;
mod snapshot;
mod kept;
mod turn;
pub mod life;
pub mod costs;
pub mod host_share;
pub mod error;
pub mod image;
pub mod shipped;
pub mod guest;
pub mod jobs;
pub mod written_for;
pub mod recorded_log;
pub mod job;
mod file_hash;
