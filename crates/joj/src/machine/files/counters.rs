//! Counters of the machine that run on by themselves: the block device's, the journal's, the processors'.

use std::fs;
use std::path::Path;

use joj_analysis::bench::run::DeviceDelta;
use serde::{Deserialize, Serialize};

use crate::machine::files::place::Place;

/// Where to read the counters that belong to a directory.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Sources {
    /// Number of the file system's device, `major:minor`.
    pub device: Option<String>,
    /// Kernel name of the whole disk: partitions do not count flushes.
    pub disk: Option<String>,
    /// Name of the file system's journal in /proc/fs/jbd2.
    pub journal: Option<String>,
}

/// One reading of all of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counters {
    device: Option<DeviceDelta>,
    journal_commits: Option<u64>,
    busy_ticks: Option<u64>,
}

impl Sources {
    /// Those of a place.
    pub fn of(place: &Place) -> Sources {
        Sources {
            device: place.device.as_ref().map(|device| device.number.clone()),
            disk: place.device.as_ref().map(|device| device.disk.clone()),
            journal: place.filesystem.journal.clone(),
        }
    }

    /// Reads the counters.
    pub fn read(&self) -> Counters {
        let journal = self.journal.as_ref().and_then(|name| {
            journal_commits(&fs::read_to_string(format!("/proc/fs/jbd2/{name}/info")).ok()?)
        });
        let busy_ticks = fs::read_to_string("/proc/stat").ok().and_then(|text| busy_ticks(&text));
        Counters { device: self.device(), journal_commits: journal, busy_ticks }
    }

    fn device(&self) -> Option<DeviceDelta> {
        let number = self.device.as_ref()?;
        let of_device = stat_fields(&fs::read_to_string(format!("/sys/dev/block/{number}/stat")).ok()?);
        let disk =
            self.disk.as_ref().and_then(|disk| fs::read_to_string(format!("/sys/block/{disk}/stat")).ok());
        device_delta(&of_device, &disk.map_or(of_device.clone(), |text| stat_fields(&text)))
    }
}

/// Has the filesystem of a directory written to its device: what programs wrote there is in the device's counters then. Where that
/// fails, the counters have less.
pub fn settle(directory: &Path) {
    let _ = fs::File::open(directory).map(|directory| rustix::fs::syncfs(&directory));
}

fn stat_fields(text: &str) -> Vec<u64> {
    text.split_whitespace().map_while(|word| word.parse().ok()).collect()
}

/// Source: Documentation/block/stat.rst of the kernel. Sectors there are always 512 bytes.
fn device_delta(of_device: &[u64], of_disk: &[u64]) -> Option<DeviceDelta> {
    Some(DeviceDelta {
        write_requests: *of_device.get(4)?,
        written_bytes: *of_device.get(6)? * 512,
        flushes: of_disk.get(15).copied(),
    })
}

/// `1204 transactions (1200 requested), each up to 8192 blocks`. The averages below that line are whole numbers
/// of blocks over all time, so what one run logged cannot be told from them: nothing else is read.
fn journal_commits(info: &str) -> Option<u64> {
    info.lines().next()?.split_once(" transactions")?.0.trim().parse().ok()
}

/// Ticks of 10 ms that all processors together were not idle, from the first line of /proc/stat.
fn busy_ticks(stat: &str) -> Option<u64> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields = stat_fields(line);
    // user nice system idle iowait irq softirq steal; guest time is part of user time.
    let busy = [0, 1, 2, 5, 6, 7].iter().map(|index| fields.get(*index).copied().unwrap_or(0));
    (fields.len() >= 4).then(|| busy.sum())
}

impl Counters {
    /// What the device did since `earlier`.
    pub fn device_since(&self, earlier: &Counters) -> Option<DeviceDelta> {
        let (now, then) = (self.device?, earlier.device?);
        Some(DeviceDelta {
            written_bytes: now.written_bytes.saturating_sub(then.written_bytes),
            write_requests: now.write_requests.saturating_sub(then.write_requests),
            flushes: now.flushes.zip(then.flushes).map(|(now, then)| now.saturating_sub(then)),
        })
    }

    /// Transactions the journal committed since `earlier`.
    pub fn journal_commits_since(&self, earlier: &Counters) -> Option<u64> {
        Some(self.journal_commits?.saturating_sub(earlier.journal_commits?))
    }

    /// How many cores others kept busy since `earlier`, `elapsed_ns` ago, while this process used `own_cpu_us`.
    pub fn others_cores_since(&self, earlier: &Counters, elapsed_ns: u64, own_cpu_us: u64) -> Option<f64> {
        const TICK_US: f64 = 10_000.0;
        // Below a tenth of a second, ten ticks, the kernel's count is too coarse to subtract from.
        if elapsed_ns < 100_000_000 {
            return None;
        }
        let busy_us = self.busy_ticks?.saturating_sub(earlier.busy_ticks?) as f64 * TICK_US;
        Some(((busy_us - own_cpu_us as f64) * 1_000.0 / elapsed_ns as f64).max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_counters_are_read_by_position() {
        let line = "  100 1 2 3   40 5   60 7 0 8 9 10 11 12 13   16 17";
        let fields = stat_fields(line);
        let expected = DeviceDelta { written_bytes: 60 * 512, write_requests: 40, flushes: Some(16) };
        assert_eq!(device_delta(&fields, &fields), Some(expected));
        assert_eq!(
            device_delta(&fields[..11], &fields[..11]).unwrap().flushes,
            None,
            "kernel 4.17 and older"
        );
        assert_eq!(device_delta(&[], &[]), None);
    }

    #[test]
    fn the_journal_tells_its_transactions() {
        let info = "1204 transactions (1200 requested), each up to 8192 blocks\naverage: \n  0ms waiting\n";
        assert_eq!(journal_commits(info), Some(1204));
        assert_eq!(journal_commits("something else"), None);
    }

    #[test]
    fn others_are_what_is_busy_and_not_ours() {
        let reading = |busy| Counters { busy_ticks: busy_ticks(busy), ..Counters::default() };
        let (before, after) =
            (reading("cpu  100 0 50 900 7 1 1 0 0 0\n"), reading("cpu  150 0 100 999 9 1 1 0 0 0\n"));
        // 100 ticks are a second; ours was half of it; a second passed.
        let others = after.others_cores_since(&before, 1_000_000_000, 500_000).unwrap();
        assert!((others - 0.5).abs() < 1e-9, "{others}");
        assert_eq!(after.others_cores_since(&before, 1_000_000, 0), None, "too short to tell");
    }
}
