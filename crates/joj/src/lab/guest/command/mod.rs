//! Commands of the host's in the guest. Top to bottom:
//!
//! ```text
//! exec             runs one on a filesystem, and tells how it ended
//! host_files       the host's files as it sees them, in a root of its own
//! followed_links   which symbolic links of the host were followed
//! ```

pub mod exec;
mod host_files;
mod followed_links;
