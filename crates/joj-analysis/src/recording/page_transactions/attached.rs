//! Commits over several databases, with ATTACH.
//!
//! ```text
//! one COMMIT     a: lock  b: lock   a: pages, sync  b: pages, sync   a: end  b: end       end: of the journal, or the unlock
//! two of them    a: lock  b: lock   a: pages, sync  a: end   b: pages, sync  b: end
//! two of them    a: lock  a: pages, sync   b: lock  b: pages, sync   a: end  b: end
//! exclusive      a: pages, sync  b: pages, sync                                           with a log: one or two
//! ```
//!
//! SQLite writes the pages of all databases, and then ends all of them (vdbeaux.c, vdbeCommit). So parts of one commit have all begun
//! before the last write of each, and end after it. In exclusive locking mode a lock is given back when the connection closes, and so
//! without a journal nothing shows the end. Then another call of the thread in between shows that there were two; where there is none they
//! count as two, and the result says how many there may be less.

use std::collections::HashMap;

use crate::recording::page_transactions::RecordedCommit;

/// What is known of where a transaction begins and ends, as places in the order of calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct CommitBounds {
    /// The lock, or the journal's creation: what comes before the program's COMMIT.
    pub opened: Option<usize>,
    /// The last write of pages or frames, and its thread.
    pub last_write: usize,
    pub thread: u32,
    /// The thread's last call before that which none makes that is in a COMMIT.
    pub outside_before: usize,
    /// The journal's end, or the unlock.
    pub over: Option<CommitEnd>,
}

/// The end of a transaction.
#[derive(Debug, Clone, Copy)]
pub struct CommitEnd {
    place: usize,
    /// The thread's last call before that which none makes that is in a COMMIT.
    outside_before: usize,
    /// It is the unlock of a database, which in exclusive locking mode comes when the connection closes.
    may_be_close: bool,
}

/// What two transactions of a thread on two databases are; the one that wrote last is the later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    OneCommit,
    TwoCommits,
    NotTold,
}

impl CommitBounds {
    /// A write of pages or frames by a thread that was outside a COMMIT at `outside`.
    pub fn wrote(&mut self, place: usize, thread: u32, outside: usize) {
        (self.last_write, self.thread, self.outside_before) = (place, thread, outside);
    }

    /// Its journal's end, or its unlock.
    pub fn end(&mut self, place: usize, outside_before: usize, may_be_close: bool) {
        self.over.get_or_insert(CommitEnd { place, outside_before, may_be_close });
    }

    fn relation(&self, later: &Self) -> Relation {
        let is_two = self.over.is_some_and(|over| over.place < later.last_write)
            || later.opened.is_some_and(|opened| opened > self.last_write)
            || later.outside_before > self.last_write;
        match self.over {
            _ if is_two => Relation::TwoCommits,
            // The later one was written between the earlier one's last write and its end.
            Some(over) if !over.may_be_close => Relation::OneCommit,
            // Unlocks of one commit follow each other; of connections that close each is followed by a close.
            Some(over) if later.over.is_some_and(|end| end.outside_before < over.place) => {
                Relation::OneCommit
            }
            _ => Relation::NotTold,
        }
    }
}

/// Commits, and what is not told of them.
#[derive(Debug, Default)]
pub struct Joined {
    pub commits: Vec<RecordedCommit>,
    /// So many of them may be parts of others.
    pub may_be_parts: u64,
}

/// Commits of one thread at the same time, on databases that differ.
#[derive(Debug, Default)]
struct CommitGroup {
    bounds: Vec<CommitBounds>,
    databases: Vec<usize>,
}

impl CommitGroup {
    fn relation(&self, bounds: &CommitBounds, database: usize) -> Relation {
        let mut relations = self.bounds.iter().map(|before| before.relation(bounds));
        let is_known = self.databases.contains(&database);
        if is_known || relations.clone().any(|relation| relation == Relation::TwoCommits) {
            Relation::TwoCommits
        } else if relations.any(|relation| relation == Relation::OneCommit) {
            Relation::OneCommit
        } else {
            Relation::NotTold
        }
    }

    fn take(&mut self, bounds: CommitBounds, database: usize) {
        self.bounds.push(bounds);
        self.databases.push(database);
    }
}

/// What is known of a thread's last commit.
#[derive(Debug, Default)]
struct LastOfThread {
    /// Its place among those that are joined.
    place: usize,
    commit: CommitGroup,
    /// That commit and those before that may be one with it.
    may_be_one: CommitGroup,
}

/// Joins the commits of a thread to several databases that are one.
pub fn join(mut commits: Vec<(RecordedCommit, CommitBounds)>) -> Joined {
    commits.sort_by_key(|(_, bounds)| bounds.last_write);
    let mut joined = Joined::default();
    let mut threads: HashMap<u32, LastOfThread> = HashMap::new();
    for (commit, bounds) in commits {
        let database = commit.parts[0].database;
        let last = threads.entry(bounds.thread).or_default();
        match last.commit.relation(&bounds, database) {
            Relation::OneCommit => {
                last.commit.take(bounds, database);
                last.may_be_one.take(bounds, database);
                joined.commits[last.place].take_parts(commit);
                continue;
            }
            Relation::NotTold
                if !last.commit.bounds.is_empty()
                    && last.may_be_one.relation(&bounds, database) == Relation::NotTold =>
            {
                joined.may_be_parts += 1;
            }
            _ => last.may_be_one = CommitGroup::default(),
        }
        last.commit = CommitGroup::default();
        last.commit.take(bounds, database);
        last.may_be_one.take(bounds, database);
        last.place = joined.commits.len();
        joined.commits.push(commit);
    }
    joined.commits.sort_by_key(|commit| commit.begin_ns);
    joined
}

impl RecordedCommit {
    /// Takes what another thread's or database's part of it did.
    fn take_parts(&mut self, part: Self) {
        if part.begin_ns < self.begin_ns {
            (self.process, self.thread, self.begin_ns) = (part.process, part.thread, part.begin_ns);
        }
        self.end_ns = self.end_ns.max(part.end_ns);
        self.write_ns = self.write_ns.min(part.write_ns);
        self.syncs.add(&part.syncs);
        self.written_bytes += part.written_bytes;
        self.parts.extend(part.parts);
    }
}
