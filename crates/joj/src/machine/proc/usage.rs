//! What this process has used so far: processor time, context switches, bytes written.

use std::fs;

use serde::{Deserialize, Serialize};

/// Sums since the process began; subtract two of them.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Processor time in user mode, in microseconds.
    pub cpu_user_us: u64,
    /// Processor time in the kernel, in microseconds.
    pub cpu_system_us: u64,
    /// Context switches because a thread waited.
    pub switches_voluntary: u64,
    /// Context switches because a thread was made to wait.
    pub switches_involuntary: u64,
    /// Bytes passed to write calls.
    pub wchar_bytes: Option<u64>,
    /// Bytes this process made the storage layer write.
    pub storage_bytes: Option<u64>,
}

fn microseconds(time: libc::timeval) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec).unwrap_or(0)
}

impl Usage {
    /// All threads of this process, ended ones too.
    pub fn now() -> Usage {
        // SAFETY: rusage is plain numbers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is a whole rusage to write to.
        let result = unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        assert_eq!(result, 0, "getrusage(RUSAGE_SELF) has no way to fail");
        let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
        Usage {
            cpu_user_us: microseconds(usage.ru_utime),
            cpu_system_us: microseconds(usage.ru_stime),
            switches_voluntary: u64::try_from(usage.ru_nvcsw).unwrap_or(0),
            switches_involuntary: u64::try_from(usage.ru_nivcsw).unwrap_or(0),
            wchar_bytes: field(&io, "wchar:"),
            storage_bytes: field(&io, "write_bytes:"),
        }
    }

    /// What two processes used together.
    pub fn plus(&self, other: &Usage) -> Usage {
        let plus = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Usage {
            cpu_user_us: self.cpu_user_us + other.cpu_user_us,
            cpu_system_us: self.cpu_system_us + other.cpu_system_us,
            switches_voluntary: self.switches_voluntary + other.switches_voluntary,
            switches_involuntary: self.switches_involuntary + other.switches_involuntary,
            wchar_bytes: plus(self.wchar_bytes, other.wchar_bytes),
            storage_bytes: plus(self.storage_bytes, other.storage_bytes),
        }
    }

    /// What was used between `earlier` and this.
    pub fn since(&self, earlier: &Usage) -> Usage {
        let minus = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Usage {
            cpu_user_us: self.cpu_user_us.saturating_sub(earlier.cpu_user_us),
            cpu_system_us: self.cpu_system_us.saturating_sub(earlier.cpu_system_us),
            switches_voluntary: self.switches_voluntary.saturating_sub(earlier.switches_voluntary),
            switches_involuntary: self.switches_involuntary.saturating_sub(earlier.switches_involuntary),
            wchar_bytes: minus(self.wchar_bytes, earlier.wchar_bytes),
            storage_bytes: minus(self.storage_bytes, earlier.storage_bytes),
        }
    }
}

/// The number behind `name` at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        let text = "rchar: 6976\nwchar: 12\nwrite_bytes: 4096\ncancelled_write_bytes: 1\n";
        assert_eq!((field(text, "wchar:"), field(text, "write_bytes:")), (Some(12), Some(4096)));
        assert_eq!(field(text, "read_bytes:"), None);
    }

    #[test]
    fn usage_never_falls() {
        let before = Usage::now();
        let after = Usage::now();
        assert!(after.since(&before).cpu_user_us < 60_000_000);
        assert!(after.switches_voluntary >= before.switches_voluntary);
    }
}
