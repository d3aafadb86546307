//! One connection's commits: each waits for those before it on its databases, then for its time, and is made.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use joj_analysis::bench::run::SyncCount;
use joj_analysis::recording::page_transactions::plan::{
    CommitWait, PlannedCommit, PlannedPart, TransactionPlan,
};

use crate::bench::worker::mobibench::progress::TestProgress;
use crate::bench::worker::mobibench::threads::ThreadTest;
use crate::bench::worker::page_transactions::made_database::{DatabaseSettings, Values, configure, file_of};
use crate::bench::worker::task::Refusal;
use crate::command_line::replay::OrderChoice;
use crate::machine::files::counters::{Counters, Sources, settle};
use crate::machine::proc::clock;
use crate::machine::proc::usage::Usage;
use crate::machine::replayer::turns::Turn;
use crate::machine::sqlite::connection::{Connection, SqliteError, Statement};
use crate::machine::sqlite::sqlite_api::Api;
use crate::machine::sqlite::sync_count::SyncCounter;

/// A shorter wait is spent looking at the clock: a sleep takes longer.
const LOOK_NS: u64 = 60_000;
/// So long a thread sleeps at most before it looks whether the replay is to end.
const SLEEP_NS: u64 = 50_000_000;

/// What all threads share.
pub struct SharedReplay<'a> {
    pub api: &'a Api,
    pub plan: &'a TransactionPlan,
    pub directory: &'a str,
    pub settings: DatabaseSettings<'a>,
    pub order: OrderChoice,
    /// How many commits each connection has made.
    pub turns: Vec<Turn>,
    /// The first thread has taken the figures at the end.
    pub read: Turn,
    /// A thread failed.
    pub stop: AtomicBool,
    /// [`clock::shared_ns`] at the time that is 0 in the recording; set when all are ready.
    pub begin_ns: Mutex<u64>,
    /// Held while a connection is opened: changing the journal mode needs the database alone.
    pub opening: Mutex<()>,
    /// Connections stay open until the process ends, so that no checkpoint follows.
    pub leaves_open: bool,
    /// Connections that are closed under the clock, in this order, before the counters are read.
    pub closes: &'a [u32],
    /// How many of them are closed.
    pub closed: Turn,
    /// Counts calls for durability, where they are to be counted.
    pub counter: Option<SyncCounter>,
    /// Counters of the machine.
    pub sources: &'a Sources,
    /// Have the filesystem written to the device before they are read at the end.
    pub settles: bool,
    pub gathered: Mutex<Gathered>,
}

/// What came of all threads besides the times of the commits.
#[derive(Debug, Default)]
pub struct Gathered {
    pub late_ns: Vec<u64>,
    /// How long each of [`SharedReplay::closes`] took.
    pub closes_ns: Vec<u64>,
    /// Pages that the connections wrote; `None` where this SQLite does not count them.
    pub pages: Option<u64>,
    /// Readings when the last commit was over, and the last close that counts: closing a connection may copy its log to the database.
    pub end: Option<(Counters, Usage)>,
    pub syncs: Option<SyncCount>,
}

impl SharedReplay<'_> {
    fn take_figures(&self) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        let used = Usage::now();
        let commits = self.plan.commits.len() as u64;
        gathered.syncs = self.counter.as_ref().map(|counter| counter.counted(commits));
        if self.settles {
            settle(Path::new(self.directory));
        }
        gathered.end = Some((self.sources.read(), used));
    }
}

/// A connection and its commits.
pub struct ConnectionTest<'a> {
    shared: &'a SharedReplay<'a>,
    number: usize,
    connection: Connection<'a>,
}

/// Ends all threads where one fails or panics: others may wait for its commits.
struct StopOthers<'a> {
    stop: &'a AtomicBool,
    is_well: bool,
}

impl Drop for StopOthers<'_> {
    fn drop(&mut self) {
        if !self.is_well {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The name of a connection's database in SQL.
fn schema(place: usize) -> String {
    if place == 0 { "main".to_owned() } else { format!("d{place}") }
}

impl<'a> ConnectionTest<'a> {
    /// Opens the connection with this number.
    pub fn new(shared: &'a SharedReplay<'a>, number: u32) -> Result<Self, Refusal> {
        let _one_at_a_time = shared.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let number = number as usize;
        let databases = &shared.plan.connections[number];
        let file = |place: usize| file_of(shared.directory, databases[place] as usize);
        let connection = Connection::open(shared.api, &file(0))?;
        connection.run("PRAGMA busy_timeout=60000")?;
        for place in 0..databases.len() {
            if place > 0 {
                let path = file(place).replace('\'', "''");
                connection.run(&format!("ATTACH '{path}' AS {}", schema(place)))?;
            }
            configure(&connection, &schema(place), &shared.settings)?;
            // The schema is read before the clock runs.
            connection.value(&format!("SELECT max(id) FROM {}.p", schema(place)))?;
        }
        connection.pages_written(true);
        Ok(Self { shared, number, connection })
    }

    fn commits(&self) -> impl Iterator<Item = &'a PlannedCommit> + use<'a> {
        let number = self.number;
        self.shared.plan.commits.iter().filter(move |commit| commit.connection as usize == number)
    }

    /// Waits until all commits of all connections are made; then the first takes the figures, where no close counts.
    fn wait_for_all(&self) {
        let shared = self.shared;
        for (number, turn) in shared.turns.iter().enumerate() {
            let all = shared.plan.commits.iter().filter(|commit| commit.connection as usize == number);
            if !turn.wait(u32::try_from(all.count()).unwrap_or(u32::MAX), &shared.stop) {
                return;
            }
        }
        if !shared.closes.is_empty() {
            return;
        }
        if self.number == 0 {
            shared.take_figures();
            shared.read.advance(1);
        } else {
            shared.read.wait(1, &shared.stop);
        }
    }

    /// When a commit has to begin, of [`clock::shared_ns`]; `None` for at once.
    fn time_of(&self, commit: &PlannedCommit) -> Option<u64> {
        let begin_ns = *self.shared.begin_ns.lock().unwrap_or_else(PoisonError::into_inner);
        match self.shared.order {
            OrderChoice::Fast => None,
            OrderChoice::Timed => Some(begin_ns + commit.begin_ns),
            OrderChoice::Dependent if commit.ready_ns == 0 => Some(begin_ns + commit.begin_ns),
            OrderChoice::Dependent => {
                Some(clock::shared_ns() + commit.begin_ns.saturating_sub(commit.ready_ns))
            }
        }
    }
}

impl ThreadTest for ConnectionTest<'_> {
    fn measure(&mut self, progress: &TestProgress) -> Result<Vec<u64>, Refusal> {
        let shared = self.shared;
        let mut guard = StopOthers { stop: &shared.stop, is_well: false };
        let databases = &shared.plan.connections[self.number];
        let mut sql = Sql::new(&self.connection, shared, databases, self.number as u64)?;
        let (mut times_ns, mut late_ns) = (Vec::new(), Vec::new());
        for (commit, made) in self.commits().zip(1..) {
            let is_turn =
                |wait: &CommitWait| shared.turns[wait.connection as usize].wait(wait.commits, &shared.stop);
            if !commit.waits.iter().all(is_turn) {
                break;
            }
            if let Some(at_ns) = self.time_of(commit) {
                pause(at_ns, &shared.stop);
                late_ns.push(clock::shared_ns().saturating_sub(at_ns));
            }
            let hold_ns = if shared.order == OrderChoice::Fast { 0 } else { commit.hold_ns };
            times_ns.push(sql.commit(commit, hold_ns, &shared.stop)?);
            shared.turns[self.number].advance(made);
            progress.advance(1)?;
        }
        drop(sql);
        let pages = self.connection.pages_written(false);
        let mut gathered = shared.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.late_ns.append(&mut late_ns);
        gathered.pages = gathered.pages.zip(pages).map(|(all, own)| all + own);
        drop(gathered);
        self.wait_for_all();
        guard.is_well = true;
        Ok(times_ns)
    }

    fn finish(self) -> Result<(), Refusal> {
        if self.shared.leaves_open {
            std::mem::forget(self.connection);
            return Ok(());
        }
        let Self { shared, number, connection } = self;
        let mut guard = StopOthers { stop: &shared.stop, is_well: false };
        let place = shared.closes.iter().position(|closed| *closed as usize == number);
        let before = place.unwrap_or(shared.closes.len());
        let made = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let is_turn = shared.closed.wait(made(before), &shared.stop);
        let began_ns = clock::shared_ns();
        connection.close()?;
        if let Some(place) = place.filter(|_| is_turn) {
            let took_ns = clock::shared_ns() - began_ns;
            shared.gathered.lock().unwrap_or_else(PoisonError::into_inner).closes_ns.push(took_ns);
            if place + 1 == shared.closes.len() {
                shared.take_figures();
            }
            shared.closed.advance(made(place + 1));
        }
        guard.is_well = true;
        Ok(())
    }
}

/// Waits for a time; not to its end where a thread failed.
fn pause(at_ns: u64, stop: &AtomicBool) {
    loop {
        let now_ns = clock::shared_ns();
        if now_ns >= at_ns || stop.load(Ordering::Relaxed) {
            return;
        }
        match at_ns - now_ns {
            left_ns if left_ns > LOOK_NS => {
                clock::pause(Duration::from_nanos((left_ns - LOOK_NS / 2).min(SLEEP_NS)));
            }
            _ => std::hint::spin_loop(),
        }
    }
}

/// A database's statements, compiled once.
struct DatabaseSql<'connection> {
    schema: String,
    update: Statement<'connection>,
    insert: Statement<'connection>,
    values: Values,
}

/// A connection's.
struct Sql<'connection> {
    connection: &'connection Connection<'connection>,
    begin: Statement<'connection>,
    commit: Statement<'connection>,
    databases: Vec<DatabaseSql<'connection>>,
    /// The last value of `PRAGMA user_version`.
    user_version: u32,
}

impl<'connection> Sql<'connection> {
    fn new(
        connection: &'connection Connection<'connection>,
        shared: &SharedReplay<'_>,
        databases: &[u32],
        seed: u64,
    ) -> Result<Self, SqliteError> {
        // BEGIN IMMEDIATE locks each attached database, written to or not.
        let begin = if databases.len() == 1 { "BEGIN IMMEDIATE" } else { "BEGIN" };
        let of = |(place, database): (usize, &u32)| {
            let schema = schema(place);
            let page_bytes = shared.plan.databases[*database as usize].page_bytes;
            Ok(DatabaseSql {
                update: connection.prepare(&format!("UPDATE {schema}.p SET b=?1 WHERE id=?2"))?,
                insert: connection.prepare(&format!("INSERT INTO {schema}.p(b) VALUES(?1)"))?,
                values: Values::new(page_bytes, seed * 16 + place as u64 + 1),
                schema,
            })
        };
        let databases = databases.iter().enumerate().map(of).collect::<Result<_, SqliteError>>()?;
        // Far from those of other connections, so that no two set the same.
        let user_version = u32::try_from(seed % 512).unwrap_or(0) << 22;
        let (begin, commit) = (connection.prepare(begin)?, connection.prepare("COMMIT")?);
        Ok(Self { connection, begin, commit, databases, user_version })
    }

    /// Makes a commit, and says how long it took without the pause under the lock.
    fn commit(
        &mut self,
        commit: &PlannedCommit,
        hold_ns: u64,
        stop: &AtomicBool,
    ) -> Result<u64, SqliteError> {
        let began_ns = clock::shared_ns();
        self.begin.run()?;
        let mut paused_ns = 0;
        if hold_ns > 0 {
            let from_ns = clock::shared_ns();
            pause(from_ns + hold_ns, stop);
            paused_ns = clock::shared_ns() - from_ns;
        }
        for part in &commit.parts {
            self.part(part)?;
        }
        self.commit.run()?;
        Ok(clock::shared_ns().saturating_sub(began_ns + paused_ns))
    }

    fn part(&mut self, part: &PlannedPart) -> Result<(), SqliteError> {
        let sql = &mut self.databases[part.database as usize];
        for row in &part.updates {
            sql.update.bind_text(1, sql.values.next())?;
            sql.update.bind_number(2, i64::from(*row))?;
            sql.update.run()?;
        }
        for _ in 0..part.inserts {
            sql.insert.bind_text(1, sql.values.next())?;
            sql.insert.run()?;
        }
        if part.sets_page_one {
            self.user_version += 1;
            let (schema, version) = (&sql.schema, self.user_version);
            self.connection.run(&format!("PRAGMA {schema}.user_version={version}"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
