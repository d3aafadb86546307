//! How the frames of a log may lie on the disk: what the WALDIO paper compares in its figures 8 and 13. Log writes without
//! SQLite: where bytes go, and what it costs to write them.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bench::key::words;
use crate::bench::measurement::Measurement;
use crate::bench::pairs::versus;
use crate::bench::run::Run;
use crate::bench::study::durability::Durability;
use crate::statistics::Estimate;

/// Bytes of a page, of a frame's header, and of the log's header.
pub const PAGE_BYTES: u64 = 4096;
const FRAME_HEADER_BYTES: u64 = 24;
const LOG_HEADER_BYTES: u64 = 32;

words! {
    /// Where frames lie.
    ///
    /// ```text
    ///   wal        | 32 | 24 | 4096 ............ | 24 | 4096 ............ |
    ///   sector     | 512   | 24 | 4096 ............ | 488 | 24 | 4096 ..
    ///   page       | 4096 .............. | 24, zeros to 4096 | 4096 ............ |
    ///   page_8k    | 8192 ......................... | 24 | 4096 ............ | zeros to 8192 |
    ///   embedded   | 4072, 24 .......... | 4072, 24 .......... |
    /// ```
    pub enum Pattern: "log pattern" {
        /// SQLite's: 24 and 4096 bytes back to back, in two writes.
        Wal = "wal",
        /// Each frame begins at a sector of 512 bytes.
        Sector = "sector",
        /// The frame's header has a page of its own; frames begin at multiples of 4 KiB.
        Page = "page",
        /// Each frame begins at a multiple of 8 KiB.
        Page8k = "page_8k",
        /// The header is inside the page: a frame is 4 KiB.
        Embedded = "embedded",
    }
}

impl Pattern {
    /// As tables name it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Wal => "WAL, 24 + 4096",
            Self::Sector => "sector padding, 4608",
            Self::Page => "page padding, 4096 + 4096",
            Self::Page8k => "8 KiB padding, 8192",
            Self::Embedded => "embedded header, 4096",
        }
    }

    /// Where frame `index` begins, and the bytes it takes with its padding.
    pub fn place(self, index: u64) -> (u64, u64) {
        let frame = FRAME_HEADER_BYTES + PAGE_BYTES;
        let (first, bytes) = match self {
            Self::Wal => (LOG_HEADER_BYTES, frame),
            Self::Sector => (512, frame.next_multiple_of(512)),
            Self::Page => (PAGE_BYTES, 2 * PAGE_BYTES),
            Self::Page8k => (2 * PAGE_BYTES, 2 * PAGE_BYTES),
            Self::Embedded => (0, PAGE_BYTES),
        };
        (first + index * bytes, bytes)
    }

    /// The pieces of a frame that one call each writes through the page cache, from its beginning.
    pub fn pieces(self) -> &'static [u64] {
        match self {
            Self::Wal => &[FRAME_HEADER_BYTES, PAGE_BYTES],
            Self::Sector => &[4608],
            Self::Page | Self::Page8k => &[2 * PAGE_BYTES],
            Self::Embedded => &[PAGE_BYTES],
        }
    }

    /// What a direct write of frame `index` takes: (where it begins, where it ends). Whole blocks around frames that do
    /// not fill them.
    pub fn direct_range(self, index: u64) -> (u64, u64) {
        let (begin, bytes) = self.place(index);
        let align = if self == Self::Wal { PAGE_BYTES } else { 512 };
        (begin / align * align, (begin + bytes).next_multiple_of(align))
    }
}

/// What one row measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct PatternKey {
    /// Where frames lie.
    pub pattern: Pattern,
    /// How a commit is made durable.
    pub durability: Durability,
    /// True where the log was preallocated and initialised with zeros, false where it grows.
    pub prepared: bool,
}

impl PatternKey {
    /// `FS: write, fdatasync; prepared log`
    pub fn group_title(&self) -> String {
        let log = if self.prepared { "prepared log" } else { "growing log" };
        format!("{}; {log}", self.durability.title())
    }

    /// True where both belong into one table.
    pub fn same_group(&self, other: &PatternKey) -> bool {
        (self.durability, self.prepared) == (other.durability, other.prepared)
    }
}

impl fmt::Display for PatternKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "log pattern {}, {}", self.pattern.title(), self.group_title())
    }
}

/// Everything measured under one key.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct PatternRow {
    /// What was measured.
    pub key: PatternKey,
    /// Commits of one frame each.
    pub commits: Measurement,
    /// One fdatasync after the last commit: what no commit made the device write.
    pub last_flush: Measurement,
    /// Commits per second as a multiple of the `wal` pattern's, otherwise alike, paired by round.
    pub versus_wal: Option<Estimate>,
    /// What the place does not take, and its errno; `null` where it was measured.
    pub refused: Option<String>,
    /// Why the row is not to be used; `null` where every run was sound.
    pub failure: Option<String>,
}

impl PatternRow {
    /// A row without runs.
    pub fn new(key: PatternKey) -> PatternRow {
        PatternRow {
            key,
            commits: Measurement::default(),
            last_flush: Measurement::default(),
            versus_wal: None,
            refused: None,
            failure: None,
        }
    }

    /// Bytes per commit that the device wrote, the last flush included.
    pub fn device_bytes_with_last_flush(&self) -> Option<f64> {
        let commits = self.commits.runs.first()?.transactions.max(1) as f64;
        let of_flush = self.last_flush.summary.as_ref()?.device_bytes?;
        Some(self.commits.summary.as_ref()?.device_bytes? + of_flush / commits)
    }
}

/// Sums up each row.
pub fn summarise(rows: &mut [PatternRow]) {
    let all: Vec<(PatternKey, Vec<Run>)> =
        rows.iter().map(|row| (row.key, row.commits.runs.clone())).collect();
    for row in rows {
        row.commits.summarise();
        row.last_flush.summarise();
        let wal = PatternKey { pattern: Pattern::Wal, ..row.key };
        let stock = all.iter().find(|(key, _)| *key == wal);
        row.versus_wal =
            stock.and_then(|(_, stock)| versus(&row.commits.runs, stock, Run::transactions_per_s));
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bench::key::Word;
    use crate::bench::measurement::tests::measurement;

    pub(crate) fn row(pattern: Pattern, speeds: &[u64]) -> PatternRow {
        let key = PatternKey { pattern, durability: Durability::Fs, prepared: true };
        PatternRow { commits: measurement(speeds), last_flush: measurement(speeds), ..PatternRow::new(key) }
    }

    #[test]
    fn frames_lie_one_behind_the_other_as_aligned_as_their_pattern_says() {
        for (pattern, align) in [
            (Pattern::Wal, 8),
            (Pattern::Sector, 512),
            (Pattern::Page, 4096),
            (Pattern::Page8k, 8192),
            (Pattern::Embedded, 4096),
        ] {
            for index in 0..1_000 {
                let (begin, bytes) = pattern.place(index);
                assert_eq!(begin % align, 0, "{pattern:?}");
                assert_eq!(pattern.place(index + 1).0, begin + bytes, "{pattern:?}");
                assert_eq!(pattern.pieces().iter().sum::<u64>(), bytes, "{pattern:?}");
                let (from, to) = pattern.direct_range(index);
                assert!(
                    from <= begin && to >= begin + bytes && from % 512 == 0 && to % 512 == 0,
                    "{pattern:?}"
                );
            }
            assert_eq!(serde_json::to_string(&pattern).unwrap(), format!("\"{}\"", pattern.word()));
        }
        assert_eq!((Pattern::Wal.place(1), Pattern::Wal.direct_range(1)), ((4152, 4120), (4096, 12_288)));
    }

    #[test]
    fn rows_are_compared_with_the_wal_pattern_of_their_group() {
        let mut rows = [row(Pattern::Wal, &[100, 200, 300]), row(Pattern::Embedded, &[200, 400, 600])];
        summarise(&mut rows);
        assert!((rows[1].versus_wal.unwrap().median - 2.0).abs() < 1e-6);
        let summary = rows[1].commits.summary.clone().unwrap();
        // The last flush was measured in runs of 100 operations, too.
        let both = summary.device_bytes.unwrap() * (1.0 + 1.0 / 100.0);
        assert!((rows[1].device_bytes_with_last_flush().unwrap() - both).abs() < 1e-6);
        rows[1].key.prepared = false;
        summarise(&mut rows);
        assert_eq!(rows[1].versus_wal, None);
    }
}
