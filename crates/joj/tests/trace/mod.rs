//! What tests of `joj trace` share.

#![allow(dead_code, reason = "each test program uses a part")]

pub mod counted;
pub mod inserts;
pub mod volume;
pub mod runs;
