//! Workers of `joj lab crash`: one commits what is to be cut, another judges what a cut left.

pub mod checker;
pub mod writer;
