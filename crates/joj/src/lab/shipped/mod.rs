//! Plans, devices and papers' tables: those that are compiled in, and those of the user.
//!
//! ```text
//! plans           plans of the lab
//! devices         the devices that a job names
//! device_values   what the device model alone answers, without a guest
//! papers          the papers' tables and figures
//! error           why one of these cannot be used
//! ```

pub mod plans;
pub mod devices;
pub mod device_values;
pub mod papers;
pub mod error;
