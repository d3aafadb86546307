//! A plan: a title, and matrices whose axes are multiplied into cells.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::lab::cell::Cell;
use crate::lab::matrix::Matrix;

/// First word of a plan.
pub const PLAN_FORMAT: &str = "joj-lab-plan";
/// Newest version that this joj reads.
pub const PLAN_VERSION: u32 = 2;

/// Most cells of a plan: a slip of the pen in an axis shall not take a week.
pub const CELLS_MAX: usize = 2_000;

/// A plan as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// [`PLAN_FORMAT`]
    pub format: String,
    /// [`PLAN_VERSION`]
    pub version: u32,
    /// What it is about, in a line.
    pub title: String,
    /// Trace each cell in a run of its own, behind the one that the clock covers.
    #[serde(default)]
    pub trace: bool,
    /// The matrices, in the order in which they run.
    pub matrix: Vec<Matrix>,
}

/// Why a plan is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanError(String);

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Every cell that can be, each once, in order.
    /// # Errors
    /// Where the plan is of another format or a newer version, is empty, too large, or where a matrix has no cell that can be.
    pub fn cells(&self) -> Result<Vec<Cell>, PlanError> {
        let error = |text: String| Err(PlanError(text));
        if self.format != PLAN_FORMAT {
            return error(format!("format = {:?}; a plan has format = {PLAN_FORMAT:?}", self.format));
        }
        if self.version == 0 || self.version > PLAN_VERSION {
            let version = self.version;
            return error(format!(
                "version = {version}; this joj reads up to {PLAN_VERSION}: take a newer joj"
            ));
        }
        if self.matrix.is_empty() {
            return error("the plan has no [[matrix]]; add one with `filesystem` and `device`".to_owned());
        }
        let mut cells = Vec::new();
        for (index, matrix) in (1..).zip(&self.matrix) {
            let before = cells.len();
            matrix.check().map_err(|what| PlanError(format!("matrix {index}: {what}")))?;
            let mut reason = "one of its axes is empty";
            matrix.multiply(&mut |cell| match cell.impossible() {
                Some(why) => reason = why,
                None if cells.contains(&cell) => reason = "an earlier matrix has all of its cells",
                None if cells.len() <= CELLS_MAX => cells.push(cell),
                None => {}
            });
            if cells.len() == before {
                return error(format!("matrix {index} has no cell that can be: {reason}"));
            }
            if cells.len() > CELLS_MAX {
                return error(format!("the plan has more than {CELLS_MAX} cells; split it"));
            }
        }
        Ok(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::key::{JournalMode, LogState};
    use crate::filesystem::Filesystem;
    use crate::lab::cell::Task;

    fn plan(matrix: serde_json::Value) -> Plan {
        let text = serde_json::json!({"format": PLAN_FORMAT, "version": PLAN_VERSION, "title": "t", "matrix": [matrix]});
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn axes_are_multiplied() {
        let axes = serde_json::json!({
            "filesystem": ["ext4", "xfs"], "device": ["ram"], "mode": ["delete", "wal", "waldio"],
            "log": ["fresh", "steady"], "waldio_options": [[], ["layout=embedded"]],
        });
        let cells = plan(axes).cells().unwrap();
        // For each filesystem: DELETE once, WAL in two states, waldio in two states and two layouts.
        assert_eq!(cells.len(), 2 * (1 + 2 + 4));
        let delete: Vec<_> = cells.iter().filter(|cell| cell.mode == JournalMode::Delete).collect();
        assert!(delete.iter().all(|cell| cell.log == LogState::None && cell.waldio_options.is_empty()));
    }

    #[test]
    fn what_cannot_be_is_left_out() {
        let axes = serde_json::json!({
            "filesystem": ["ext4", "f2fs"], "device": ["ram"], "journal_device": ["", "card"], "mode": ["wal"],
        });
        let cells = plan(axes).cells().unwrap();
        assert_eq!(cells.len(), 3, "{cells:?}");
    }

    #[test]
    fn a_matrix_of_nothing_is_an_error_that_says_why() {
        let axes = serde_json::json!({
            "filesystem": ["xfs"], "device": ["ram"], "feature": ["fast_commit"], "mode": ["wal"],
        });
        assert!(plan(axes).cells().unwrap_err().to_string().contains("ext4's"));
        let axes = serde_json::json!({"filesystem": [], "device": ["ram"]});
        assert!(plan(axes).cells().unwrap_err().to_string().contains("empty"));
        let axes = serde_json::json!({"filesystem": ["ext4"]});
        assert!(plan(axes).cells().unwrap_err().to_string().contains("device is missing"));
    }

    #[test]
    fn what_a_store_cannot_do_is_told_before_a_machine_starts() {
        let of = |store: serde_json::Value, task: &str, transactions: u64, threads: u32| {
            let axes = serde_json::json!({
                "filesystem": ["ext4"], "device": ["ram"], "store": store, "task": [task], "transactions": transactions,
                "threads": [threads],
            });
            plan(axes).cells().map_err(|error| error.to_string())
        };
        assert!(of(serde_json::json!(["lsmvbt"]), "insert", 65_534, 1).is_ok());
        assert!(of(serde_json::json!(["lsmvbt"]), "update", 32_767, 1).is_ok());
        for (store, task, transactions, threads, says) in [
            (serde_json::json!(["lsmvbt"]), "insert", 65_535, 1, "takes 65535"),
            (serde_json::json!(["sqlite", "lsmvbt"]), "update", 32_768, 1, "takes 65536"),
            (serde_json::json!(["lsmvbt"]), "insert", 10, 2, "one thread"),
            (serde_json::json!([]), "insert", 10, 1, "store is empty"),
        ] {
            let said = of(store, task, transactions, threads).unwrap_err();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn raw_writes_come_once_whatever_the_journal_modes() {
        let axes = serde_json::json!({
            "filesystem": ["ext4"], "device": ["ram"], "task": ["write_random"], "mode": ["wal", "delete"],
            "sync_call": ["fsync", "fdatasync"],
        });
        assert_eq!(plan(axes).cells().unwrap().len(), 2);
    }

    #[test]
    fn a_log_of_frames_is_fresh_or_steady_whatever_the_journal_modes() {
        let axes = |threads: u32, sync_call: &str, transactions: u64| {
            plan(serde_json::json!({
                "filesystem": ["ext4"], "device": ["ram"], "task": ["frames_page_8k"], "mode": ["wal", "delete"],
                "log": ["fresh", "steady"], "threads": [threads], "sync_call": [sync_call], "transactions": transactions,
            }))
        };
        let cells = axes(1, "fdatasync", 10_000).cells().unwrap();
        let lines: Vec<_> = cells.iter().map(ToString::to_string).collect();
        let fresh = "ext4 ram, frames_page_8k, fdatasync";
        assert_eq!(lines, [fresh, "ext4 ram, frames_page_8k steady, fdatasync"]);
        for (threads, sync_call, transactions, says) in [
            (2, "fdatasync", 10, "one writer"),
            (1, "fsync", 10, "with fdatasync"),
            (1, "fdatasync", 10_001, "takes 1 to 10000"),
        ] {
            let said = axes(threads, sync_call, transactions).cells().unwrap_err().to_string();
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn recordings_are_replayed_once_each_whatever_the_journal_modes() {
        let axes = |task: &str, recordings: serde_json::Value| {
            plan(serde_json::json!({
                "filesystem": ["ext4", "f2fs"], "device": ["ram"], "task": [task], "mode": ["wal", "delete"],
                "recording": recordings, "compat": [true, false],
            }))
        };
        let cells = axes("replay", serde_json::json!(["app", "b-1"])).cells().unwrap();
        let names: Vec<String> = cells.iter().map(ToString::to_string).collect();
        let of = |filesystem: &str| {
            ["app compat", "app", "b-1 compat", "b-1"].map(|name| format!("{filesystem} ram, replay {name}"))
        };
        assert_eq!(names, [of("ext4"), of("f2fs")].concat());
        assert!(cells.iter().all(|cell| cell.transactions == 1));
        let matrix = serde_json::json!({
            "filesystem": ["ext4"], "device": ["ram"], "task": ["replay"], "recording": ["app"], "order": ["timed", "dependent"],
        });
        let names: Vec<String> = plan(matrix).cells().unwrap().iter().map(ToString::to_string).collect();
        assert_eq!(names, ["ext4 ram, replay app", "ext4 ram, replay app dependent"]);
        let said = |task, recordings| axes(task, recordings).cells().unwrap_err().to_string();
        assert!(said("replay", serde_json::json!([])).contains("no recording"));
        assert!(said("insert", serde_json::json!(["app"])).contains("the task replay"));
        assert!(said("replay", serde_json::json!(["../app"])).contains("\"../app\""));
    }

    #[test]
    fn a_cell_is_measured_beside_the_same_one_recorded() {
        let axes = serde_json::json!({
            "filesystem": ["ext4"], "device": ["ram"], "task": ["append", "insert"], "mode": ["wal"],
            "recorder": ["none", "bpf"],
        });
        let names: Vec<String> = plan(axes).cells().unwrap().iter().map(ToString::to_string).collect();
        let expected = [
            "ext4 ram, append, fdatasync",
            "ext4 ram, append, fdatasync, recorded by bpf",
            "ext4 ram, insert WAL, fdatasync",
            "ext4 ram, insert WAL, fdatasync, recorded by bpf",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn atomic_writes_are_of_rollback_journals_on_f2fs() {
        let axes = |mode: &str, sync_call: &str| {
            plan(serde_json::json!({
                "filesystem": ["ext4", "f2fs"], "device": ["ram"], "mode": [mode], "sync_call": [sync_call],
                "batch_atomic": [false, true],
            }))
        };
        let cells = axes("delete", "fsync").cells().unwrap();
        let found: Vec<_> = cells.iter().map(|cell| (cell.filesystem, cell.batch_atomic)).collect();
        let (ext4, f2fs) = (Filesystem::Ext4, Filesystem::F2fs);
        assert_eq!(found, [(ext4, false), (f2fs, false), (f2fs, true)]);
        assert!(cells[2].to_string().contains("DELETE batch_atomic"), "{}", cells[2]);
        assert_eq!(axes("wal", "fsync").cells().unwrap().len(), 2);
        assert_eq!(axes("delete", "fdatasync").cells().unwrap().len(), 2);
        let only = serde_json::json!({
            "filesystem": ["f2fs"], "device": ["ram"], "mode": ["delete"], "batch_atomic": [true],
        });
        assert!(plan(only).cells().unwrap_err().to_string().contains("sync_call"));
    }

    #[test]
    fn directories_are_synced_for_rollback_journals_alone() {
        let cells = plan(serde_json::json!({
            "filesystem": ["ext4"], "device": ["ram"], "mode": ["truncate", "wal", "off"], "directory_sync": [true, false],
        }));
        let found: Vec<_> =
            cells.cells().unwrap().iter().map(|cell| (cell.mode, cell.directory_sync)).collect();
        let (truncate, wal, off) = (JournalMode::Truncate, JournalMode::Wal, JournalMode::Off);
        assert_eq!(found, [(truncate, true), (truncate, false), (wal, true), (off, true)]);
        let name = cells.cells().unwrap()[1].to_string();
        assert!(name.contains("TRUNCATE no directory_sync"), "{name}");
    }

    #[test]
    fn the_file_is_as_large_as_the_matrix_says_and_10_mib_else() {
        let axes = serde_json::json!({
            "filesystem": ["ext4"], "device": ["ram"], "task": ["write_random", "append"], "file_mib": [10, 64],
        });
        let cells = plan(axes).cells().unwrap();
        assert_eq!(cells.iter().map(|cell| cell.file_mib).collect::<Vec<_>>(), [10, 64, 10]);
        assert!(cells[1].to_string().contains("write_random in 64 MiB"), "{}", cells[1]);
    }

    #[test]
    fn threads_are_for_raw_writes_and_for_inserts_through_a_log() {
        let axes = |task: &[&str], threads: &[u32]| {
            plan(
                serde_json::json!({"filesystem": ["ext4"], "device": ["ram"], "task": task, "threads": threads}),
            )
        };
        let cells = axes(&["append", "insert"], &[1, 10]).cells().unwrap();
        let found: Vec<(Task, u32)> = cells.iter().map(|cell| (cell.task, cell.threads)).collect();
        assert_eq!(found, [(Task::Append, 1), (Task::Append, 10), (Task::Insert, 1)]);
        assert!(cells[1].to_string().ends_with("10 threads"));
        let said = |task, threads: u32| axes(&[task], &[threads]).cells().unwrap_err().to_string();
        assert!(said("insert", 2).contains("a log that is steady"));
        assert!(said("update", 2).contains("insert into one table"));
        let axes = serde_json::json!({
            "filesystem": ["ext4"], "device": ["ram"], "mode": ["delete", "wal", "waldio"],
            "log": ["fresh", "steady"], "synchronous": ["full", "normal"], "threads": [1, 16],
        });
        let cells = plan(axes).cells().unwrap();
        let together: Vec<String> =
            cells.iter().filter(|cell| cell.threads == 16).map(ToString::to_string).collect();
        let line = |mode: &str| format!("ext4 ram, insert {mode} steady, fdatasync, 16 threads");
        assert_eq!(together, ["WAL", "WALDIO"].map(line));
        assert!(said("append", 0).contains("1 to 64") && said("append", 65).contains("1 to 64"));
    }

    #[test]
    fn ranges_are_of_probes() {
        let axes = |task: &[&str], range_mib: &[u64]| {
            plan(
                serde_json::json!({"filesystem": ["ext4"], "device": ["ram"], "task": task, "range_mib": range_mib}),
            )
        };
        let cells = axes(&["append", "probe_random_write"], &[8, 1024]).cells().unwrap();
        let found: Vec<_> = cells.iter().map(|cell| (cell.task, cell.range_mib)).collect();
        let of_probe = |range_mib| (Task::ProbeRandomWrite, Some(range_mib));
        assert_eq!(found, [(Task::Append, None), of_probe(8), of_probe(1024)]);
        assert_eq!(cells[1].to_string(), "ext4 ram, probe_random_write within 8 MiB, fdatasync");
        let records = cells.iter().map(|cell| cell.probe().map(|key| key.records()));
        assert_eq!(records.collect::<Vec<_>>(), [None, Some(2048), Some(262_144)]);
        let said = |task, range_mib| axes(&[task], &[range_mib]).cells().unwrap_err().to_string();
        assert!(said("append", 8).contains("has none of them"));
        for wrong in [0, 1025] {
            assert!(said("probe_read", wrong).contains("give 1 to 1024"), "{wrong}");
        }
    }

    #[test]
    fn other_formats_and_newer_versions_are_refused() {
        let mut other = plan(serde_json::json!({"filesystem": ["ext4"], "device": ["ram"]}));
        other.version = PLAN_VERSION + 1;
        assert!(other.cells().unwrap_err().to_string().contains("newer joj"));
        other.format = "joj-trace".to_owned();
        assert!(other.cells().unwrap_err().to_string().contains(PLAN_FORMAT));
    }
}
