//! Under which conditions a result came about, as this machine tells it.

use std::fs;
use std::path::Path;

use joj_analysis::bench::environment::Environment;

use crate::machine::files::place::Place;

/// Those of a measurement in `directory`, without waldio.
pub fn environment(directory: &Path, place: &Place, started_at: String) -> Environment {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    Environment {
        joj_version: env!("CARGO_PKG_VERSION").to_owned(),
        joj_commit: env!("JOJ_COMMIT").to_owned(),
        command_line: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
        started_at,
        kernel: kernel.trim().to_owned(),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        directory: directory.to_string_lossy().into_owned(),
        filesystem: place.filesystem.clone(),
        device: place.device.clone(),
        waldio: None,
    }
}
