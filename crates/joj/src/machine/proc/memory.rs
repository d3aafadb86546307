//! How much memory there is for something large.

use std::fs;

/// KiB that programs can have without others being swapped out (proc_meminfo(5), `MemAvailable`); none where the kernel does
/// not say.
pub fn available_kib() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.split_whitespace().next()?.parse().ok()
}
