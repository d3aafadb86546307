//! What a user may choose, and where: `file:app.db?waldio_fill=zeroes`, `PRAGMA waldio_fill=zeroes` before the
//! first statement that touches the log, or `WALDIO_FILL=zeroes` for the whole process. The URI wins over the
//! environment; a pragma wins over both.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use blockio::disk::Fill;

use crate::log::layout::Layout;
use crate::log::reserve::LOG_BYTES_DEFAULT;

/// How blocks ahead of the frames are made ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FillChoice {
    /// What the file system and device make cheapest: `write-zeroes` where both have it, else `zeroes`.
    Auto,
    /// This one.
    Only(Fill),
}

/// How a commit reaches the medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistChoice {
    /// `flush`: nothing measured says that direct writes are faster (docs/decisions).
    Auto,
    /// A buffered write, then fdatasync.
    Flush,
    /// One direct write with RWF_DSYNC.
    Fua,
}

/// How much a power cut may take of what was committed (`waldio_durability=bounded`), at the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlushDelay {
    /// Of the log. The commit that would make it more waits for a flush.
    pub bytes: u64,
    /// By the wall clock, from a commit's return to the beginning of a flush.
    pub time: Duration,
}

impl FlushDelay {
    /// What `waldio_durability=bounded` means where `waldio_group` names nothing else (docs/decisions, 34).
    pub const DEFAULT: FlushDelay = FlushDelay { bytes: 4 << 20, time: Duration::from_millis(10) };
}

/// What a COMMIT that returned is worth after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DurabilityChoice {
    /// What `synchronous` says: under FULL it is there.
    Full,
    /// No more than so much is lost, under FULL and NORMAL. COMMIT does not wait.
    Bounded(FlushDelay),
    /// What `synchronous=NORMAL` says, under FULL as well.
    Normal,
}

impl DurabilityChoice {
    /// How long a commit's flush may wait.
    pub fn delay(self) -> Option<FlushDelay> {
        match self {
            DurabilityChoice::Bounded(delay) => Some(delay),
            DurabilityChoice::Full | DurabilityChoice::Normal => None,
        }
    }
}

/// The options of one database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// `waldio_fill`.
    pub fill: FillChoice,
    /// `waldio_persist`.
    pub persist: PersistChoice,
    /// `waldio_log_bytes`: the log's working size.
    pub log_bytes: u64,
    /// `waldio_strict`: nothing is reserved, no frame waits for its commit: file sizes, deletions and
    /// syncs are exactly stock's.
    pub strict: bool,
    /// `waldio_group_commit`: commits of several connections share flushes, and writers stand in the queue.
    pub group_commit: bool,
    /// `waldio_durable_reads`: no reader sees a commit that is not durable yet.
    pub durable_reads: bool,
    /// `waldio_durability`, and `waldio_group` for another bound than the default.
    pub durability: DurabilityChoice,
    /// `waldio_db_chunk`: checkpoints make the database file longer by this many bytes at once; 0 for just what they need.
    pub db_chunk_bytes: u64,
    /// `waldio_layout`: the layout of a log that is begun anew, where the database can have it.
    pub layout: Layout,
    /// Tests only, from the environment alone: no flush at all, as SQLite's own `SQLITE_NO_SYNC` build option.
    pub no_sync: bool,
    /// SQLite's own `cache=shared` of the URI: several connections of the application's may be one to waldio.
    pub shares_cache: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            fill: FillChoice::Auto,
            persist: PersistChoice::Auto,
            log_bytes: LOG_BYTES_DEFAULT,
            strict: false,
            group_commit: true,
            durable_reads: false,
            durability: DurabilityChoice::Full,
            db_chunk_bytes: 0,
            layout: Layout::Stock,
            no_sync: false,
            shares_cache: false,
        }
    }
}

/// The names of the options that URIs and pragmas know.
pub const NAMES: [&str; 10] = [
    "waldio_durability",
    "waldio_fill",
    "waldio_persist",
    "waldio_log_bytes",
    "waldio_strict",
    "waldio_group_commit",
    "waldio_durable_reads",
    "waldio_group",
    "waldio_layout",
    "waldio_db_chunk",
];

/// The options that each connection has for itself. The others are the log's: they hold as the first connection of the
/// process that opened it asked.
const CONNECTIONS: [&str; 5] =
    ["waldio_durability", "waldio_group_commit", "waldio_durable_reads", "waldio_group", "waldio_db_chunk"];

/// True for an option that each connection has for itself.
pub fn is_connections(name: &str) -> bool {
    CONNECTIONS.contains(&name)
}

impl Options {
    /// What a connection with these options does not get, because its log was opened with others: of what it asked for
    /// beyond the defaults.
    pub fn not_had(&self, log: &Options) -> Option<String> {
        let default = Options::default();
        let differs = |name: &&str| {
            let asked = self.get(name);
            !is_connections(name) && asked != log.get(name) && asked != default.get(name)
        };
        let text = |name: &str, options: &Options| options.get(name).unwrap_or_default();
        let told: Vec<String> = NAMES
            .into_iter()
            .filter(differs)
            .map(|name| format!("{name}={}, not {}", text(name, log), text(name, self)))
            .collect();
        (!told.is_empty()).then(|| format!("the log is open with {}", told.join("; ")))
    }

    /// Takes one setting.
    /// # Errors
    /// A sentence that says what is accepted; nothing is changed.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        match name {
            "waldio_fill" => self.fill = parse_fill(value)?,
            "waldio_persist" => self.persist = parse_persist(value)?,
            "waldio_log_bytes" => self.log_bytes = parse_log_bytes(value)?,
            "waldio_strict" => self.strict = parse_switch(name, value)?,
            "waldio_group_commit" => self.group_commit = parse_switch(name, value)?,
            "waldio_durable_reads" => self.durable_reads = parse_switch(name, value)?,
            "waldio_durability" => self.durability = parse_durability(value, self.durability)?,
            "waldio_group" => {
                let none =
                    if self.durability.delay().is_some() { DurabilityChoice::Full } else { self.durability };
                self.durability = parse_window(value)?.map_or(none, DurabilityChoice::Bounded);
            }
            "waldio_layout" => self.layout = parse_layout(value)?,
            "waldio_db_chunk" => self.db_chunk_bytes = parse_db_chunk(value)?,
            _ => return Err(OptionError::Unknown(name.to_owned())),
        }
        Ok(())
    }

    /// The present setting of one option, as `set` would take it.
    pub fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "waldio_fill" => fill_name(self.fill).to_owned(),
            "waldio_persist" => persist_name(self.persist).to_owned(),
            "waldio_log_bytes" => self.log_bytes.to_string(),
            "waldio_strict" => u8::from(self.strict).to_string(),
            "waldio_group_commit" => u8::from(self.group_commit).to_string(),
            "waldio_durable_reads" => u8::from(self.durable_reads).to_string(),
            "waldio_layout" => layout_name(self.layout).to_owned(),
            "waldio_db_chunk" => match self.db_chunk_bytes {
                0 => "off".to_owned(),
                bytes => bytes.to_string(),
            },
            "waldio_durability" => durability_name(self.durability).to_owned(),
            "waldio_group" => self.durability.delay().map_or_else(|| "off".to_owned(), delay_text),
            _ => return None,
        })
    }

    /// The defaults with what the environment says; `lookup` finds a variable.
    /// # Errors
    /// The first variable that is wrong, with what it accepts; the others are taken.
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> (Options, Vec<String>) {
        let mut options = Options::default();
        let mut complaints = Vec::new();
        for name in NAMES {
            let variable = name.to_uppercase();
            if let Some(value) = lookup(&variable)
                && let Err(complaint) = options.set(name, &value)
            {
                complaints.push(format!("environment variable {variable}: {complaint}"));
            }
        }
        options.no_sync = lookup("WALDIO_NO_SYNC").is_some_and(|value| value == "1");
        (options, complaints)
    }
}

/// Why an option keeps its value. As a sentence it says what is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionError {
    /// No option has this name.
    Unknown(String),
    /// The option does not take this value.
    Value {
        /// The option.
        name: String,
        /// What it takes.
        accepted: &'static str,
        /// What was asked for.
        value: String,
    },
    /// This option is the log's, and the log is open.
    LogIsOpen(String),
    /// Readers cannot wait for flushes: the database is SQLite's alone. Why.
    PassedThrough(String),
}

impl fmt::Display for OptionError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OptionError::Unknown(name) => {
                // SQLite's error log cuts a line at 210 bytes.
                let known = NAMES.map(|name| name.trim_start_matches("waldio_")).join(", ");
                write!(formatter, "no option {name}; behind waldio_ come {known}")
            }
            OptionError::Value { name, accepted, value } => {
                write!(formatter, "{name} is {accepted}, not {value:?}")
            }
            OptionError::LogIsOpen(name) => write!(
                formatter,
                "{name} cannot change while the log is open: set it before the first statement that touches the \
                 database, in the URI (file:app.db?{name}=...) or in the environment ({})",
                name.to_uppercase()
            ),
            OptionError::PassedThrough(why) => write!(formatter, "waldio_durable_reads cannot hold: {why}"),
        }
    }
}

impl Error for OptionError {}

impl OptionError {
    fn not(name: &str, accepted: &'static str, value: &str) -> OptionError {
        OptionError::Value { name: name.to_owned(), accepted, value: value.to_owned() }
    }
}

/// The name of a fill choice.
pub fn fill_name(fill: FillChoice) -> &'static str {
    match fill {
        FillChoice::Auto => "auto",
        FillChoice::Only(Fill::Zeroes) => "zeroes",
        FillChoice::Only(Fill::WriteZeroes) => "write-zeroes",
        FillChoice::Only(Fill::Unwritten) => "unwritten",
    }
}

/// The name of a persistence choice.
pub fn persist_name(persist: PersistChoice) -> &'static str {
    match persist {
        PersistChoice::Auto => "auto",
        PersistChoice::Flush => "flush",
        PersistChoice::Fua => "fua",
    }
}

/// The name of a durability.
pub fn durability_name(durability: DurabilityChoice) -> &'static str {
    match durability {
        DurabilityChoice::Full => "full",
        DurabilityChoice::Bounded(_) => "bounded",
        DurabilityChoice::Normal => "normal",
    }
}

/// `before` keeps its bound.
fn parse_durability(value: &str, before: DurabilityChoice) -> Result<DurabilityChoice, OptionError> {
    Ok(match value {
        "full" => DurabilityChoice::Full,
        "bounded" => DurabilityChoice::Bounded(before.delay().unwrap_or(FlushDelay::DEFAULT)),
        "normal" => DurabilityChoice::Normal,
        _ => return Err(OptionError::not("waldio_durability", "full, bounded or normal", value)),
    })
}

fn parse_fill(value: &str) -> Result<FillChoice, OptionError> {
    Ok(match value {
        "auto" => FillChoice::Auto,
        "zeroes" => FillChoice::Only(Fill::Zeroes),
        "write-zeroes" => FillChoice::Only(Fill::WriteZeroes),
        "unwritten" => FillChoice::Only(Fill::Unwritten),
        _ => return Err(OptionError::not("waldio_fill", "auto, write-zeroes, zeroes or unwritten", value)),
    })
}

fn parse_db_chunk(value: &str) -> Result<u64, OptionError> {
    const RANGE: std::ops::RangeInclusive<u64> = 4096..=1 << 30;
    if matches!(value, "0" | "off" | "false" | "no") {
        return Ok(0);
    }
    let bytes =
        with_unit(value, &BYTE_UNITS).filter(|bytes| RANGE.contains(bytes) && bytes.is_power_of_two());
    const ACCEPTED: &str = "off, or a power of two from 4096 to 1073741824 bytes, such as 1MiB";
    bytes.ok_or_else(|| OptionError::not("waldio_db_chunk", ACCEPTED, value))
}

/// Names of units and what they stand for; a number may have none.
const BYTE_UNITS: [(&str, u64); 3] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("", 1)];
const TIME_UNITS: [(&str, u64); 2] = [("ms", 1), ("", 1)];

/// A whole number with a unit behind it.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let of = |(unit, factor): &(&str, u64)| {
        let number: u64 = text.trim().strip_suffix(unit)?.trim_end().parse().ok()?;
        number.checked_mul(*factor)
    };
    units.iter().find_map(of)
}

fn parse_layout(value: &str) -> Result<Layout, OptionError> {
    match value {
        "stock" => Ok(Layout::Stock),
        "embedded" => Ok(Layout::Embedded),
        _ => Err(OptionError::not("waldio_layout", "stock or embedded", value)),
    }
}

/// A layout as `waldio_layout` takes it.
pub fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Stock => "stock",
        Layout::Embedded => "embedded",
    }
}

fn parse_persist(value: &str) -> Result<PersistChoice, OptionError> {
    Ok(match value {
        "auto" => PersistChoice::Auto,
        "flush" => PersistChoice::Flush,
        "fua" => PersistChoice::Fua,
        _ => return Err(OptionError::not("waldio_persist", "auto, flush or fua", value)),
    })
}

fn parse_log_bytes(value: &str) -> Result<u64, OptionError> {
    const RANGE: std::ops::RangeInclusive<u64> = 64 << 10..=1 << 30;
    let bytes = value.parse().ok().filter(|bytes| RANGE.contains(bytes));
    bytes.ok_or_else(|| OptionError::not("waldio_log_bytes", "a number from 65536 to 1073741824", value))
}

fn parse_window(value: &str) -> Result<Option<FlushDelay>, OptionError> {
    const BYTES: std::ops::RangeInclusive<u64> = 4096..=1 << 30;
    const MILLISECONDS: std::ops::RangeInclusive<u64> = 1..=60_000;
    if matches!(value, "0" | "off" | "false" | "no") {
        return Ok(None);
    }
    let delay = value.split_once(',').and_then(|(bytes, milliseconds)| {
        let bytes = with_unit(bytes, &BYTE_UNITS).filter(|bytes| BYTES.contains(bytes))?;
        let milliseconds = with_unit(milliseconds, &TIME_UNITS).filter(|time| MILLISECONDS.contains(time))?;
        Some(FlushDelay { bytes, time: Duration::from_millis(milliseconds) })
    });
    const ACCEPTED: &str = "off, or BYTES,MS such as 16KiB,2ms (4096 to 1073741824 bytes, 1 to 60000 ms)";
    delay.map(Some).ok_or_else(|| OptionError::not("waldio_group", ACCEPTED, value))
}

/// A delay as `waldio_group` takes it.
fn delay_text(delay: FlushDelay) -> String {
    format!("{},{}", delay.bytes, delay.time.as_millis())
}

fn parse_switch(name: &str, value: &str) -> Result<bool, OptionError> {
    match value {
        "1" | "on" | "true" | "yes" => Ok(true),
        "0" | "off" | "false" | "no" => Ok(false),
        _ => Err(OptionError::not(name, "on or off", value)),
    }
}

#[cfg(test)]
mod tests;
