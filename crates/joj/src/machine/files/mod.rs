//! Files that joj makes, reads or watches; mounts; extents.

#[cfg(test)]
pub(in crate::machine) mod test_volume;
pub mod unnamed_file;
pub(in crate::machine) mod file_watch;
pub(in crate::machine) mod file_handle;
pub mod extents;
pub mod mounts;
pub mod output_file;
pub mod standard_output;
pub mod limit_file;
pub mod counters;
pub mod place;
pub mod work_dir;
