//! What a row measures: the words of the plan, the table and the result file.

use std::fmt;

use schemars::JsonSchema;
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

/// Parses each of these types as a [`Word`]: options have them.
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

/// An enumeration of the choices of one dimension, each said once with its word: `pub enum Name: "dimension" { Choice = "word" }`.
macro_rules! words {
    ($(#[$about:meta])* pub enum $name:ident: $dimension:literal {
        $($(#[$about_choice:meta])* $choice:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, schemars::JsonSchema, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$about_choice])* #[serde(rename = $word)] $choice,)*
        }

        impl $crate::bench::key::Word for $name {
            const DIMENSION: &'static str = $dimension;
            const ALL: &'static [Self] = &[$(Self::$choice),*];
            fn word(self) -> &'static str {
                match self {
                    $(Self::$choice => $word,)*
                }
            }
        }

        $crate::bench::key::parsed_as_words!($name);
    };
}
pub(crate) use words;

words! {
    /// What a transaction does.
    pub enum Workload: "workload" {
        /// Appends a row to each table.
        Insert = "insert",
        /// Changes a random row of each table to a value it never had.
        Update = "update",
        /// Deletes a random row of each table.
        Delete = "delete",
        /// Selects one random row by key while the log holds about 900 frames.
        Read = "read",
        /// Inserts 10,000 rows.
        Large = "large",
        /// Opens the database, inserts one row, closes it.
        Open = "open",
    }
}

/// Rows of the small database that `open` opens.
const SMALL_ROWS: u64 = 100;

/// Rows that the read workload spreads over the log: about 900 pages of 35 rows.
const READ_ROWS: u64 = 31_500;

/// Least rows before updates and deletes, as in Mobibench.
const ROWS_MIN: u64 = 296;

impl Workload {
    /// Rows in each table before the clock starts.
    pub fn rows_before(self, transactions: u64) -> u64 {
        match self {
            Self::Insert | Self::Large => 0,
            Self::Update | Self::Delete => transactions.max(ROWS_MIN),
            Self::Read => READ_ROWS,
            Self::Open => SMALL_ROWS,
        }
    }

    /// True where a transaction costs about one flush, so that a share of the disk's limit says something.
    pub fn is_bound_by_flushes(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Delete)
    }
}

words! {
    /// Which tables a transaction touches.
    pub enum Schema: "schema" {
        /// One table `(id INTEGER PRIMARY KEY, Value TEXT)`, 100-byte values, autocommit.
        Waldio = "waldio",
        /// One table with AUTOINCREMENT and a creation date, autocommit: also dirties `sqlite_sequence`.
        Atc13 = "atc13",
        /// Three tables in one BEGIN .. COMMIT, as today's Mobibench has them.
        Mobibench = "mobibench",
    }
}

words! {
    /// A journal mode of stock SQLite, or waldio.
    pub enum JournalMode: "journal mode" {
        /// `journal_mode=DELETE`.
        Delete = "delete",
        /// `journal_mode=TRUNCATE`.
        Truncate = "truncate",
        /// `journal_mode=PERSIST`.
        Persist = "persist",
        /// `journal_mode=MEMORY`: not safe against a power cut.
        Memory = "memory",
        /// `journal_mode=OFF`: not safe against a power cut, nor against a failed statement.
        Off = "off",
        /// `journal_mode=WAL`.
        Wal = "wal",
        /// `journal_mode=WAL` with the waldio extension loaded.
        Waldio = "waldio",
        /// The same with `waldio_durability=bounded`: COMMIT does not wait, and a power cut takes little (docs/usage.md).
        Bounded = "bounded",
    }
}

impl JournalMode {
    /// True for the modes that have a write-ahead log.
    pub fn has_log(self) -> bool {
        matches!(self, Self::Wal | Self::Waldio | Self::Bounded)
    }

    /// True where waldio has to be loaded.
    pub fn uses_waldio(self) -> bool {
        matches!(self, Self::Waldio | Self::Bounded)
    }

    /// The value of `PRAGMA journal_mode`.
    pub fn pragma_value(self) -> &'static str {
        if self.uses_waldio() { "wal" } else { self.word() }
    }
}

words! {
    /// The value of `PRAGMA synchronous`.
    pub enum Synchronous: "synchronous setting" {
        /// Every COMMIT that returned survives a power cut.
        Full = "full",
        /// In WAL mode no flush until the checkpoint.
        Normal = "normal",
    }
}

words! {
    /// In what state the log is when the clock starts.
    pub enum LogState: "state of the log" {
        /// The journal mode has no write-ahead log.
        None = "none",
        /// The database was just opened: the first transactions pay for the log's growth.
        Fresh = "fresh",
        /// The log has its full size and a checkpoint has recycled it once.
        Steady = "steady",
        /// About 900 frames that no checkpoint has copied (reads).
        Full = "full",
    }
}

/// What one row measures. Two results are comparable where this is equal.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct RowKey {
    /// What a transaction does.
    pub workload: Workload,
    /// Which tables it touches.
    pub schema: Schema,
    /// `PRAGMA synchronous`.
    pub synchronous: Synchronous,
    /// Journal mode, or waldio; `side` in files of version 1.
    #[serde(alias = "side")]
    pub mode: JournalMode,
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
        RowKey { mode: JournalMode::Wal, log, ..self.clone() }
    }

    /// True where the disk's limit belongs into the row's plots: a transaction costs about one flush.
    pub fn is_bound_by_flushes(&self) -> bool {
        let waits = self.synchronous == Synchronous::Full && self.mode != JournalMode::Bounded;
        self.workload.is_bound_by_flushes() && waits
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
    pub fn mode_title(&self) -> String {
        let mode = match self.mode {
            ours if ours.uses_waldio() => ours.word().to_owned(),
            stock => stock.word().to_uppercase(),
        };
        if self.log == LogState::None { mode } else { format!("{mode} {}", self.log.word()) }
    }
}

impl fmt::Display for RowKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}, {}, {}", self.group_title(), self.mode_title(), self.library)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::many_writers::WriterKind;
    use crate::bench::study::durability::Durability;
    use crate::bench::study::initialisation::Approach;
    use crate::bench::study::parts::StudyPart;
    use crate::bench::study::pattern::Pattern;
    use crate::bench::study::table_two::Layout;

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
        words_survive::<JournalMode>();
        words_survive::<Synchronous>();
        words_survive::<LogState>();
        words_survive::<Durability>();
        words_survive::<WriterKind>();
        words_survive::<StudyPart>();
        words_survive::<Approach>();
        words_survive::<Pattern>();
        words_survive::<Layout>();
    }

    #[test]
    fn rollback_modes_compare_with_a_fresh_log() {
        let key = RowKey {
            workload: Workload::Insert,
            schema: Schema::Waldio,
            synchronous: Synchronous::Full,
            mode: JournalMode::Delete,
            log: LogState::None,
            library: "system".to_owned(),
        };
        assert_eq!(key.stock_wal().log, LogState::Fresh);
        assert_eq!(key.stock_wal().to_string(), "insert, schema waldio, synchronous=FULL, WAL fresh, system");
        assert_eq!(key.mode_title(), "DELETE");
    }
}
