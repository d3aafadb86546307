//! Goal: a commit of a replay writes the pages that its plan names and no others.
//! Method: the pages of the database's file before and after each commit, and the heads of its log's frames, are read here by other means
//! than SQLite's. Which leaf has which row stands in the leaf.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use joj_analysis::bench::key::JournalMode;
use joj_analysis::recording::page_transactions::plan::PlannedDatabase;

use super::*;
use crate::bench::worker::page_transactions::made_database;

/// No counters of the machine.
const NO_SOURCES: Sources = Sources { device: None, disk: None, journal: None };

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn scratch(name: &str) -> Scratch {
    let path = std::env::temp_dir().join(format!("joj-pages-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&path).unwrap();
    Scratch(path)
}

fn part(database: u32, updates: &[u32], inserts: u32, sets_page_one: bool) -> PlannedPart {
    PlannedPart { database, updates: updates.to_vec(), inserts, sets_page_one }
}

/// A plan of one connection with a commit of each of these.
fn plan(page_bytes: u32, rows: u32, commits: Vec<Vec<PlannedPart>>) -> TransactionPlan {
    let databases = commits.iter().flatten().map(|part| part.database + 1).max().unwrap_or(1);
    let commit = |parts| PlannedCommit {
        connection: 0,
        waits: Vec::new(),
        begin_ns: 0,
        ready_ns: 0,
        hold_ns: 0,
        parts,
    };
    TransactionPlan {
        databases: vec![PlannedDatabase { page_bytes, rows }; databases as usize],
        connections: vec![(0..databases).collect()],
        commits: commits.into_iter().map(commit).collect(),
        ..TransactionPlan::default()
    }
}

fn shared<'a>(
    api: &'a Api,
    plan: &'a TransactionPlan,
    directory: &'a str,
    mode: JournalMode,
) -> SharedReplay<'a> {
    let settings = DatabaseSettings { mode, synchronous: "full", cache_size: None };
    for (number, database) in plan.databases.iter().enumerate() {
        made_database::make(api, &file_of(directory, number), database, &settings).unwrap();
    }
    SharedReplay {
        api,
        plan,
        directory,
        settings,
        order: OrderChoice::Fast,
        turns: vec![Turn::default()],
        read: Turn::default(),
        stop: AtomicBool::new(false),
        begin_ns: Mutex::new(0),
        opening: Mutex::new(()),
        leaves_open: false,
        closes: &[],
        closed: Turn::default(),
        counter: None,
        settles: false,
        sources: &NO_SOURCES,
        gathered: Mutex::new(Gathered { pages: Some(0), ..Gathered::default() }),
    }
}

/// Of a file's bytes the pages, the first is page 1.
fn pages(bytes: &[u8], page_bytes: u32) -> BTreeMap<u32, Vec<u8>> {
    (1..).zip(bytes.chunks(page_bytes as usize).map(<[u8]>::to_vec)).collect()
}

fn varint(bytes: &[u8]) -> (u64, usize) {
    let mut value = 0;
    for (place, byte) in bytes.iter().enumerate().take(9) {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return (value, place + 1);
        }
    }
    (value, 9)
}

/// The page of each row, and the interior pages. Panics where a leaf has more than one row.
fn leaves(pages: &BTreeMap<u32, Vec<u8>>) -> (BTreeMap<u64, u32>, BTreeSet<u32>) {
    let (mut leaf, mut interior) = (BTreeMap::new(), BTreeSet::new());
    for (number, page) in pages.iter().skip(1) {
        if page[0] == 5 {
            interior.insert(*number);
            continue;
        }
        assert_eq!((page[0], &page[3..5]), (13, &[0, 1][..]), "page {number} is no leaf of one row");
        let cell = &page[usize::from(u16::from_be_bytes([page[8], page[9]]))..];
        let (_, length) = varint(cell);
        leaf.insert(varint(&cell[length..]).0, *number);
    }
    (leaf, interior)
}

fn changed(before: &BTreeMap<u32, Vec<u8>>, after: &BTreeMap<u32, Vec<u8>>) -> BTreeSet<u32> {
    after
        .iter()
        .filter(|(number, page)| before.get(number) != Some(page))
        .map(|(number, _)| *number)
        .collect()
}

/// Checks the pages that a commit wrote.
fn check(
    written: &BTreeSet<u32>,
    part: &PlannedPart,
    rows: u32,
    after: &BTreeMap<u32, Vec<u8>>,
    page_one: bool,
) {
    let (leaf, interior) = leaves(after);
    let new = rows + 1..=rows + part.inserts;
    let mut expected: BTreeSet<u32> =
        part.updates.iter().copied().chain(new).map(|row| leaf[&u64::from(row)]).collect();
    expected.extend(page_one.then_some(1));
    let parents: BTreeSet<u32> = written.intersection(&interior).copied().collect();
    assert_eq!(parents.len(), usize::from(part.inserts > 0), "the parent of new pages: {part:?}");
    let others: BTreeSet<u32> = written.difference(&parents).copied().collect();
    assert_eq!(others, expected, "{part:?}");
}

#[test]
fn a_commit_in_a_rollback_mode_changes_the_planned_pages_and_page_one() {
    for (mode, page_bytes, rows) in
        [(JournalMode::Delete, 4096, 700), (JournalMode::Persist, 512, 90), (JournalMode::Off, 65_536, 5)]
    {
        let scratch = scratch(mode.pragma_value());
        let directory = scratch.0.to_str().unwrap();
        let commits = vec![
            vec![part(0, &[1, 3, rows], 0, false)],
            vec![part(0, &[2], 3, false)],
            vec![part(0, &[], 1, false)],
            vec![part(0, &[], 0, true)],
            vec![part(0, &[rows + 4], 0, true)],
        ];
        let plan = plan(page_bytes, rows, commits);
        let api = Api::bundled();
        let shared = shared(&api, &plan, directory, mode);
        let read = || pages(&std::fs::read(file_of(directory, 0)).unwrap(), page_bytes);
        let test = ConnectionTest::new(&shared, 0).unwrap();
        let mut sql = Sql::new(&test.connection, &shared, &[0], 0).unwrap();
        let mut rows = rows;
        for commit in &plan.commits {
            let before = read();
            test.connection.pages_written(true);
            sql.commit(commit, 0, &shared.stop).unwrap();
            let after = read();
            let written = changed(&before, &after);
            check(&written, &commit.parts[0], rows, &after, true);
            assert_eq!(test.connection.pages_written(false), Some(written.len() as u64), "as SQLite counts");
            rows += commit.parts[0].inserts;
        }
        drop(sql);
        assert_eq!(test.connection.value("PRAGMA integrity_check").unwrap(), "ok");
    }
}

/// The page numbers of a log's frames from byte `from` on.
fn frames(log: &Path, from: usize, page_bytes: usize) -> BTreeSet<u32> {
    let bytes = std::fs::read(log).unwrap();
    let heads = bytes[from.max(32)..].chunks(24 + page_bytes);
    heads.map(|head| u32::from_be_bytes([head[0], head[1], head[2], head[3]])).collect()
}

#[test]
fn a_commit_with_a_log_writes_page_one_only_where_it_changed() {
    let scratch = scratch("wal");
    let directory = scratch.0.to_str().unwrap();
    let commits = vec![
        vec![part(0, &[1, 3], 0, false)],
        vec![part(0, &[2], 1, false)],
        vec![part(0, &[4, 31], 0, true)],
    ];
    let plan = plan(1024, 30, commits);
    let api = Api::bundled();
    let shared = shared(&api, &plan, directory, JournalMode::Wal);
    let test = ConnectionTest::new(&shared, 0).unwrap();
    let mut sql = Sql::new(&test.connection, &shared, &[0], 0).unwrap();
    let log = scratch.0.join("1.db-wal");
    let (mut rows, mut from) = (30, 0);
    let mut written = Vec::new();
    for commit in &plan.commits {
        sql.commit(commit, 0, &shared.stop).unwrap();
        written.push((frames(&log, from, 1024), rows, &commit.parts[0]));
        from = usize::try_from(std::fs::metadata(&log).unwrap().len()).unwrap();
        rows += commit.parts[0].inserts;
    }
    drop(sql);
    test.connection.value("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    let after = pages(&std::fs::read(file_of(directory, 0)).unwrap(), 1024);
    for ((written, rows, part), page_one) in written.iter().zip([false, true, true]) {
        check(written, part, *rows, &after, page_one);
    }
}

#[test]
fn a_commit_over_attached_databases_changes_each() {
    let scratch = scratch("attached");
    let directory = scratch.0.to_str().unwrap();
    let commits =
        vec![vec![part(0, &[2], 0, false), part(1, &[5, 7], 0, false)], vec![part(1, &[1], 2, false)]];
    let plan = plan(4096, 8, commits);
    let api = Api::bundled();
    let shared = shared(&api, &plan, directory, JournalMode::Truncate);
    let read = |number| pages(&std::fs::read(file_of(directory, number)).unwrap(), 4096);
    let test = ConnectionTest::new(&shared, 0).unwrap();
    let mut sql = Sql::new(&test.connection, &shared, &[0, 1], 0).unwrap();
    let before = [read(0), read(1)];
    sql.commit(&plan.commits[0], 0, &shared.stop).unwrap();
    let between = [read(0), read(1)];
    for number in 0..2 {
        let written = changed(&before[number], &between[number]);
        check(&written, &plan.commits[0].parts[number], 8, &between[number], true);
    }
    sql.commit(&plan.commits[1], 0, &shared.stop).unwrap();
    assert_eq!(changed(&between[0], &read(0)), BTreeSet::new());
    check(&changed(&between[1], &read(1)), &plan.commits[1].parts[0], 8, &read(1), true);
}
