//! Files that joj makes, reads or watches; mounts; extents. Top to bottom:
//!
//! ```text
//! test_volume       for tests: a filesystem in a file, mounted through a loop device
//! unnamed_file      a temporary file without a name
//! file_watch        every creation, renaming and removal on a filesystem (fanotify)
//! file_handle       finding a file by its inode number
//! extents           where a file's bytes lie on its device
//! output_file       files that a measurement is written to at its end
//! standard_output   whether standard output was open when the program began
//! measured          files whose writes and syncs are what is measured
//! counters          counters of the device, the journal and the processors
//! place             where a directory stands: its file system and the device below
//! work_dir          a fresh directory for a measurement's files, gone when that is over
//! left_over         directories that a killed joj left, removed
//! mounts            what is mounted where, and from which disks
//! ```

#[cfg(test)]
pub(in crate::machine) mod test_volume;
pub mod unnamed_file;
pub(in crate::machine) mod file_watch;
pub(in crate::machine) mod file_handle;
pub mod extents;
pub mod output_file;
pub mod standard_output;
pub mod measured;
pub mod counters;
pub mod place;
pub mod work_dir;
pub(in crate::machine) mod left_over;
pub mod mounts;
