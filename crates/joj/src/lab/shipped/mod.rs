//! Plans, devices and papers' tables: those that are compiled in, and those of the user.

pub mod plans;
pub mod devices;
pub mod device_values;
pub mod papers;
pub mod error;
