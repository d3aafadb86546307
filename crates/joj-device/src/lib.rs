//! An emulated block device: what a request costs, what a power cut may leave, and an NBD server for both.
//!
//! ```text
//! nbd           serves a device to the kernel's client of NBD
//! clock         time for the server: the machine's, or a test's
//! crash         the images that a power cut may leave of a device
//! device        the emulated device: times from the model, bytes from the store, all that is asked in the log
//! log_writes    requests with their data, as Linux's dm-log-writes target has them
//! request_log   what the device was asked, and when
//! store         the device's bytes: on the medium, and in the volatile cache
//! replay        what a list of requests takes on a device that it was not recorded on
//! workload      plain workloads on the model alone: the papers' rates
//! assembly      a device as it is emulated: one, or several put together
//! model         what each request costs
//! shipped       the devices that come with joj;  description: a device in numbers, each with its source
//! chance        pseudo-random numbers;  request: what a host asks;  number: sizes as indices
//! ```
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
pub mod assembly;
pub mod model;
pub mod shipped;
pub mod description;
pub mod chance;
pub mod request;
mod number;
