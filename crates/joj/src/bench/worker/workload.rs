//! The SQL of the workloads. Arithmetic only: nothing here runs it.
//!
//! Source of schemas and transactions: Mobibench (shell/mobibench.c), today's version for `mobibench`, that of 2013
//! for `atc13`, and the latter without AUTOINCREMENT and date for `waldio`. Two differences on purpose: statements are
//! prepared once, because compiling SQL is not what a disk is measured for, and an update never writes the value
//! that is there, because SQLite then writes nothing at all.

use joj_analysis::bench::key::{RowKey, Schema, Workload};

/// Length of every value, in bytes, as in Mobibench.
pub const VALUE_BYTES: usize = 100;

/// Rows of the large transaction.
pub const LARGE_ROWS: u64 = 10_000;

/// Reads are a hundred times shorter than commits; this many make a run long enough to time.
const READS_PER_TRANSACTION: u64 = 20;

/// How many transactions a run of `key` makes when `asked` are asked for.
pub fn transaction_count(key: &RowKey, asked: u64) -> u64 {
    match key.workload {
        Workload::Insert | Workload::Update | Workload::Delete => asked,
        Workload::Read => asked * READS_PER_TRANSACTION,
        // One holds as much work as hundreds of the others.
        Workload::Large => asked.div_ceil(200),
        Workload::Open => asked.div_ceil(10),
    }
}

/// The tables of a schema.
pub fn tables(schema: Schema) -> &'static [&'static str] {
    match schema {
        Schema::Waldio | Schema::Atc13 => &["tblMyList"],
        Schema::Mobibench => &["tblMyList0", "tblMyList1", "tblMyList2"],
    }
}

/// Makes `table`.
pub fn create_table(schema: Schema, table: &str) -> String {
    let columns = match schema {
        Schema::Waldio => "id INTEGER PRIMARY KEY, Value TEXT NOT NULL",
        Schema::Atc13 => "id INTEGER PRIMARY KEY AUTOINCREMENT, Value TEXT NOT NULL, creation_date LONG",
        Schema::Mobibench => "id INTEGER PRIMARY KEY, Value TEXT NOT NULL, creation_date LONG",
    };
    format!("CREATE TABLE {table} ({columns})")
}

/// Adds a row; ?1 is the value.
pub fn insert(table: &str) -> String {
    format!("INSERT INTO {table}(Value) VALUES(?1)")
}

/// The statement of a workload for `table`; ?1 is the value or, where there is no value, the id; ?2 the id.
pub fn statement(workload: Workload, table: &str) -> String {
    match workload {
        Workload::Insert | Workload::Large | Workload::Open => insert(table),
        Workload::Update => format!("UPDATE {table} SET Value = ?1 WHERE id = ?2"),
        Workload::Delete => format!("DELETE FROM {table} WHERE id = ?1"),
        Workload::Read => format!("SELECT Value FROM {table} WHERE id = ?1"),
    }
}

/// Rows in each table after `transactions` that were all acknowledged.
pub fn rows_after(workload: Workload, transactions: u64) -> u64 {
    let before = workload.rows_before(transactions);
    match workload {
        Workload::Insert | Workload::Open => before + transactions,
        Workload::Update | Workload::Read => before,
        Workload::Delete => before - transactions,
        Workload::Large => before + transactions * LARGE_ROWS,
    }
}

/// A value of [`VALUE_BYTES`] that no other `serial` gives.
pub fn value(word: &str, serial: u64) -> String {
    let mut text = format!("{word} {serial:020} ");
    let mut state = serial.wrapping_add(0x9e37_79b9_7f4a_7c15);
    while text.len() < VALUE_BYTES {
        state = next_random(state);
        text.push(char::from(b'a' + u8::try_from(state % 26).unwrap_or(0)));
    }
    text
}

/// splitmix64: the same numbers on every machine, in every run.
pub fn next_random(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The row each transaction touches, `count` ids between 1 and `rows`: for a delete all different.
pub fn ids(workload: Workload, rows: u64, count: u64) -> Vec<u64> {
    let mut state = 42;
    let mut draw = |below: u64| {
        state = next_random(state);
        state % below.max(1)
    };
    if workload != Workload::Delete {
        return (0..count).map(|_| draw(rows) + 1).collect();
    }
    let mut all: Vec<u64> = (1..=rows).collect();
    for last in (1..all.len()).rev() {
        let other = usize::try_from(draw(last as u64 + 1)).unwrap_or(0);
        all.swap(last, other);
    }
    all.into_iter().take(usize::try_from(count).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn values_have_their_length_and_never_repeat() {
        let values: HashSet<String> = (0..1000).map(|serial| value("update", serial)).collect();
        assert_eq!(values.len(), 1000);
        assert!(values.iter().all(|value| value.len() == VALUE_BYTES && value.is_ascii()));
    }

    #[test]
    fn deletes_hit_each_row_once_and_updates_stay_within() {
        let deleted: HashSet<u64> = ids(Workload::Delete, 300, 300).into_iter().collect();
        assert_eq!(deleted, (1..=300).collect());
        let updated = ids(Workload::Update, 300, 5000);
        assert!(updated.iter().all(|id| (1..=300).contains(id)));
        assert!(updated.iter().collect::<HashSet<_>>().len() > 290);
        assert_eq!(ids(Workload::Update, 300, 50), ids(Workload::Update, 300, 50));
    }

    #[test]
    fn what_is_acknowledged_is_what_is_expected() {
        assert_eq!(rows_after(Workload::Insert, 1000), 1000);
        assert_eq!(rows_after(Workload::Delete, 20), 296 - 20);
        assert_eq!(rows_after(Workload::Large, 5), 50_000);
    }
}
