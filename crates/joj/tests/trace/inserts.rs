//! What INSERTs on a volume wrote, as `joj trace` says it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::counted::{agreeing, differences};
use super::volume::{Volume, joj};

/// A trace of commits.
pub struct Traced {
    /// What `--json` says of all.
    pub summary: Value,
    /// Its commits.
    pub commits: Vec<Value>,
    /// The parts of the filesystem's journal that were written, by name.
    pub journal_parts: BTreeSet<String>,
}

impl Traced {
    /// Traces twelve INSERTs into a new database; again where the disks counted otherwise.
    pub fn inserts(volume: &Volume, backend: &str, mode: &str, environment: &[(&str, PathBuf)]) -> Self {
        let trace = || Self::command(volume, backend, mode, environment, &volume.inserts(mode, 12));
        agreeing(trace, |traced| &traced.summary)
    }

    /// Traces a command that commits.
    pub fn command(
        volume: &Volume,
        backend: &str,
        name: &str,
        environment: &[(&str, PathBuf)],
        command: &[String],
    ) -> Self {
        let (json, runs) = (volume.beside("summary.json"), volume.beside("runs.csv"));
        let (json_text, runs_option) = (json.display().to_string(), format!("runs={}", runs.display()));
        let options = ["--backend", backend, "--steps=100", "--json", &json_text, "--export", &runs_option];
        volume.settle();
        let output = joj(volume, &options, environment, command);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let text = std::fs::read(&json).expect("a summary");
        let summary: Value = serde_json::from_slice(&text).expect("JSON");
        let transactions = summary["transactions"].as_array().expect("transactions").clone();
        let commits = transactions.into_iter().filter(|one| one["what"] == "commit").collect();
        Self { summary, commits, journal_parts: written_parts(&runs, "journal") }
    }

    /// Of each of the last nine commits, KiB of data, of the filesystem's journal, of that for SQLite's journal; flushes; syncs.
    pub fn answers(&self) -> Vec<[u64; 5]> {
        let number = |commit: &Value, quantity: &str| commit[quantity].as_u64().expect("a number");
        let answer = |commit: &Value| {
            let [data, journal, joj] = ["data_bytes", "journal_bytes", "journal_of_journal_bytes"]
                .map(|quantity| number(commit, quantity) / 1024);
            [data, journal, joj, number(commit, "flushes"), number(commit, "syncs")]
        };
        self.commits.iter().rev().take(9).map(answer).collect()
    }

    /// One of the last nine commits wrote this: the journal commits of itself now and then, so not each does. With `ticks`, up to
    /// so many commits of 12 KiB more are the same: a clock's tick between two writes of a file changes its inode, which the
    /// next fsync writes; on a busy machine there is always one.
    pub fn has_answer(&self, expected: [u64; 5], ticks: u64, mode: &str) {
        let [data, journal, joj, flushes, syncs] = expected;
        let same = |found: &[u64; 5], more: u64| {
            let joj_more = found[2].checked_sub(joj).filter(|more_kib| *more_kib <= 12 * more);
            joj_more.is_some() && *found == [data, journal + 12 * more, found[2], flushes + more, syncs]
        };
        let found = self.answers();
        assert!(
            found.iter().any(|found| (0..=ticks).any(|more| same(found, more))),
            "{mode}: data, journal, JOJ in KiB, flushes, syncs are not {expected:?} but {found:?}"
        );
    }

    /// The median of bytes of the last nine commits, in KiB.
    pub fn kib(&self, quantity: &str) -> u64 {
        let last = self.commits.iter().rev().take(9);
        let mut values: Vec<u64> = last.map(|one| one[quantity].as_u64().expect("a number") / 1024).collect();
        values.sort_unstable();
        values[values.len() / 2]
    }

    /// Nothing is missing, nothing is unplaced: the devices' own counters say the same.
    pub fn nothing_is_missing(&self, mode: &str) {
        assert_eq!(self.summary["lost"], 0, "{mode}");
        assert_eq!(self.summary["attributed_share"], 1.0, "{mode}");
        assert_eq!(differences(&self.summary), Vec::<&Value>::new(), "{mode}");
        self.tables_agree(mode);
    }

    /// What every table has in sum is what was written and read.
    fn tables_agree(&self, mode: &str) {
        let counts = &self.summary["counts"];
        let bytes = |volume: &Value| volume["bytes"].as_u64().expect("bytes");
        for (direction, all) in [("written", "writes"), ("read", "reads")] {
            let all = bytes(&counts[all]);
            for table in ["classes", "parts", "sizes"] {
                let rows = counts[table].as_array().expect("a table");
                let sum: u64 = rows.iter().map(|row| bytes(&row[direction])).sum();
                assert_eq!(sum, all, "{mode}: {table}, {direction}");
            }
        }
        let written = bytes(&counts["writes"]);
        for (one, other) in [("sync_writes", "buffered_writes"), ("sequential_writes", "random_writes")] {
            assert_eq!(bytes(&counts[one]) + bytes(&counts[other]), written, "{mode}: {one}");
        }
        let in_transactions = ["commits", "checkpoints"].map(|kind| {
            let classes = self.summary[kind]["bytes"].as_object().expect("bytes by class");
            classes.values().filter_map(Value::as_u64).sum::<u64>()
        });
        assert!(
            in_transactions.iter().sum::<u64>() <= written,
            "{mode}: {in_transactions:?} of {written} in SQLite's transactions"
        );
    }
}

/// The parts of a class that were written, of a table of runs, which has names without commas here.
pub fn written_parts(table: &Path, class: &str) -> BTreeSet<String> {
    let table = std::fs::read_to_string(table).expect("a table of runs");
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().expect("names");
    let at = |name: &str| names.iter().position(|one| *one == name).expect("a column");
    let [operation_at, class_at, part_at] = ["operation", "class", "part"].map(at);
    lines
        .filter(|line| line[operation_at] == "write" && line[class_at] == class)
        .map(|line| line[part_at].to_owned())
        .collect()
}
