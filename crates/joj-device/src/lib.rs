//! An emulated block device: what a request costs, what a power cut may leave, and an NBD server for both.
//!
//! A file uses only files below it. Time is passed in, nanoseconds as `u64`; only `clock` asks for it.

#![forbid(unsafe_code)]

pub mod nbd;
pub mod clock;
pub mod crash;
pub mod device;
pub mod log_writes;
pub mod request_log;
pub mod store;
pub mod replay;
pub mod workload;
pub mod model;
pub mod shipped;
pub mod description;
pub mod chance;
pub mod request;
mod number;
