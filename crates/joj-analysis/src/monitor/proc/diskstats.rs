//! /proc/diskstats: what each block device did.
//!
//! Source: Documentation/admin-guide/iostats.rst of the kernel. A line is `major minor name` and then
//!
//! ```text
//!  0 reads   1 merged   2 sectors   3 ms      4 writes   5 merged   6 sectors   7 ms
//!  8 requests in flight now   9 ms with any in flight   10 ms of all in flight, added up
//! 11 discards  12 merged  13 sectors  14 ms   from 4.18
//! 15 flushes   16 ms                          from 5.5
//! ```
//!
//! Sectors are 512 bytes whatever the device has. Kernels 2.6.0 to 2.6.24 write partitions with four numbers, which tell
//! neither times nor merges: such lines are left out.

use crate::monitor::counter::all_grown;
use crate::monitor::proc::proc_text::{ProcError, ProcText};

/// Numbers behind the name, in the three generations of the format.
const LENGTHS: [usize; 3] = [11, 15, 17];
/// Numbers of a partition before 2.6.25.
const OLD_PARTITION: usize = 4;
/// The one number that is not a counter.
const IN_FLIGHT: usize = 8;
/// KiB of a sector.
const SECTOR_KIB: f64 = 0.5;

/// A device's line of /proc/diskstats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskLine {
    /// Major and minor number.
    pub device: (u64, u64),
    pub name: String,
    /// The numbers behind the name: 11, 15 or 17.
    pub numbers: Vec<u64>,
}

/// Reads the text.
/// # Errors
/// Where a line has another number of words than any kernel writes, or a number is none.
pub fn parse(text: &str) -> Result<Vec<DiskLine>, ProcError> {
    let text = ProcText::new("diskstats", text)?;
    let mut found = Vec::new();
    for (line, words) in text.lines() {
        let mut words = words.split_ascii_whitespace();
        let (Some(major), Some(minor), Some(name)) = (words.next(), words.next(), words.next()) else {
            return Err(text.error(line, "it does not begin with major, minor, name"));
        };
        let device = (text.number(line, major)?, text.number(line, minor)?);
        let mut numbers = words.map(|word| text.number(line, word)).collect::<Result<Vec<u64>, _>>()?;
        let length = numbers.len();
        if length == OLD_PARTITION {
            continue;
        }
        // Kernels to come may add more at the end, as they did twice.
        let longest = LENGTHS[LENGTHS.len() - 1];
        if !LENGTHS.contains(&length) && length < longest {
            let what = format!("it has {} fields; kernels write 14, 18, or 20 and more", length + 3);
            return Err(text.error(line, what));
        }
        numbers.truncate(longest);
        found.push(DiskLine { device, name: name.to_owned(), numbers });
    }
    Ok(found)
}

impl DiskLine {
    /// The quantities of [`crate::monitor::quantity::QuantityKind::Disk`] since `then`, `seconds` before; `None` where it is another device.
    pub fn since(&self, then: &DiskLine, seconds: f64) -> Option<Vec<f64>> {
        if self.device != then.device || self.numbers.len() != then.numbers.len() {
            return None;
        }
        let counters = |disk: &DiskLine| {
            let mut numbers = disk.numbers.clone();
            numbers[IN_FLIGHT] = 0;
            numbers
        };
        let grown = all_grown(&counters(then), &counters(self))?;
        let at = |index: usize| grown.get(index).map_or(f64::NAN, |number| *number as f64);
        let rate = |index: usize| at(index) / seconds;
        let kib = |index: usize| rate(index) * SECTOR_KIB;
        let wait = |time: usize, requests: usize| {
            if at(requests) > 0.0 { at(time) / at(requests) } else { f64::NAN }
        };
        Some(vec![
            // Ticks as they were counted: more than 100 in an interval into which a tick of the one before it fell.
            rate(9) / 10.0,
            rate(10) / 1_000.0,
            self.numbers[IN_FLIGHT] as f64,
            rate(0),
            rate(1),
            kib(2),
            wait(3, 0),
            rate(4),
            rate(5),
            kib(6),
            wait(7, 4),
            rate(11),
            rate(12),
            kib(13),
            wait(14, 11),
            rate(15),
            wait(16, 15),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::monitor::quantity::QuantityKind;

    /// As kernels 2.6.35, 4.19 and 6.18 write them.
    const OLD: &str =
        " 179       0 mmcblk0 28451 1024 1500000 61230 9120 8800 640000 400100 0 60010 461000\n";
    const DISCARDS: &str = "   8       0 sda 10 1 800 20 100 5 4000 300 2 250 320 7 0 2048 14\n   8       1 sda1 1 2 3 4 5 6 7 8 0 9 10 0 0 0 0\n";
    const FLUSHES: &str = " 254       0 vda 3160680 117121 137078634 13081912 101677820 1791793 2438979406 17633868 0 7677576 36459439 2040946 546 942703600 3422116 41211296 2321541\n";

    fn value(values: &[f64], name: &str) -> f64 {
        values[QuantityKind::Disk.index_of(name)]
    }

    fn one(text: &str) -> DiskLine {
        parse(text).unwrap().remove(0)
    }

    #[test]
    fn the_three_generations_are_read() {
        for (text, name, length) in [(OLD, "mmcblk0", 11), (DISCARDS, "sda", 15), (FLUSHES, "vda", 17)] {
            let disk = one(text);
            assert_eq!((disk.name.as_str(), disk.numbers.len()), (name, length));
        }
        assert_eq!(parse(DISCARDS).unwrap().len(), 2);
        assert_eq!(one(FLUSHES).device, (254, 0));
        let newer = FLUSHES.replace('\n', " 1 2 3\n");
        assert_eq!(one(&newer), one(FLUSHES), "fields that we do not know yet");
        assert_eq!(parse("   3       1 hda1 35486 38030 38030 38030\n"), Ok(Vec::new()), "2.6.10");
        assert_eq!(parse(""), Ok(Vec::new()));
    }

    #[test]
    fn every_field_becomes_its_quantity() {
        let then = one("254 0 vda 100 10 1000 500 200 20 2000 600 1 4000 5000 30 3 300 60 40 80\n");
        let now = one("254 0 vda 110 14 1080 520 250 26 2400 800 3 5000 9000 34 5 308 68 60 100\n");
        let values = now.since(&then, 2.0).unwrap();
        let expected =
            [50.0, 2.0, 3.0, 5.0, 2.0, 20.0, 2.0, 25.0, 3.0, 100.0, 4.0, 2.0, 1.0, 2.0, 2.0, 10.0, 1.0];
        assert_eq!(values, expected);
        assert_eq!(values.len(), QuantityKind::Disk.quantities().len());
    }

    #[test]
    fn what_an_old_kernel_does_not_count_is_no_zero() {
        let (old, discards) = (one(OLD), one(DISCARDS));
        let values = old.since(&old, 1.0).unwrap();
        assert!(value(&values, "discards").is_nan() && value(&values, "flushes").is_nan());
        assert_eq!(value(&values, "writes"), 0.0);
        assert!(value(&values, "write_wait").is_nan(), "no write, no wait");
        let values = discards.since(&discards, 1.0).unwrap();
        assert_eq!(value(&values, "discards"), 0.0);
        assert!(value(&values, "flushes").is_nan());
    }

    #[test]
    fn wraps_are_counted_through_and_another_device_is_not_compared() {
        let line = |reads: u64, ms: u64| one(&format!("8 0 sda {reads} 0 0 0 0 0 0 0 9 {ms} 0\n"));
        let values = line(15, 499).since(&line(10, (1 << 32) - 1), 1.0).unwrap();
        assert_eq!((value(&values, "reads"), value(&values, "busy")), (5.0, 50.0));
        assert_eq!(line(3, 5).since(&line(10, 4), 1.0), None, "fewer reads");
        let mut moved = line(10, 4);
        moved.device = (8, 16);
        assert_eq!(moved.since(&line(10, 4), 1.0), None, "the same name, another device");
        let short = line(10, 14).since(&line(10, 4), 0.005).unwrap();
        assert_eq!(value(&short, "busy"), 200.0, "a tick longer than the interval");
    }

    #[test]
    fn damage_is_named_with_its_line() {
        let fields = |count: usize| format!("{OLD}8 0 sda{}\n", " 1".repeat(count));
        for count in [0, 1, 3, 5, 10, 12, 14, 16] {
            let expected = format!(
                "diskstats, line 2: it has {} fields; kernels write 14, 18, or 20 and more",
                count + 3
            );
            assert_eq!(parse(&fields(count)).unwrap_err().to_string(), expected);
        }
        for (text, expected) in [
            ("\n", "diskstats, line 1: it does not begin with major, minor, name"),
            ("8 0\n", "diskstats, line 1: it does not begin with major, minor, name"),
            ("x 0 sda 1\n", "diskstats, line 1: `x` is no whole number"),
            ("8 0 sda 1 2 3 4 5 6 7 8 9 10 -1\n", "diskstats, line 1: `-1` is no whole number"),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), expected);
        }
        assert!(parse(&FLUSHES[..FLUSHES.len() - 3]).is_err(), "cut off inside the last number");
    }
}
