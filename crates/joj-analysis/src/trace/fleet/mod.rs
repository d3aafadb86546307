//! A fleet that nobody captured: traces of many devices, as attribution gives them, with what a report of them must say.
//!
//! Each device has two traces, one of each version. Version 2.0 writes more and its flushes take longer, by one planted factor.
//! Some devices are slower than all others of their model, some traces have no labels, and models differ in what runs on them.
//! All of it comes from a seed.
//!
//! ```text
//! player    a trace: one commit after the other, the checkpoints between them, a recovery
//! work      a commit, checkpoint or recovery: its requests, its sync calls, its end
//! truth     what a report must say
//! plan      which traces there are: models, versions, programs
//! chance    numbers by chance, the same from the same seed
//! ```

mod player;
mod work;
mod truth;
mod plan;
mod chance;

pub use plan::{FILES, FleetModel, FleetPlan, FleetTrace};
pub use truth::FleetSums;
