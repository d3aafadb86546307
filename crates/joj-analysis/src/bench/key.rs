//! What a row measures: the words of the plan, the table and the result file.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A word that names one choice of a dimension, the same in options, tables and files.
pub trait Word: Copy + PartialEq + 'static {
    /// What the dimension is called, for messages.
    const DIMENSION: &'static str;
    /// Every choice, in the order of tables.
    const ALL: &'static [Self];
    /// The word of this choice.
    fn word(self) -> &'static str;
}

/// A word that names none of a dimension's choices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownWord(String);

impl fmt::Display for UnknownWord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UnknownWord {}

/// The choice that `text` names, in any case of letters.
/// # Errors
/// Where it names none: which words there are.
pub fn parse_word<W: Word>(text: &str) -> Result<W, UnknownWord> {
    let found = W::ALL.iter().copied().find(|choice| choice.word().eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let words: Vec<&str> = W::ALL.iter().map(|choice| choice.word()).collect();
        UnknownWord(format!("there is no {} `{text}`; choose from: {}", W::DIMENSION, words.join(", ")))
    })
}

/// What a transaction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Workload {
    /// Appends a row to each table.
    Insert,
    /// Changes a random row of each table to a value it never had.
    Update,
    /// Deletes a random row of each table.
    Delete,
    /// Selects one random row by key while the log holds about 900 frames.
    Read,
    /// Inserts 10,000 rows.
    Large,
    /// Opens the database, inserts one row, closes it.
    Open,
}

impl Word for Workload {
    const DIMENSION: &'static str = "workload";
    const ALL: &'static [Self] =
        &[Self::Insert, Self::Update, Self::Delete, Self::Read, Self::Large, Self::Open];
    fn word(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Read => "read",
            Self::Large => "large",
            Self::Open => "open",
        }
    }
}

impl Workload {
    /// True where a transaction costs about one flush, so that a share of the disk's limit says something.
    pub fn is_bound_by_flushes(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Delete)
    }
}

/// Which tables a transaction touches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schema {
    /// One table `(id INTEGER PRIMARY KEY, Value TEXT)`, 100-byte values, autocommit.
    Waldio,
    /// One table with AUTOINCREMENT and a creation date, autocommit: also dirties `sqlite_sequence`.
    Atc13,
    /// Three tables in one BEGIN .. COMMIT, as today's Mobibench has them.
    Mobibench,
}

impl Word for Schema {
    const DIMENSION: &'static str = "schema";
    const ALL: &'static [Self] = &[Self::Waldio, Self::Atc13, Self::Mobibench];
    fn word(self) -> &'static str {
        match self {
            Self::Waldio => "waldio",
            Self::Atc13 => "atc13",
            Self::Mobibench => "mobibench",
        }
    }
}

/// A journal mode of stock SQLite, or waldio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// `journal_mode=DELETE`.
    Delete,
    /// `journal_mode=TRUNCATE`.
    Truncate,
    /// `journal_mode=PERSIST`.
    Persist,
    /// `journal_mode=MEMORY`: not safe against a power cut.
    Memory,
    /// `journal_mode=OFF`: not safe against a power cut, nor against a failed statement.
    Off,
    /// `journal_mode=WAL`.
    Wal,
    /// `journal_mode=WAL` with the waldio extension loaded.
    Waldio,
}

impl Word for Side {
    const DIMENSION: &'static str = "side";
    const ALL: &'static [Self] =
        &[Self::Delete, Self::Truncate, Self::Persist, Self::Memory, Self::Off, Self::Wal, Self::Waldio];
    fn word(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Truncate => "truncate",
            Self::Persist => "persist",
            Self::Memory => "memory",
            Self::Off => "off",
            Self::Wal => "wal",
            Self::Waldio => "waldio",
        }
    }
}

impl Side {
    /// True for the two sides that have a write-ahead log.
    pub fn has_log(self) -> bool {
        matches!(self, Self::Wal | Self::Waldio)
    }

    /// The value of `PRAGMA journal_mode`.
    pub fn journal_mode(self) -> &'static str {
        if self == Self::Waldio { "wal" } else { self.word() }
    }
}

/// The value of `PRAGMA synchronous`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Synchronous {
    /// Every COMMIT that returned survives a power cut.
    Full,
    /// In WAL mode no flush until the checkpoint.
    Normal,
}

impl Word for Synchronous {
    const DIMENSION: &'static str = "synchronous setting";
    const ALL: &'static [Self] = &[Self::Full, Self::Normal];
    fn word(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
        }
    }
}

/// In what state the log is when the clock starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogState {
    /// The side has no write-ahead log.
    None,
    /// The database was just opened: the first transactions pay for the log's growth.
    Fresh,
    /// The log has its full size and a checkpoint has recycled it once.
    Steady,
    /// About 900 frames that no checkpoint has copied (reads).
    Full,
}

impl Word for LogState {
    const DIMENSION: &'static str = "state of the log";
    const ALL: &'static [Self] = &[Self::None, Self::Fresh, Self::Steady, Self::Full];
    fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Fresh => "fresh",
            Self::Steady => "steady",
            Self::Full => "full",
        }
    }
}

/// Options have these types: a word is parsed by [`parse_word`].
macro_rules! parsed_as_words {
    ($($kind:ty),*) => { $(
        impl std::str::FromStr for $kind {
            type Err = $crate::bench::key::UnknownWord;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::bench::key::parse_word(text)
            }
        }
    )* };
}
pub(crate) use parsed_as_words;

parsed_as_words!(Workload, Schema, Side, Synchronous, LogState);

/// What one row measures. Two results are comparable where this is equal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowKey {
    /// What a transaction does.
    pub workload: Workload,
    /// Which tables it touches.
    pub schema: Schema,
    /// `PRAGMA synchronous`.
    pub synchronous: Synchronous,
    /// Journal mode, or waldio.
    pub side: Side,
    /// State of the log at the start.
    pub log: LogState,
    /// Name of the SQLite build: `bundled`, `system`, or the path given with `--sqlite`.
    pub library: String,
}

impl RowKey {
    /// The key of stock WAL under otherwise equal conditions.
    pub fn stock_wal(&self) -> RowKey {
        let log = match (self.log, self.workload) {
            (LogState::None, Workload::Read) => LogState::Full,
            (LogState::None, _) => LogState::Fresh,
            (state, _) => state,
        };
        RowKey { side: Side::Wal, log, ..self.clone() }
    }

    /// True where the disk's limit belongs into the row's plots: a transaction costs about one flush.
    pub fn is_bound_by_flushes(&self) -> bool {
        self.workload.is_bound_by_flushes() && self.synchronous == Synchronous::Full
    }

    /// True where both belong into one table: same workload, schema and synchronous setting.
    pub fn same_group(&self, other: &RowKey) -> bool {
        (self.workload, self.schema, self.synchronous) == (other.workload, other.schema, other.synchronous)
    }

    /// `insert, schema waldio, synchronous=FULL`
    pub fn group_title(&self) -> String {
        let (workload, schema) = (self.workload.word(), self.schema.word());
        format!("{workload}, schema {schema}, synchronous={}", self.synchronous.word().to_uppercase())
    }

    /// `WAL steady` or `waldio fresh`, without the build.
    pub fn side_title(&self) -> String {
        let side = match self.side {
            Side::Waldio => "waldio".to_owned(),
            stock => stock.word().to_uppercase(),
        };
        if self.log == LogState::None { side } else { format!("{side} {}", self.log.word()) }
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}, {}", self.group_title(), self.side_title(), self.library)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_survive<W: Word + std::str::FromStr<Err = UnknownWord> + fmt::Debug + Serialize>() {
        for choice in W::ALL {
            assert_eq!(choice.word().to_uppercase().parse::<W>().unwrap(), *choice);
            assert_eq!(serde_json::to_string(choice).unwrap(), format!("\"{}\"", choice.word()));
        }
        let message = "frobnicate".parse::<W>().unwrap_err().to_string();
        assert!(message.contains(W::DIMENSION) && message.contains(W::ALL[0].word()), "{message}");
    }

    #[test]
    fn option_and_file_use_the_same_words() {
        words_survive::<Workload>();
        words_survive::<Schema>();
        words_survive::<Side>();
        words_survive::<Synchronous>();
        words_survive::<LogState>();
    }

    #[test]
    fn rollback_sides_compare_with_a_fresh_log() {
        let key = RowKey {
            workload: Workload::Insert,
            schema: Schema::Waldio,
            synchronous: Synchronous::Full,
            side: Side::Delete,
            log: LogState::None,
            library: "system".to_owned(),
        };
        assert_eq!(key.stock_wal().log, LogState::Fresh);
        assert_eq!(key.stock_wal().to_string(), "insert, schema waldio, synchronous=FULL, WAL fresh, system");
        assert_eq!(key.side_title(), "DELETE");
    }
}
