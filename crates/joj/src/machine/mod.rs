//! Everything that touches the machine: system calls, clocks, privilege, `unsafe`. The rest of joj is arithmetic.

pub mod clock;

pub mod signal;

pub mod work_dir;

pub mod usage;

pub mod place;

pub mod counters;

pub mod limit_file;

pub mod sync_count;

pub mod sqlite_api;

pub mod connection;

pub mod worker_process;
