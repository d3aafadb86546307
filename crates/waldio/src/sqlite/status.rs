//! What `waldio_status` tells: one row per fact, each with its unit and where it was read.
//!
//! SQLite has a read transaction open while it asks, which keeps the log from being emptied. So nothing here may take longer the
//! longer the log is, and nothing waits for another connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use blockio::disk::OpenOptions;

use crate::connection::Connection;
use crate::database::Database;
use crate::durability::log_session::{LogSession, Name};
use crate::ffi::api::Value;
use crate::histogram::Histogram;
use crate::log::layout::Layout;
use crate::options::{Options, fill_name, layout_name, persist_name};
use crate::sqlite::advice::{self, Asking};

/// One fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Path of the database.
    pub database: String,
    /// What the fact is called.
    pub name: &'static str,
    /// The fact.
    pub value: Value,
    /// Its unit, or nothing.
    pub unit: &'static str,
    /// Where it was read.
    pub source: String,
}

/// The facts of one database, and of this process's connections to it. `has_namesake`: another database has its name, because one file was
/// put in the place of the other. `asking`: what the connection that asks says of it, where it is one of its own.
pub fn rows(
    database: &Database,
    connections: &[Arc<Connection>],
    has_namesake: bool,
    asking: Option<&Asking>,
) -> Vec<Row> {
    let options: Vec<_> = connections.iter().map(|connection| connection.options()).collect();
    let mut rows = Rows { database: database.path.display().to_string(), rows: Vec::new() };
    rows.text("version", env!("CARGO_PKG_VERSION"), "built in");
    rows.text("base_vfs", &database.base_name, "sqlite3_vfs_find");
    if let (true, Some(file)) = (has_namesake, database.file_id) {
        let text = format!("device {}, inode {}", file.device, file.inode);
        rows.text("file", &text, "two files had this name since they were opened");
    }
    layout_row(&mut rows, database);
    match (database.session(), database.passed_through()) {
        (Some(session), passed_through) => {
            let beside =
                |why| format!("this process, but for a connection that goes through the base VFS: {why}");
            rows.text("log", "open", &passed_through.map_or_else(|| "this process".to_owned(), beside));
            session_rows(&mut rows, &session);
            file_rows(&mut rows, database, &session);
            frame_rows(&mut rows, connections);
        }
        (None, Some(why)) => rows.text("log", "passed through", &why),
        (None, None) => rows.text("log", "not open", "no statement touched it, or not in WAL mode"),
    }
    connection_rows(&mut rows, &options);
    for (text, source) in advice::for_database(database, connections, asking) {
        rows.text("advice", &text, source);
    }
    let not_had = connections.iter().find_map(|connection| connection.not_had());
    let not_had = not_had.map_or(Value::Null, Value::Text);
    rows.push("options_not_had", not_had, "", "what a connection asked for when the log was open already");
    let (shared_lock_queue, source) = database.queue.shared_lock_queue();
    rows.text("shared_lock_queue", shared_lock_queue, &source);
    counts(&mut rows, database);
    rows.rows
}

/// What is true of the connection that asks, and of this database of its own. These rows stand first.
pub fn of_connection(path: &str, asking: &Asking) -> Vec<Row> {
    let mut rows = Rows { database: path.to_owned(), rows: Vec::new() };
    let state = asking.state.as_deref().unwrap_or("unknown: SQLite did not answer PRAGMA waldio");
    rows.text("this_connection", state, "the connection that asks: PRAGMA waldio");
    let journal_mode = asking.journal_mode.clone().map_or(Value::Null, Value::Text);
    rows.push("journal_mode", journal_mode, "", "the connection that asks: PRAGMA journal_mode");
    let synchronous = asking.synchronous.map_or(Value::Null, |word| Value::Text(word.to_owned()));
    rows.push("synchronous", synchronous, "", "the connection that asks: PRAGMA synchronous");
    rows.rows
}

/// The row of a connection that has no file open, or whose files SQLite does not list.
pub fn without_file(is_listed: bool) -> Row {
    let value = Value::Text(match is_listed {
        true => "inactive: no database of this connection is in a file".to_owned(),
        false => "unknown: SQLite did not answer PRAGMA database_list".to_owned(),
    });
    let source = "the connection that asks: PRAGMA database_list".to_owned();
    Row { database: String::new(), name: "this_connection", value, unit: "", source }
}

/// The fact that a connection has a database through this VFS, not through waldio.
pub fn passed_by(path: &str, vfs: &str) -> Vec<Row> {
    let mut rows = Rows { database: path.to_owned(), rows: Vec::new() };
    let (text, source) = advice::for_passed_by(vfs);
    rows.text("advice", &text, source);
    rows.rows
}

/// The layout of the log, or the one that its next opening would ask for.
fn layout_row(rows: &mut Rows, database: &Database) {
    let asked = database.options().layout;
    let Some(session) = database.session() else {
        if let Some(why) = database.passed_through() {
            return rows.text("layout", layout_name(Layout::Stock), &why);
        }
        rows.text("layout", layout_name(asked), "waldio_layout; the log is not open");
        return;
    };
    let source = match (session.layout, asked, database.stays_stock()) {
        (Layout::Stock, Layout::Embedded, Some(why)) => why,
        (layout, asked, _) if layout == asked => "waldio_layout".to_owned(),
        _ => "the log's header".to_owned(),
    };
    rows.text("layout", layout_name(session.layout), &source);
}

struct Rows {
    database: String,
    rows: Vec<Row>,
}

impl Rows {
    fn push(&mut self, name: &'static str, value: Value, unit: &'static str, source: &str) {
        self.rows.push(Row { database: self.database.clone(), name, value, unit, source: source.to_owned() });
    }

    fn text(&mut self, name: &'static str, value: &str, source: &str) {
        self.push(name, Value::Text(value.to_owned()), "", source);
    }

    /// Microseconds with a fraction: exact to the histogram's bucket, 6 % at most too high.
    fn times(&mut self, [median, high]: [&'static str; 2], times: &Histogram, source: &str) {
        for (name, per_mille) in [(median, 500), (high, 990)] {
            let nanoseconds = times.percentile_nanoseconds(per_mille);
            let value = nanoseconds.map_or(Value::Null, |nanoseconds| Value::Real(microseconds(nanoseconds)));
            self.push(name, value, "us", source);
        }
    }

    fn number(&mut self, name: &'static str, value: u64, unit: &'static str, source: &str) {
        self.push(name, Value::Integer(i64::try_from(value).unwrap_or(i64::MAX)), unit, source);
    }
}

fn session_rows(rows: &mut Rows, session: &LogSession) {
    let options = &session.options;
    rows.text("fill_asked", fill_name(options.fill), "waldio_fill");
    rows.text("fill", session.space.text(), "what the file took");
    rows.text("persist_asked", persist_name(options.persist), "waldio_persist");
    let persist = if session.is_fua() { "fua" } else { "flush" };
    let source = if session.persist.fua && !session.is_fua() {
        "a direct write was refused"
    } else {
        &session.persist.reason
    };
    rows.text("persist", persist, source);
    rows.text("strict", if options.strict { "on" } else { "off" }, "waldio_strict");
    let (name, source) = match session.name() {
        Name::Unknown => ("not synced yet", "no commit needed it"),
        Name::Synced => ("durable", "fdatasync of the directory"),
        Name::Refused => ("not synced", "the directory cannot be opened or synced; SQLite goes on, too"),
    };
    rows.text("log_name", name, source);
    if session.durability.is_uncertain() {
        rows.text(
            "recovered_frames",
            "not certain to be durable",
            "they could not be written over themselves",
        );
    }
    if options.no_sync {
        rows.text("no_sync", "on: NOTHING IS DURABLE", "WALDIO_NO_SYNC");
    }
    rows.number("log_bytes", options.log_bytes, "bytes", "waldio_log_bytes");
    let not_durable = session.durability.not_durable();
    let age = not_durable.map(|commits| Value::Real(commits.since.elapsed().as_secs_f64() * 1e6));
    let source = "the oldest commit of this process that no flush of this process covers yet";
    rows.push("not_durable_age", age.unwrap_or(Value::Null), "us", source);
    let bytes = not_durable.map_or(0, |commits| commits.bytes);
    let source = "of the log, of commits of this process that no flush of this process covers yet";
    rows.number("not_durable_bytes", bytes, "bytes", source);
}

/// What each connection has for itself: one value, or all of them where they differ.
fn connection_rows(rows: &mut Rows, connections: &[Options]) {
    let all = |name: &str| {
        let mut values: Vec<String> = connections.iter().filter_map(|options| options.get(name)).collect();
        values.sort();
        values.dedup();
        values.join("; ")
    };
    let switch = |values: String| match values.as_str() {
        "0" => "off".to_owned(),
        "1" => "on".to_owned(),
        _ => "on for some connections".to_owned(),
    };
    rows.text("durable_reads", &switch(all("waldio_durable_reads")), "waldio_durable_reads");
    rows.text("group_commit", &switch(all("waldio_group_commit")), "waldio_group_commit");
    rows.text("durability", &all("waldio_durability"), "waldio_durability, of each connection");
    rows.text("group", &all("waldio_group"), "the bound of waldio_durability=bounded, of each connection");
}

/// How much of the log is in use. The log itself is not read: that would take tens of milliseconds where a reader keeps it from being emptied.
fn frame_rows(rows: &mut Rows, connections: &[Arc<Connection>]) {
    let Some(view) = connections.iter().find_map(|one| one.log_view()) else {
        let why = "no wal-index yet: no statement read the log, locking_mode is EXCLUSIVE, or each connection is at work";
        return rows.push("log_frames", Value::Null, "frames", why);
    };
    rows.number("log_frames", u64::from(view.newest.frames), "frames", "the wal-index");
    rows.number("page_bytes", u64::from(view.page_bytes), "bytes", "the wal-index");
}

/// How long the log's file is, read now, and where it stands.
fn file_rows(rows: &mut Rows, database: &Database, session: &LogSession) {
    let existing = OpenOptions { read_only: true, ..OpenOptions::EXISTING };
    let Ok(file) = database.disk.open(&session.log_path, existing) else { return };
    if let Ok(bytes) = file.size() {
        rows.number("log_file_bytes", bytes, "bytes", "fstat");
    }
    for (name, value, source) in session.place(&*file) {
        rows.text(name, value, source);
    }
}

fn counts(rows: &mut Rows, database: &Database) {
    const SINCE: &str = "this process, since it opened the database";
    let stats = &database.stats;
    let counts: [(&'static str, &AtomicU64, &'static str); 20] = [
        ("commits", &stats.commits, "transactions"),
        ("unsynced_commits", &stats.unsynced_commits, "transactions"),
        ("flushes", &stats.flushes, "flushes"),
        ("durable_writes", &stats.durable_writes, "writes"),
        ("writes", &stats.writes, "writes"),
        ("bytes_from_sqlite", &stats.bytes_from_sqlite, "bytes"),
        ("bytes_written", &stats.bytes_written, "bytes"),
        ("growths", &stats.growths, "growths"),
        ("growth_flushes", &stats.growth_flushes, "flushes"),
        ("shared_commits", &stats.shared_commits, "transactions"),
        ("shared_flushes", &stats.shared_flushes, "flushes"),
        ("delayed_commits", &stats.delayed_commits, "transactions"),
        ("delayed_flushes", &stats.delayed_flushes, "flushes"),
        ("filesystem_flushes", &stats.filesystem_flushes, "flushes"),
        ("largest_group", &stats.largest_group, "transactions"),
        ("hand_overs", &stats.hand_overs, "hand-overs"),
        ("process_hand_overs", &stats.process_hand_overs, "hand-overs"),
        ("checkpoints", &stats.checkpoints, "checkpoints"),
        ("barriers_failed", &stats.barriers_failed, "barriers"),
        ("resets_caught", &stats.resets_caught, "checkpoints"),
    ];
    for (name, count, unit) in counts {
        rows.number(name, count.load(Relaxed), unit, SINCE);
    }
    rows.number("barriers", stats.barrier_times.count(), "checkpoints", SINCE);
    rows.times(
        ["flush_p50", "flush_p99"],
        &stats.flush_times,
        "each flush of this process, with its write where that is one call",
    );
    rows.times(
        ["queue_wait_p50", "queue_wait_p99"],
        &stats.queue_waits,
        "from the first BUSY to the write lock, of connections that got it",
    );
    rows.times(
        ["barrier_p50", "barrier_p99"],
        &stats.barrier_times,
        "how long a checkpoint held new transactions back",
    );
    rows.times(
        ["read_wait_p50", "read_wait_p99"],
        &stats.read_waits,
        "how long readers waited for a flush, with waldio_durable_reads",
    );
    rows.number("errors", stats.errors.load(Relaxed), "errors", SINCE);
    let last_error = stats.last_error.lock().ok().and_then(|last| last.clone());
    rows.push("last_error", last_error.map_or(Value::Null, Value::Text), "", SINCE);
    let poison = database.poisoned().map_or(Value::Null, Value::Text);
    rows.push("poison", poison, "", "close every connection of this process to end it");
}

fn microseconds(nanoseconds: u64) -> f64 {
    std::time::Duration::from_nanos(nanoseconds).as_secs_f64() * 1e6
}
