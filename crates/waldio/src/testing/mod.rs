//! Nothing here is in a release build but empty questions.
//!
//! ```text
//! planted   bugs that tests plant, to see whether they are found
//! model     locks, threads and time of the model checker
//! ```

pub mod planted;
#[cfg(feature = "model")]
pub mod model;
