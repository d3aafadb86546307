//! A capture by the kernel's trace events: instance -> buffer -> events -> spool; what the events do not name is looked up beside them
//! (files, threads, volumes).

pub mod capture;
mod files;
mod places;
mod changes;
mod file_names;
mod threads;
mod volumes;
mod buffer;
mod events;
mod instance;
