//! Goal: the tables of a trace have the commits, the bytes and the runs that its summary has; a damaged trace leaves none.
//! Method: recorded traces in fixtures/traces, exported and read back, beside the JSON of the same trace.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use serde_json::Value;

const DOCUMENT: &str = include_str!("../../../docs/trace_tables.md");

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces").join(format!("{name}.parquet"))
}

/// A directory of one test; gone with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("joj-trace-tables-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    /// The only file of a table.
    fn table(&self, table: &str) -> SerializedFileReader<File> {
        let files = self.files(table);
        assert_eq!(files.len(), 1, "{files:?}");
        SerializedFileReader::new(File::open(&files[0]).expect("the table")).expect("a Parquet file")
    }

    /// What the metadata of a table says of it.
    fn header(&self, table: &str) -> Value {
        let table = self.table(table);
        let entries = table.metadata().file_metadata().key_value_metadata().expect("metadata");
        let header = entries.iter().find(|entry| entry.key == "joj_table").expect("the header");
        serde_json::from_str(header.value.as_deref().expect("a text")).expect("JSON")
    }

    fn files(&self, table: &str) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.join(table)).expect("the folder of a table").flatten();
        entries.map(|entry| entry.path()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn export(trace: &Path, scratch: &Scratch, options: &[&str]) -> Output {
    let export = format!("parquet={}", scratch.0.display());
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    joj.args(["trace", "--json", "-", "--export", &export]).args(options).arg("--read").arg(trace);
    joj.output().expect("joj")
}

fn rows(table: &SerializedFileReader<File>) -> Vec<Row> {
    table.get_row_iter(None).expect("rows").collect::<Result<_, _>>().expect("rows")
}

fn value(row: &Row, column: &str) -> Field {
    let found = row.get_column_iter().find(|(name, _)| *name == column);
    found.unwrap_or_else(|| panic!("no column {column}")).1.clone()
}

fn sum(rows: &[Row], column: &str) -> i64 {
    let number = |row| match value(row, column) {
        Field::Long(number) => number,
        Field::Null => 0,
        other => panic!("{column}: {other}"),
    };
    rows.iter().map(number).sum()
}

fn text(row: &Row, column: &str) -> String {
    match value(row, column) {
        Field::Str(text) => text,
        other => panic!("{column}: {other}"),
    }
}

#[test]
fn commits_and_runs_are_those_of_the_summary() {
    for (name, modes) in [
        ("ext4_wal", "wal full"),
        ("ext4_delete", "delete full"),
        ("xfs_wal", "wal full"),
        ("f2fs_delete", "delete full"),
    ] {
        let scratch = Scratch::new(name);
        let output = export(&fixture(name), &scratch, &["--label", "device=A1", "--label", "device_id=7"]);
        let summary: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let of_kind = |kind: &str, rows: &[Row]| -> Vec<Row> {
            rows.iter().filter(|row| text(row, "kind") == kind).cloned().collect()
        };
        let all = rows(&scratch.table("commits"));
        for (kind, said) in [("commit", &summary["commits"]), ("checkpoint", &summary["checkpoints"])] {
            let rows = of_kind(kind, &all);
            let bytes: i64 =
                said["bytes"].as_object().expect("bytes").values().filter_map(Value::as_i64).sum();
            let expected = ["journal_of_journal_bytes", "syncs", "writes", "flushes"];
            assert_eq!(said["total"], rows.len(), "{name}: {kind}");
            assert_eq!(sum(&rows, "written_bytes"), bytes, "{name}: {kind}");
            for column in expected {
                assert_eq!(said[column], sum(&rows, column), "{name}: {kind}, {column}");
            }
            for row in rows.iter().filter(|_| kind == "commit") {
                assert_eq!(
                    format!("{} {}", text(row, "journal_mode"), text(row, "sync_mode")),
                    modes,
                    "{name}"
                );
                assert_eq!((text(row, "device"), text(row, "device_id")), ("A1".into(), "7".into()));
            }
        }
        let runs = rows(&scratch.table("runs"));
        let written: Vec<Row> =
            runs.iter().filter(|row| text(row, "operation") == "write").cloned().collect();
        assert_eq!(summary["counts"]["writes"]["bytes"], sum(&written, "byte_length"), "{name}");
        let flushes = runs.iter().filter(|row| text(row, "operation") == "flush").count();
        assert_eq!(summary["counts"]["flushes"], flushes, "{name}");
    }
}

#[test]
fn a_second_export_writes_the_same_file_again() {
    let scratch = Scratch::new("again");
    export(&fixture("ext4_wal"), &scratch, &[]);
    let bytes = |table| fs::read(&scratch.files(table)[0]).expect("a table");
    let first = (bytes("commits"), bytes("runs"));
    export(&fixture("ext4_wal"), &scratch, &[]);
    assert_eq!((scratch.files("commits").len(), scratch.files("runs").len()), (1, 1));
    assert_eq!((bytes("commits"), bytes("runs")), first);
}

#[test]
fn both_tables_of_an_export_are_known_by_one_number() {
    let numbers: Vec<Value> = [&["--label", "app_version=1"], &["--label", "app_version=2"]]
        .iter()
        .enumerate()
        .map(|(number, labels)| {
            let scratch = Scratch::new(&format!("number-{number}"));
            export(&fixture("ext4_wal"), &scratch, *labels);
            let (commits, runs) = (scratch.header("commits"), scratch.header("runs"));
            assert_eq!(commits["export_id"], runs["export_id"]);
            assert_eq!((&commits["version"], commits["trace_id"].is_string()), (&Value::from(2), true));
            commits["export_id"].clone()
        })
        .collect();
    assert_ne!(numbers[0], numbers[1], "two exports that differ");
}

#[test]
fn an_export_with_other_labels_does_not_take_the_place_of_one() {
    let scratch = Scratch::new("other-labels");
    export(&fixture("ext4_wal"), &scratch, &["--label", "device_id=1"]);
    let bytes = |table| fs::read(&scratch.files(table)[0]).expect("a table");
    let first = (bytes("commits"), bytes("runs"));
    let output = export(&fixture("ext4_wal"), &scratch, &["--label", "device_id=2"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains(r#"the same trace with the labels {"device_id":"1"}"#), "{told}");
    assert_eq!((bytes("commits"), bytes("runs")), first);
    // A damaged one may go.
    let path = &scratch.files("commits")[0];
    let cut = first.0.len() / 2;
    fs::write(path, &first.0[..cut]).expect("a file");
    fs::remove_file(&scratch.files("runs")[0]).expect("a file");
    assert!(export(&fixture("ext4_wal"), &scratch, &["--label", "device_id=2"]).status.success());
    assert_eq!(scratch.header("commits")["labels"]["device_id"], "2");
}

#[test]
fn exports_of_one_trace_at_a_time_leave_one_whole_trace() {
    let scratch = Scratch::new("at-a-time");
    std::thread::scope(|scope| {
        let exports: Vec<_> = (0..6)
            .map(|_| scope.spawn(|| export(&fixture("ext4_wal"), &scratch, &["--label", "device=A1"])))
            .collect();
        for output in exports.into_iter().map(|export| export.join().expect("no panic")) {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    });
    assert_eq!((scratch.files("commits").len(), scratch.files("runs").len()), (1, 1), "parts are left");
    assert_eq!(scratch.header("commits")["export_id"], scratch.header("runs")["export_id"]);
}

#[test]
fn labels_that_no_table_takes_are_refused() {
    let scratch = Scratch::new("labels");
    let csv = format!("csv={}", scratch.0.join("events.csv").display());
    let tables = format!("parquet={}", scratch.0.display());
    for (export, labels, says) in [
        (&csv, ["device=A1", "app=2"], "--export parquet=DIR"),
        (&tables, ["device=A1", "device=B2"], "names device twice"),
        (&tables, ["app=1", "App=2"], "names app and App, which are one name"),
        (&tables, ["device=A1", "disk=ssd"], "--label disk= would hide a column"),
        (&tables, ["Device=A1", "build=2"], "--label Device= would hide a column"),
        (&tables, ["device=A1", "KIND=beta"], "--label KIND= would hide a column"),
    ] {
        let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
        joj.args(["trace", "--export", export, "--label", labels[0], "--label", labels[1], "--read"]);
        let output = joj.arg(fixture("ext4_wal")).output().expect("joj");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(says), "{said}");
        assert_eq!(fs::read_dir(&scratch.0).expect("the directory").count(), 0);
    }
}

#[test]
fn a_damaged_trace_leaves_no_table() {
    let scratch = Scratch::new("damaged");
    let mut bytes = fs::read(fixture("ext4_wal")).expect("the fixture");
    bytes[200] ^= 1;
    let damaged = scratch.0.join("damaged.parquet");
    fs::write(&damaged, bytes).expect("a file");
    let output = export(&damaged, &scratch, &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!((scratch.files("commits").len(), scratch.files("runs").len()), (0, 0));
}

#[test]
fn a_place_where_nothing_can_be_made_is_told() {
    let scratch = Scratch::new("place");
    fs::write(scratch.0.join("commits"), "").expect("a file");
    let output = export(&fixture("ext4_wal"), &scratch, &[]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("cannot make the directory") && told.contains("--export parquet=DIR"), "{told}");
}

#[test]
fn the_document_names_every_column_and_key() {
    let scratch = Scratch::new("document");
    export(&fixture("ext4_wal"), &scratch, &[]);
    for name in ["commits", "runs"] {
        let table = scratch.table(name);
        let entries = table.metadata().file_metadata().key_value_metadata().expect("metadata");
        for key in entries.iter().map(|entry| &entry.key) {
            assert!(DOCUMENT.contains(&format!("`{key}`")), "docs/trace_tables.md does not name {key}");
        }
        let header = scratch.header(name);
        for column in table.metadata().file_metadata().schema_descr().columns() {
            let name = column.name();
            assert!(DOCUMENT.contains(&format!("`{name}`")), "docs/trace_tables.md does not name {name}");
        }
        for key in header.as_object().expect("an object").keys() {
            assert!(DOCUMENT.contains(&format!("`{key}`")), "docs/trace_tables.md does not name {key}");
        }
    }
}
