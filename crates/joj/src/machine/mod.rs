//! Everything that touches the machine: system calls, clocks, privilege, `unsafe`. The rest of joj is arithmetic.
//! A file uses only files below it.

pub mod guest_kernel;
pub mod qemu;
pub mod nbd_client;
pub mod capture;
pub mod below;
pub mod trace_header;
pub mod device_bytes;
#[cfg(feature = "bpf")]
pub mod bpf_capture;
#[cfg(not(feature = "bpf"))]
#[path = "bpf_missing.rs"]
pub mod bpf_capture;
#[cfg(feature = "bpf")]
mod logged_blocks;
#[cfg(feature = "bpf")]
mod bpf_object;
#[cfg(feature = "bpf")]
mod bpf_record;
#[cfg(feature = "bpf")]
mod bpf_settings;
#[cfg(feature = "bpf")]
mod bpf_calls;
pub mod tracefs_capture;
#[cfg(test)]
mod test_volume;
pub mod capture_selection;
pub mod spool;
pub mod unnamed_file;
mod event_bytes;
mod tracefs_files;
mod tracefs_changes;
mod file_names;
mod tracefs_threads;
mod tracefs_volumes;
mod btrfs_chunks;
mod device_base;
mod give_way;
mod tracefs_buffer;
mod tracefs_events;
mod tracefs_instance;
mod file_watch;
mod file_handle;
pub mod extents;
pub mod mounts;
pub mod disks;
pub mod memory;
pub mod interrupts;
pub mod output_file;
pub mod standard_output;
pub mod worker_process;
pub mod proc_files;
pub mod watched_command;
pub mod connection;
pub mod sqlite_api;
pub mod sync_count;
pub mod slow_device;
pub mod log_size;
pub mod limit_file;
pub mod prepared_log;
pub mod counters;
pub mod place;
pub mod usage;
pub mod work_dir;
pub mod signal;
pub mod clock;
