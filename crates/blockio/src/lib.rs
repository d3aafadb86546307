//! Whole-block file access: one trait, the real disk and the simulated one.
//!
//! Top to bottom: the two implementors (`sim_disk`, `real_disk`), the trait that they share (`disk`), memory that
//! O_DIRECT accepts (`aligned`). A file uses only what stands below it here.

pub mod sim_disk;
pub mod sim_file;
pub mod sim_state;
pub mod sim_states;
pub mod sim_replay;
pub mod sim_fault;
pub mod sim_log;
pub mod sim_image;
#[cfg(test)]
mod sim_known_answers;
pub mod real_disk;
mod real_file;
mod sync_turn;
pub mod descriptors;
mod device_facts;
mod page_cache;
pub mod disk;
pub mod aligned;
