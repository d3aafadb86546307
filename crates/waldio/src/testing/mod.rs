//! Nothing here is in a release build but empty questions: bugs that tests plant, and the model's locks and time.

pub mod planted;
#[cfg(feature = "model")]
pub mod model;
