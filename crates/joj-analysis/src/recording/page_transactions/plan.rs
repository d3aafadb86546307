//! What a replay does for each recorded commit, in a database that is made for it: no data of the program's is needed.
//!
//! ```text
//! recorded   page 1   page 2     page 3     ...   page n
//! made       page 1   row 1      row 2      ...   row n-1      one table, each row fills a leaf; and interior pages between them
//! ```
//!
//! - Page k is row k-1. The made database has as many leaves as the recorded one has pages apart from page 1, and besides the interior
//!   pages of its table: one where it has two rows or more, and one more for each 500 or so rows of 4 KiB. So leaves lie some
//!   pages further back than recorded. (Pages that appear without being written, because the program freed them in the
//!   commit that made them or because the recording does not tell, are there from the begin, in front of those that are new.)
//! - A page written is an `UPDATE` of its row, which writes that leaf alone.
//! - A page that is new is an `INSERT` of the next row, which writes the last interior page, too. A program's table grew in the same
//!   way. So the lowest other page of such a commit is left out; where there is none the commit has one page more than recorded.
//! - Page 1 is written by every commit in a rollback mode, and with a log where the database grows. Where it changed for another
//!   reason the commit sets `PRAGMA user_version`.
//! - A database never shrinks: pages that the program gave back to the filesystem stay.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::recording::page_transactions::{CommitPart, PageOne, PageTransactions, RecordedCommit};

/// SQLITE_MAX_ATTACHED is 10, and the connection's own database.
const DATABASES_MAX: usize = 11;

/// Why a replay cannot make the commits.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransactionPlanError {
    /// One connection with too many databases.
    #[error(
        "a connection of process {process} committed to {databases} databases at once; SQLite attaches 10 to one, so this \
         recording cannot be replayed as page transactions"
    )]
    TooManyDatabases {
        /// The process.
        process: u32,
        /// How many databases.
        databases: usize,
    },
}

/// A database that is made before the replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedDatabase {
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Rows at the begin, one at least.
    pub rows: u32,
}

/// So many commits of another connection have to be over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitWait {
    /// The connection, by its place in [`TransactionPlan::connections`].
    pub connection: u32,
    /// How many of its commits.
    pub commits: u32,
}

/// What a commit does to one database.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedPart {
    /// The database, by its place in its connection's list.
    pub database: u32,
    /// Rows that get other bytes; the first row is 1.
    pub updates: Vec<u32>,
    /// Rows that are new, behind the last.
    pub inserts: u32,
    /// Set `PRAGMA user_version`.
    pub sets_page_one: bool,
}

/// One commit of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedCommit {
    /// Its connection, by its place in [`TransactionPlan::connections`].
    pub connection: u32,
    /// What has to be over before, besides the commits of its own connection.
    pub waits: Vec<CommitWait>,
    /// When it began in the recording.
    pub begin_ns: u64,
    /// When the last of those that it waits for ended in the recording; 0 where it waits for none.
    pub ready_ns: u64,
    /// How long the program held the lock before it wrote.
    pub hold_ns: u64,
    /// What it does.
    pub parts: Vec<PlannedPart>,
}

/// A replay's databases, connections and commits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TransactionPlan {
    /// The databases.
    pub databases: Vec<PlannedDatabase>,
    /// Of each connection, which has a thread of its own, the databases: the first is its own, the others are attached.
    pub connections: Vec<Vec<u32>>,
    /// The commits, in the order in which they began.
    pub commits: Vec<PlannedCommit>,
    /// Commits that grow a database and have no page that could stand for the parent of the new ones.
    pub parents_added: u64,
    /// Commits that make a database smaller, which no replay does.
    pub shrinks_left_out: u64,
}

impl TransactionPlan {
    /// Bytes that the databases have at the end, without interior pages.
    pub fn database_bytes(&self) -> u64 {
        let made =
            self.databases.iter().map(|database| u64::from(database.rows) * u64::from(database.page_bytes));
        let parts = self.commits.iter().flat_map(|commit| {
            let databases = &self.connections[commit.connection as usize];
            commit
                .parts
                .iter()
                .map(|part| (part, &self.databases[databases[part.database as usize] as usize]))
        });
        let added = parts.map(|(part, database)| u64::from(part.inserts) * u64::from(database.page_bytes));
        made.chain(added).sum()
    }

    /// Plans the replay of these commits. Each waits for those before it on its databases and of its thread; the first of a thread for all
    /// that were over when it began.
    /// # Errors
    /// [`TransactionPlanError`]
    pub fn of(recorded: &PageTransactions) -> Result<Self, TransactionPlanError> {
        Self::planned(recorded, false)
    }

    /// The same, but each commit waits for all that were over when it began. So only those that overlapped in the recording may overlap
    /// without the program's think time, too.
    /// # Errors
    /// [`TransactionPlanError`]
    pub fn overlapping_as_recorded(recorded: &PageTransactions) -> Result<Self, TransactionPlanError> {
        Self::planned(recorded, true)
    }

    /// `waits_for_all`: each commit waits for all that were over, and not only the first of a thread.
    fn planned(recorded: &PageTransactions, waits_for_all: bool) -> Result<Self, TransactionPlanError> {
        let (connections, of_commit) = connections(recorded)?;
        let mut rows = Rows::of(recorded);
        let databases = recorded.databases.iter().zip(&rows.databases);
        let databases = databases
            .map(|(database, rows)| PlannedDatabase { page_bytes: database.page_bytes, rows: rows.made })
            .collect();
        let mut plan = Self { databases, connections, ..Self::default() };
        let mut order = CommitOrder::of(plan.connections.len());
        for (commit, connection) in recorded.commits.iter().zip(of_commit) {
            let own = &plan.connections[connection];
            let parts = commit.parts.iter().map(|part| {
                let at = own.iter().position(|database| *database as usize == part.database);
                rows.part(part, u32::try_from(at.unwrap_or(0)).unwrap_or(0))
            });
            let parts = parts.collect();
            let (waits, ready_ns) = order.take(commit, connection, waits_for_all);
            plan.commits.push(PlannedCommit {
                connection: number(connection),
                waits,
                begin_ns: commit.begin_ns,
                ready_ns,
                hold_ns: commit.write_ns.saturating_sub(commit.begin_ns),
                parts,
            });
        }
        (plan.parents_added, plan.shrinks_left_out) = (rows.parents_added, rows.shrinks);
        Ok(plan)
    }
}

fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// The rows of each database as the commits go by.
struct Rows {
    databases: Vec<DatabaseRows>,
    parents_added: u64,
    shrinks: u64,
}

/// Those of one database. A page that is there from the begin has the row that its place among such pages gives it.
#[derive(Default)]
struct DatabaseRows {
    /// The last page.
    last: u32,
    /// Pages that commits add, ascending.
    new: Vec<u32>,
    /// Of those that were added the rows.
    added: HashMap<u32, u32>,
    /// Rows that are made before the replay.
    made: u32,
    /// Rows so far.
    now: u32,
    /// Where the next commit's rows begin whose pages are not known.
    next: u32,
}

impl Rows {
    /// At the begin a row for each page that is there, or that appears without being written; as many as the largest commit of unknown
    /// pages needs.
    fn of(recorded: &PageTransactions) -> Self {
        let mut new: Vec<BTreeSet<u32>> = vec![BTreeSet::new(); recorded.databases.len()];
        let mut last: Vec<u32> = recorded.databases.iter().map(|database| database.pages_before).collect();
        for part in recorded.parts() {
            let at = part.database;
            // After a database was made smaller, pages that it had are not new.
            new[at].extend(part.new_pages().filter(|page| *page > last[at]));
            last[at] = last[at].max(part.pages_after).max(part.pages_before);
            if !part.pages_known {
                last[at] = last[at].max(u32::try_from(part.frames).unwrap_or(u32::MAX).saturating_add(1));
            }
        }
        let databases = new.iter().zip(last).map(|(new, last)| {
            let made = last.saturating_sub(1).saturating_sub(number(new.len())).max(1);
            let new = new.iter().copied().collect();
            DatabaseRows { last, new, made, now: made, ..DatabaseRows::default() }
        });
        Self { databases: databases.collect(), parents_added: 0, shrinks: 0 }
    }

    fn part(&mut self, part: &CommitPart, database: u32) -> PlannedPart {
        let rows = &mut self.databases[part.database];
        if !part.pages_known {
            return PlannedPart { database, updates: rows.unknown(part), inserts: 0, sets_page_one: false };
        }
        let mut updates: Vec<u32> = part.pages.iter().filter_map(|page| rows.of_page(*page)).collect();
        let inserts = rows.add(part.new_pages());
        if inserts > 0 {
            if updates.is_empty() {
                self.parents_added += 1;
            } else {
                updates.remove(0);
            }
        }
        self.shrinks += u64::from(part.pages_after < part.pages_before);
        let changes_nothing = updates.is_empty() && inserts == 0;
        let sets_page_one = (part.page_one == PageOne::Changed && inserts == 0) || changes_nothing;
        PlannedPart { database, updates, inserts, sets_page_one }
    }
}

impl DatabaseRows {
    /// The row of a page; `None` of page 1, and of one that is not there yet.
    fn of_page(&self, page: u32) -> Option<u32> {
        match self.new.binary_search(&page) {
            Ok(_) => self.added.get(&page).copied(),
            Err(new_before) if (2..=self.last).contains(&page) => Some(page - 1 - number(new_before)),
            Err(_) => None,
        }
    }

    /// Gives each of these pages a row, and says how many had none: one that was given back and is new again has its row still.
    fn add(&mut self, pages: impl Iterator<Item = u32>) -> u32 {
        let before = self.now;
        for page in pages.filter(|page| self.new.binary_search(page).is_ok()) {
            self.added.entry(page).or_insert_with(|| {
                self.now += 1;
                self.now
            });
        }
        self.now - before
    }

    /// As many rows as there were frames, one behind the other, from where the last such commit ended.
    fn unknown(&mut self, part: &CommitPart) -> Vec<u32> {
        let mut rows: BTreeSet<u32> = BTreeSet::new();
        for _ in 0..part.frames {
            rows.insert(self.next + 1);
            self.next = (self.next + 1) % self.now;
        }
        rows.into_iter().collect()
    }
}

/// Which commits each waits for.
struct CommitOrder {
    /// Of each connection when its commits ended, ascending.
    ends: Vec<Vec<u64>>,
    /// Of each connection how many commits of each other one it has waited for.
    waited: Vec<HashMap<usize, u32>>,
    /// By database its last commit.
    last: HashMap<usize, MadeCommit>,
    /// By thread its last commit.
    threads: HashMap<u32, MadeCommit>,
}

/// The place of a commit among those of its connection, from 1.
#[derive(Clone, Copy)]
struct MadeCommit {
    connection: usize,
    count: usize,
}

impl CommitOrder {
    fn of(connections: usize) -> Self {
        let (ends, waited) = (vec![Vec::new(); connections], vec![HashMap::new(); connections]);
        Self { ends, waited, last: HashMap::new(), threads: HashMap::new() }
    }

    /// What the next commit waits for, and when the last of these and of its connection's ended.
    fn take(
        &mut self,
        commit: &RecordedCommit,
        connection: usize,
        waits_for_all: bool,
    ) -> (Vec<CommitWait>, u64) {
        let own_end_ns = self.ends[connection].last().copied().unwrap_or(0);
        let made = MadeCommit { connection, count: self.ends[connection].len() + 1 };
        let of_thread = self.threads.insert(commit.thread, made);
        let on_databases = commit.parts.iter().filter_map(|part| self.last.insert(part.database, made));
        let mut before: Vec<MadeCommit> = on_databases.chain(of_thread).collect();
        if waits_for_all || of_thread.is_none() {
            before.extend(self.ends.iter().enumerate().map(|(connection, ends)| {
                let count = ends.partition_point(|end_ns| *end_ns <= commit.begin_ns);
                MadeCommit { connection, count }
            }));
        }
        before.retain(|other| other.connection != connection && other.count > 0);
        let ready_ns = before.iter().map(|other| self.ends[other.connection][other.count - 1]);
        let ready_ns = ready_ns.fold(own_end_ns, u64::max);
        self.ends[connection].push(commit.end_ns.max(own_end_ns));
        let mut waits: BTreeMap<usize, u32> = BTreeMap::new();
        for other in before {
            let known = self.waited[connection].entry(other.connection).or_default();
            if number(other.count) > *known {
                *known = number(other.count);
                waits.insert(other.connection, *known);
            }
        }
        let waits =
            waits.into_iter().map(|(other, commits)| CommitWait { connection: number(other), commits });
        (waits.collect(), ready_ns)
    }
}

/// Recorded connections that committed together, and when they did.
struct Group {
    databases: BTreeSet<usize>,
    process: u32,
    last_end_ns: u64,
    /// Its place among the connections of the replay.
    connection: Option<usize>,
}

/// The connections of a replay, and which of them makes each commit. A recorded connection keeps its own from its first commit to its
/// last; after that another recorded one with the same databases may have it. Connections that a commit joins are one.
fn connections(recorded: &PageTransactions) -> Result<(Vec<Vec<u32>>, Vec<usize>), TransactionPlanError> {
    let mut group_of: HashMap<(u32, usize, u32), usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    let key = |commit: &RecordedCommit, part: &CommitPart| (commit.process, part.database, part.description);
    for commit in &recorded.commits {
        let keys: Vec<_> = commit.parts.iter().map(|part| key(commit, part)).collect();
        let known = keys.iter().find_map(|key| group_of.get(key).copied());
        let group = known.unwrap_or_else(|| {
            let process = commit.process;
            groups.push(Group { databases: BTreeSet::new(), process, last_end_ns: 0, connection: None });
            groups.len() - 1
        });
        for key in keys {
            let before = group_of.insert(key, group).filter(|before| *before != group);
            groups[group].databases.insert(key.1);
            if let Some(before) = before {
                let moved = std::mem::take(&mut groups[before].databases);
                groups[group].databases.extend(moved);
                group_of.values_mut().filter(|at| **at == before).for_each(|at| *at = group);
            }
        }
    }
    let too_many = groups.iter().find(|group| group.databases.len() > DATABASES_MAX);
    if let Some(Group { process, databases, .. }) = too_many {
        return Err(TransactionPlanError::TooManyDatabases { process: *process, databases: databases.len() });
    }
    let group_at = |commit: &RecordedCommit| group_of[&key(commit, &commit.parts[0])];
    for commit in &recorded.commits {
        let group = &mut groups[group_at(commit)];
        group.last_end_ns = group.last_end_ns.max(commit.end_ns);
    }
    // Of each connection its databases, and when its recorded one is over.
    let mut made: Vec<(BTreeSet<usize>, u64)> = Vec::new();
    let mut of_commit = Vec::new();
    for commit in &recorded.commits {
        let group = &mut groups[group_at(commit)];
        let connection = group.connection.unwrap_or_else(|| {
            let free = made
                .iter()
                .position(|(databases, end_ns)| *databases == group.databases && *end_ns <= commit.begin_ns);
            free.unwrap_or_else(|| {
                made.push((group.databases.clone(), 0));
                made.len() - 1
            })
        });
        group.connection = Some(connection);
        made[connection].1 = group.last_end_ns;
        of_commit.push(connection);
    }
    let lists = made.into_iter().map(|(databases, _)| databases.into_iter().map(number).collect());
    Ok((lists.collect(), of_commit))
}
