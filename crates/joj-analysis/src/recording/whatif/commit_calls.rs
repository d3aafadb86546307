//! Which calls of a recording belong to its commits: a replay through SQLite makes the commits instead of them.
//!
//! ```text
//! recorded   read(a) | pwrite(db-journal) fsync pwrite(db) fsync unlink | read(a)
//! rest       read(a) |                                                  | read(a)
//! SQLite             |  one commit, in another journal mode             |
//! ```
//!
//! To a commit belongs what its thread does to the files of databases from its first write to its end. Besides, wherever they are, all
//! calls that change these files or make them durable: those of checkpoints.
//!
//! Where the program closed a connection behind its last commit, SQLite closes it there, too: the last one copies the log to the database.
//! Connections are open from the first commit on. So other closes that would copy a log are not made; they are counted.

use std::collections::{HashMap, HashSet};

use crate::recording::Recording;
use crate::recording::call::{CallKind, RecordedCall};
use crate::recording::page_transactions::database_files::{DatabaseFiles, FileRole};
use crate::recording::page_transactions::plan::TransactionPlan;
use crate::recording::page_transactions::{CommitPart, PageTransactions, RecordedCommit};

/// The calls of all commits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommitCalls {
    /// Of each call whether SQLite makes it instead.
    pub is_replaced: Vec<bool>,
    /// How much of the time before each call is SQLite's, and not the program's, in nanoseconds.
    pub sqlite_ns: Vec<u64>,
    /// Of each commit the call in whose place it stands; `None` where nothing of it is in the recording.
    begins: Vec<Option<usize>>,
    /// Of each connection of the plan that the program closed behind its last commit: the call that did it, and the connection. In the
    /// order of the calls.
    closes: Vec<(usize, u32)>,
    /// Closes that are not made.
    pub left_out: ClosesLeftOut,
}

/// Closes that are not made: no other connection had the database open then, there were commits since the last such close, and later ones
/// come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClosesLeftOut {
    /// How many.
    pub closes: u64,
    /// True where a database has one for ten commits to it, or more.
    pub are_many: bool,
}

/// With a log such a close takes as long as several commits: where there are more commits for each, it matters little.
const COMMITS_OF_CLOSE: u64 = 10;

impl CommitCalls {
    /// Those of a recording with these commits, which are planned so.
    pub fn of(recording: &Recording, found: &PageTransactions, plan: &TransactionPlan) -> Self {
        let files = DatabaseFiles::find(recording);
        let mut by_thread: HashMap<u32, Vec<usize>> = HashMap::new();
        for (index, commit) in found.commits.iter().enumerate() {
            by_thread.entry(commit.thread).or_default().push(index);
        }
        let calls = recording.calls.len();
        let mut all = Self {
            is_replaced: vec![false; calls],
            sqlite_ns: vec![0; calls],
            begins: vec![None; found.commits.len()],
            closes: closes(recording, found, plan),
            left_out: closes_left_out(recording, found, &files),
        };
        let mut left_ns: Vec<u64> = found.commits.iter().map(sqlites).collect();
        let mut last_ns: HashMap<u32, u64> = HashMap::new();
        for (index, call) in recording.calls.iter().enumerate().filter(|(_, call)| is_made(call.kind)) {
            let since_ns = last_ns.insert(call.thread, call.end_ns()).unwrap_or(call.begin_ns);
            let role = files.of_description(call.description).or_else(|| files.of_path(call.path));
            let role = role.map(|(role, _)| role);
            let own = by_thread.get(&call.thread).map_or(&[][..], Vec::as_slice);
            let begun = own.partition_point(|commit| found.commits[*commit].write_ns <= call.begin_ns);
            let last = begun.checked_sub(1).map(|last| own[last]);
            let commit = last.filter(|commit| call.begin_ns <= found.commits[*commit].end_ns);
            all.is_replaced[index] = role.is_some_and(|role| commit.is_some() || is_change(call, role));
            let Some(commit) = commit else { continue };
            if all.begins[commit].is_none() {
                all.begins[commit] = Some(index);
            } else {
                all.sqlite_ns[index] = call.begin_ns.saturating_sub(since_ns).min(left_ns[commit]);
                left_ns[commit] -= all.sqlite_ns[index];
            }
        }
        all
    }

    /// The connections that are closed, in this order; the others stay open.
    pub fn closed_connections(&self) -> Vec<u32> {
        self.closes.iter().map(|(_, connection)| *connection).collect()
    }

    /// The durations of all calls, where these are those of the rest, of the commits, and of the closes of
    /// [`CommitCalls::closed_connections`].
    pub fn durations_ns(&self, rest_ns: &[u64], commits_ns: &[u64], closes_ns: &[u64]) -> Vec<u64> {
        let rest = rest_ns.iter().zip(&self.is_replaced);
        let mut durations_ns: Vec<u64> =
            rest.map(|(time_ns, is_replaced)| if *is_replaced { 0 } else { *time_ns }).collect();
        for (begin, time_ns) in self.begins.iter().zip(commits_ns) {
            if let Some(begin) = begin {
                durations_ns[*begin] += time_ns;
            }
        }
        for ((call, _), time_ns) in self.closes.iter().zip(closes_ns) {
            durations_ns[*call] = *time_ns;
        }
        durations_ns
    }
}

/// So long SQLite computes for a page of a transaction, in nanoseconds; a replay has that in its commit. What the recording has more
/// between the calls of a transaction is the program's, between two statements or in one that computes.
const SQLITE_NS_OF_PAGE: u64 = 20_000;

/// How long SQLite computes in a commit: for its pages, and as much as for one page before and after them.
fn sqlites(commit: &RecordedCommit) -> u64 {
    (1 + commit.parts.iter().map(CommitPart::page_count).sum::<u64>()).saturating_mul(SQLITE_NS_OF_PAGE)
}

/// The times of commits in the order of the plan, from those that a replay gives: one connection after the other.
pub fn in_order(plan: &TransactionPlan, times_ns: &[u64]) -> Vec<u64> {
    let mut next = vec![0; plan.connections.len() + 1];
    for commit in &plan.commits {
        next[commit.connection as usize + 1] += 1;
    }
    for connection in 1..next.len() {
        next[connection] += next[connection - 1];
    }
    let mut time_ns = |connection: u32| {
        let place = &mut next[connection as usize];
        *place += 1;
        times_ns.get(*place - 1).copied().unwrap_or(0)
    };
    plan.commits.iter().map(|commit| time_ns(commit.connection)).collect()
}

/// Of each connection the first close of its file behind its last commit, where there is one: a program may end without.
fn closes(recording: &Recording, found: &PageTransactions, plan: &TransactionPlan) -> Vec<(usize, u32)> {
    let close_behind = |commit: &RecordedCommit| {
        let first = recording.calls.partition_point(|call| call.begin_ns < commit.end_ns);
        let is_close = |call: &RecordedCall| {
            let closes = call.kind == CallKind::Close && call.result == 0 && !call.leaves_open();
            closes && call.process == commit.process && call.description == commit.parts[0].description
        };
        (first..recording.calls.len()).find(|index| is_close(&recording.calls[*index]))
    };
    let last_commit = |connection: u32| {
        let own = plan.commits.iter().rposition(|commit| commit.connection == connection)?;
        found.commits.get(own)
    };
    let connections = (0..).zip(&plan.connections).map(|(connection, _)| connection);
    let mut closes: Vec<(usize, u32)> = connections
        .filter_map(|connection| Some((close_behind(last_commit(connection)?)?, connection)))
        .collect();
    closes.sort_unstable();
    closes
}

/// How often a program closes a database that nobody else has open, between commits to it: then SQLite copies its log, and removes it.
fn closes_left_out(recording: &Recording, found: &PageTransactions, files: &DatabaseFiles) -> ClosesLeftOut {
    let mut commit_ends_ns: HashMap<usize, Vec<u64>> = HashMap::new();
    for commit in &found.commits {
        let databases = commit.parts.iter().filter_map(|part| files.of_description(part.description));
        databases.for_each(|(_, database)| commit_ends_ns.entry(database).or_default().push(commit.end_ns));
    }
    commit_ends_ns.values_mut().for_each(|ends_ns| ends_ns.sort_unstable());
    let (mut open, mut copied) = (HashMap::new(), HashMap::new());
    let mut left_out: HashMap<usize, u64> = HashMap::new();
    for call in recording.calls.iter().filter(|call| !files.is_stranger(call.description)) {
        let Some((FileRole::Database, database)) = files.of_description(call.description) else { continue };
        let connections: &mut HashSet<u32> = open.entry(database).or_default();
        match call.kind {
            CallKind::Open | CallKind::Held if call.result >= 0 => {
                connections.insert(call.description);
            }
            CallKind::Close | CallKind::Released if !call.stays_open() => {
                let is_last = connections.remove(&call.description) && connections.is_empty();
                let ends_ns = commit_ends_ns.get(&database).map_or(&[][..], Vec::as_slice);
                let before = ends_ns.partition_point(|end_ns| *end_ns <= call.begin_ns);
                let copied: &mut usize = copied.entry(database).or_default();
                // A process that ends without a close leaves its log.
                if is_last && call.kind == CallKind::Close && *copied < before {
                    *left_out.entry(database).or_default() += u64::from(before < ends_ns.len());
                    *copied = before;
                }
            }
            _ => {}
        }
    }
    let is_often = |(database, closes): (&usize, &u64)| {
        let commits = commit_ends_ns.get(database).map_or(0, Vec::len) as u64;
        *closes > 0 && closes.saturating_mul(COMMITS_OF_CLOSE) >= commits
    };
    ClosesLeftOut { closes: left_out.values().sum(), are_many: left_out.iter().any(is_often) }
}

fn is_made(kind: CallKind) -> bool {
    !kind.is_no_call()
}

/// True for calls that change a file of a database, or make it durable. Its directory is others', too.
fn is_change(call: &RecordedCall, role: FileRole) -> bool {
    use CallKind::{Fallocate, Ftruncate, Truncate, Unlink};
    let changes = call.kind.is_write() || matches!(call.kind, Ftruncate | Truncate | Fallocate | Unlink);
    role != FileRole::Directory && (changes || call.kind.is_sync())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::flags::{O_CREAT, O_RDWR};
    use crate::recording::page_transactions::derive::derive;
    use crate::recording::page_transactions::plan::PlannedCommit;

    /// Each call takes 10 ns and begins 100 ns after the one before.
    fn recording(calls: &[(CallKind, u32, &str, u64)]) -> Recording {
        let mut recording = Recording::default();
        for (number, (kind, description, path, bytes)) in (0..).zip(calls) {
            let result = if kind.is_write() { bytes.cast_signed() } else { 0 };
            recording.calls.push(RecordedCall {
                begin_ns: number * 100,
                duration_ns: 10,
                kind: *kind,
                process: 1,
                thread: 1,
                description: *description,
                path: recording.texts.keep(path),
                bytes: *bytes,
                result,
                flags: if *kind == CallKind::Open { O_RDWR | O_CREAT } else { 0 },
                ..RecordedCall::default()
            });
        }
        recording
    }

    fn of(recording: &Recording) -> (PageTransactions, CommitCalls) {
        let found = derive(recording).unwrap();
        let calls = CommitCalls::of(recording, &found, &TransactionPlan::of(&found).unwrap());
        (found, calls)
    }

    use CallKind::{Close, Fdatasync, Open, Pread, Pwrite, Unlink};

    const CALLS: [(CallKind, u32, &str, u64); 13] = [
        (Open, 1, "/d/a.db", 0),
        (Open, 2, "/d/other", 0),
        (Pwrite, 2, "", 10),
        (Fdatasync, 2, "", 0),
        (Open, 3, "/d/a.db-journal", 0),
        (Pwrite, 3, "", 512),
        (Fdatasync, 3, "", 0),
        (Pwrite, 1, "", 4096),
        (Fdatasync, 1, "", 0),
        (Close, 3, "", 0),
        (Unlink, 0, "/d/a.db-journal", 0),
        (Pread, 1, "", 4096),
        (Fdatasync, 2, "", 0),
    ];

    #[test]
    fn a_commit_takes_its_calls_and_the_time_between_them() {
        let recording = recording(&CALLS);
        let (found, calls) = of(&recording);
        assert_eq!(found.commits.len(), 1);
        let replaced: Vec<usize> = (0..CALLS.len()).filter(|call| calls.is_replaced[*call]).collect();
        assert_eq!(replaced, [4, 5, 6, 7, 8, 9, 10]);
        // Each begins 90 ns behind the one before.
        let sqlites: Vec<usize> = (0..CALLS.len()).filter(|call| calls.sqlite_ns[*call] == 90).collect();
        assert_eq!(sqlites, [5, 6, 7, 8, 9, 10]);
        // The program sleeps within its transaction: of that a page and the rest of a commit are SQLite's.
        let mut slept = recording.clone();
        slept.calls[6..].iter_mut().for_each(|call| call.begin_ns += 1_000_000);
        let (_, slept) = of(&slept);
        assert_eq!(slept.sqlite_ns[4..], [0, 90, 2 * SQLITE_NS_OF_PAGE - 90, 0, 0, 0, 0, 0, 0]);
        let durations_ns = calls.durations_ns(&[1; 13], &[50], &[]);
        assert_eq!(durations_ns, [1, 1, 1, 1, 50, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(calls.closed_connections(), [0; 0], "the program ends with its connection open");
        assert_eq!(calls.left_out.closes, 0);
    }

    #[test]
    fn a_close_is_left_out_where_commits_come_before_and_after_and_nobody_has_the_database_open() {
        let commit = |connection: u32, journal: u32| {
            [
                (Open, journal, "/d/a.db-journal", 0),
                (Pwrite, journal, "", 512),
                (Fdatasync, journal, "", 0),
                (Pwrite, connection, "", 4096),
                (Fdatasync, connection, "", 0),
                (Unlink, 0, "/d/a.db-journal", 0),
            ]
        };
        let (open, close) = (|number| [(Open, number, "/d/a.db", 0)], |number: u32| [(Close, number, "", 0)]);
        let first = [&open(1)[..], &commit(1, 2)].concat();
        let last = [&open(5)[..], &commit(5, 6), &close(5)].concat();
        let left_out = |between: &[(CallKind, u32, &'static str, u64)]| {
            of(&recording(&[&first[..], between, &last].concat())).1.left_out.closes
        };
        assert_eq!(left_out(&close(1)), 1);
        assert_eq!(left_out(&[]), 0, "the first connection stays open");
        assert_eq!(left_out(&[&open(3)[..], &close(1)].concat()), 0, "another one has it open");
        assert_eq!(left_out(&[&open(3)[..], &close(1), &close(3)].concat()), 1);
        assert_eq!(left_out(&[&close(1)[..], &open(3), &close(3)].concat()), 1, "without a commit between");
        assert_eq!(left_out(&[&close(1)[..], &open(3), &commit(3, 4), &close(3)].concat()), 2);
        assert_eq!(left_out(&[(CallKind::Released, 1, "", 0)]), 0, "the process ended without a close");
        // Commits to another database make no close of this one rarer, and ten for each of its own do.
        let other = [
            (Open, 9, "/d/b.db-journal", 0),
            (Pwrite, 9, "", 512),
            (Fdatasync, 9, "", 0),
            (Pwrite, 8, "", 4096),
            (Fdatasync, 8, "", 0),
            (Unlink, 0, "/d/b.db-journal", 0),
        ];
        let many = [&first[..], &close(1), &[(Open, 8, "/d/b.db", 0)], &other.repeat(30), &last].concat();
        let many = of(&recording(&many));
        assert_eq!(
            (many.0.commits.len(), many.1.left_out),
            (32, ClosesLeftOut { closes: 1, are_many: true })
        );
        let few = [&first[..], &commit(1, 2).repeat(9), &close(1), &last].concat();
        let few = of(&recording(&few));
        assert_eq!((few.0.commits.len(), few.1.left_out), (11, ClosesLeftOut { closes: 1, are_many: false }));
    }

    #[test]
    fn the_last_close_takes_what_sqlite_takes_for_it() {
        // Another descriptor is closed as well, and the database once before it is opened again.
        let again = [(Close, 1, "", 0), (Open, 4, "/d/a.db", 0), (Open, 5, "/d/a.db-journal", 0)];
        let commit =
            [(Pwrite, 5, "", 512), (Fdatasync, 5, "", 0), (Pwrite, 4, "", 4096), (Fdatasync, 4, "", 0)];
        let end = [(Unlink, 0, "/d/a.db-journal", 0), (Close, 2, "", 0), (Close, 4, "", 0)];
        let recording = recording(&[&CALLS[..], &again, &commit, &end].concat());
        let (found, calls) = of(&recording);
        assert_eq!((found.commits.len(), calls.closed_connections()), (2, vec![0]));
        assert_eq!(calls.left_out.closes, 1);
        let mut durations_ns = calls.durations_ns(&[1; 23], &[50, 60], &[700]);
        assert_eq!((durations_ns.pop(), durations_ns.pop(), durations_ns[13]), (Some(700), Some(1), 1));
    }

    #[test]
    fn times_of_connections_become_times_of_commits() {
        let commit = |connection| PlannedCommit {
            connection,
            waits: Vec::new(),
            begin_ns: 0,
            ready_ns: 0,
            hold_ns: 0,
            parts: Vec::new(),
        };
        let commits = [1, 0, 1, 0, 0].map(commit).to_vec();
        let plan =
            TransactionPlan { connections: vec![vec![0], vec![0]], commits, ..TransactionPlan::default() };
        assert_eq!(in_order(&plan, &[1, 2, 3, 10, 20]), [10, 1, 20, 2, 3]);
    }
}
