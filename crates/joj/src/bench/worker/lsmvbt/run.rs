//! One run of transactions of the tree, in the worker.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use joj_analysis::bench::key::Workload;
use serde::{Deserialize, Serialize};

use super::page::PAGE_BYTES;
use super::tree::{Tree, rows};
use crate::bench::worker::stopwatch::Stopwatch;
use crate::bench::worker::task::{Measured, Refusal, Reply, Task};
use crate::bench::worker::workload;
use crate::machine::files::counters::Sources;
use crate::machine::proc::clock::now_ns;

/// Change rows of a multi-version B-tree, a transaction each, as `joj bench` changes those of SQLite.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LsmvbtTask {
    /// An empty directory.
    pub directory: String,
    /// What each transaction does; an insert, an update or a delete.
    pub workload: Workload,
    /// How many.
    pub transactions: u64,
    /// fsync instead of fdatasync.
    pub full_sync: bool,
    /// Counters to read meanwhile.
    pub sources: Sources,
}

impl Task for LsmvbtTask {
    const NAME: &'static str = "lsmvbt";
    type Answer = Measured;
    fn run(&self) -> Reply<Self> {
        let versions = self.workload.rows_before(self.transactions) + self.transactions;
        if versions > Tree::VERSIONS {
            return Err(Refusal::new(format!(
                "LS-MVBT has {} versions, and this takes {versions}; give fewer transactions",
                Tree::VERSIONS
            )));
        }
        let directory = Path::new(&self.directory);
        measure(directory, self).map_err(|error| Refusal::of_write(directory, &error))
    }
}

fn measure(directory: &Path, task: &LsmvbtTask) -> io::Result<Measured> {
    let path = directory.join("bench.mvbt");
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    let mut tree = Tree::new();
    let rows_before = task.workload.rows_before(task.transactions);
    for key in 1..=rows_before {
        tree.begin();
        tree.put(key, workload::value("initial", key).as_bytes());
    }
    write(&file, &tree.commit())?;
    file.sync_all()?;
    File::open(directory)?.sync_all()?;
    let ids = workload::ids(task.workload, rows_before, task.transactions);
    let mut latencies_ns = Vec::with_capacity(ids.len());
    let start = Stopwatch::now(&task.sources);
    for (serial, id) in (0..).zip(&ids) {
        let began_ns = now_ns();
        tree.begin();
        match task.workload {
            Workload::Update => tree.put(*id, workload::value("update", serial).as_bytes()),
            Workload::Delete => drop(tree.delete(*id)),
            _ => tree.put(serial + 1, workload::value("insert", serial).as_bytes()),
        }
        write(&file, &tree.commit())?;
        if task.full_sync { file.sync_all() } else { file.sync_data() }?;
        latencies_ns.push(now_ns() - began_ns);
    }
    let mut measured = start.finish(&task.sources, latencies_ns);
    measured.run.failure = wrong(&fs::read(path)?, task, &ids);
    Ok(measured)
}

fn write(file: &File, pages: &[(u32, Vec<u8>)]) -> io::Result<()> {
    pages
        .iter()
        .try_for_each(|(number, bytes)| file.write_all_at(bytes, u64::from(*number) * PAGE_BYTES as u64))
}

/// What is wrong with the file, if anything.
fn wrong(file: &[u8], task: &LsmvbtTask, ids: &[u64]) -> Option<String> {
    let found = match rows(file) {
        Ok(found) => found,
        Err(reason) => return Some(reason),
    };
    let committed = committed(task, ids);
    if found.len() != committed.len() {
        return Some(format!("it has {} rows, and {} were committed", found.len(), committed.len()));
    }
    let differs = |(key, text): &(&u64, &String)| found.get(key).is_none_or(|bytes| bytes != text.as_bytes());
    let (key, _) = committed.iter().find(differs)?;
    Some(format!("row {key} has not the value that was committed"))
}

/// The rows after all transactions.
fn committed(task: &LsmvbtTask, ids: &[u64]) -> BTreeMap<u64, String> {
    let before = task.workload.rows_before(task.transactions);
    let mut rows: BTreeMap<u64, String> =
        (1..=before).map(|key| (key, workload::value("initial", key))).collect();
    for (serial, id) in (0..).zip(ids) {
        match task.workload {
            Workload::Update => drop(rows.insert(*id, workload::value("update", serial))),
            Workload::Delete => drop(rows.remove(id)),
            _ => drop(rows.insert(serial + 1, workload::value("insert", serial))),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(directory: &Path, workload: Workload, transactions: u64) -> LsmvbtTask {
        let directory = directory.display().to_string();
        LsmvbtTask { directory, workload, transactions, full_sync: false, sources: Sources::default() }
    }

    /// As many rows, each with another value.
    fn with_other_values(mut file: Vec<u8>) -> Vec<u8> {
        let length = b"0123456789 ".len();
        for begin in 0..file.len() - length {
            let (digits, end) = file[begin..begin + length].split_at(length - 1);
            if digits.iter().all(u8::is_ascii_digit) && end == b" " {
                file[begin] = b'9';
            }
        }
        file
    }

    #[test]
    fn each_workload_ends_with_the_rows_that_it_committed() {
        let directory = std::env::temp_dir().join(format!("joj-lsmvbt-{}", std::process::id()));
        // A delete of each row would leave none to compare.
        for (workload, transactions) in
            [(Workload::Insert, 400), (Workload::Update, 400), (Workload::Delete, 200)]
        {
            fs::create_dir_all(&directory).unwrap();
            let task = task(&directory, workload, transactions);
            let measured = task.run().unwrap();
            assert_eq!(measured.run.failure, None);
            assert_eq!(measured.latencies_ns.len() as u64, transactions);
            let file = fs::read(directory.join("bench.mvbt")).unwrap();
            let ids = workload::ids(workload, workload.rows_before(transactions), transactions);
            assert!(wrong(&file[..PAGE_BYTES], &task, &ids).is_some(), "what is cut off is missed");
            let other = wrong(&with_other_values(file), &task, &ids).unwrap_or_default();
            assert!(other.contains("has not the value"), "{workload:?}: {other}");
            fs::remove_dir_all(&directory).unwrap();
        }
        let refused = task(&directory, Workload::Insert, 70_000).run().unwrap_err();
        assert!(refused.message.contains("65534 versions"), "{}", refused.message);
    }
}
