//! /proc/meminfo: what main memory is used for, in KiB (the kernel calls them kB).

use crate::monitor::proc::proc_text::{ProcError, ProcText};

/// What /proc/meminfo says at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Memory that nobody uses.
    pub free_kib: Option<u64>,
    /// Programs could have it without swapping; kernels before 3.14 do not say.
    pub available_kib: Option<u64>,
    /// Memory of the page cache.
    pub cached_kib: Option<u64>,
    /// Waits to be written.
    pub dirty_kib: Option<u64>,
    /// Memory whose content is being written to disks.
    pub writeback_kib: Option<u64>,
}

impl Memory {
    /// Reads the text.
    /// # Errors
    /// Where a line is not `Name: number`, or none says how much is free.
    pub fn parse(text: &str) -> Result<Memory, ProcError> {
        let text = ProcText::new("meminfo", text)?;
        let mut found = Memory::default();
        let mut lines = 0;
        for (line, words) in text.lines() {
            lines = line;
            let (name, rest) =
                words.split_once(':').ok_or_else(|| text.error(line, "it is not `Name: number`"))?;
            let mut rest = rest.split_ascii_whitespace();
            let number = rest.next().ok_or_else(|| text.error(line, format!("`{name}` has no number")))?;
            let number = text.number(line, number)?;
            let place = match name {
                "MemFree" => &mut found.free_kib,
                "MemAvailable" => &mut found.available_kib,
                "Cached" => &mut found.cached_kib,
                "Dirty" => &mut found.dirty_kib,
                "Writeback" => &mut found.writeback_kib,
                _ => continue,
            };
            if rest.next() != Some("kB") {
                return Err(text.error(line, format!("`{name}` is not in kB")));
            }
            *place = Some(number);
        }
        match found.free_kib {
            Some(_) => Ok(found),
            None => Err(text.error(lines.max(1), "no line began with `MemFree:`")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_new_and_old_kernels_are_read() {
        let new = "MemTotal:       24684096 kB\nMemFree:        13804864 kB\nMemAvailable:   24036376 kB\n\
                   Buffers:          179120 kB\nCached:          9669124 kB\nSwapCached:            0 kB\n\
                   Dirty:            123872 kB\nWriteback:            40 kB\nWritebackTmp:          7 kB\n\
                   HugePages_Total:       0\n";
        let expected = Memory {
            free_kib: Some(13_804_864),
            available_kib: Some(24_036_376),
            cached_kib: Some(9_669_124),
            dirty_kib: Some(123_872),
            writeback_kib: Some(40),
        };
        assert_eq!(Memory::parse(new), Ok(expected));
        let old = Memory::parse("MemFree:  9 kB\nCached:  8 kB\nDirty:  7 kB\nWriteback:  0 kB\n").unwrap();
        assert_eq!((old.available_kib, old.writeback_kib), (None, Some(0)), "2.6.35");
    }

    #[test]
    fn damage_is_named_with_its_line() {
        for (text, expected) in [
            ("", "meminfo, line 1: no line began with `MemFree:`"),
            ("MemFree:  9 kB\nDirty\n", "meminfo, line 2: it is not `Name: number`"),
            ("MemFree:  9 kB\nDirty:\n", "meminfo, line 2: `Dirty` has no number"),
            ("MemFree:  9 kB\nDirty:  9x kB\n", "meminfo, line 2: `9x` is no whole number"),
            ("MemFree:  9\n", "meminfo, line 1: `MemFree` is not in kB"),
            ("MemFree:  9 k", "meminfo, line 1: the text ends in the middle of the line"),
        ] {
            assert_eq!(Memory::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
