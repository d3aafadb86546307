//! Commands of the host's in the guest. Top to bottom:
//!
//! ```text
//! exec             runs one on a filesystem, and tells how it ended
//! program_crash    cuts one's storage, and has a check look at what is left
//! tracer           joj trace beside one: what its requests are for
//! made_names       names that one makes in /data, and words that could mean one of them
//! printed          what one prints, and when
//! rooted           what one stands in: a root, the filesystem, memory
//! left_mounts      what one mounts and leaves: unmounted
//! host_files       the host's files as it sees them, in a root of its own
//! kept_names       names in directories of the host's, held in memory
//! several_names    which files of the host's a command sees by two names
//! host_names       which links of the host were followed, and which names were looked for
//! ```

pub mod exec;
pub mod program_crash;
mod tracer;
mod made_names;
mod printed;
mod rooted;
mod left_mounts;
mod host_files;
mod kept_names;
mod several_names;
mod host_names;
