//! Workers of `joj lab crash`.
//!
//! ```text
//! checker   judges what a cut left: what is there, whether it may be so, whether it can be written on
//! writer    commits what is to be cut, and tells when each commit was acknowledged
//! ```

pub mod checker;
pub mod writer;
