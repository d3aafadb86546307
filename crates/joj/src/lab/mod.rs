//! The lab: a plan is measured in an emulated machine, with Debian's kernel and emulated devices. A file uses only
//! files below it.
//!
//!   host   plan -> plan_work -> guest_pool { image (packages, modules, libraries) -> snapshot -> QEMU, several at a time }
//!   guest  agent -> device, volume -> worker -> one result a cell, in a directory that both see

pub mod commands;
pub mod crash_work;
pub mod plan_work;
pub mod machine;
pub mod guest_pool;
mod snapshot;
pub mod life;
pub mod costs;
pub mod host_share;
pub mod error;
pub mod image;
pub mod shipped;
pub mod guest;
pub mod crash_job;
pub mod job;
