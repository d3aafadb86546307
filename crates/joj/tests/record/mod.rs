//! What the tests of recordings made live share: programs, and rows of what was recorded.

#![allow(dead_code, reason = "each test program uses a part")]

pub mod same_tree;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::{CallKind, RecordedCall};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

use crate::replay::{Scratch, told};

/// Codes of `call_code` (docs/trace_format.md).
pub const OPEN: i64 = 1;
pub const HELD: i64 = 33;
pub const LOCK: i64 = 34;
pub const LOG_FRAME: i64 = 35;
pub const FIRST_PAGE: i64 = 36;
pub const PRESENT: i64 = 37;
pub const FORK: i64 = 31;
pub const WOKEN: i64 = 39;
pub const ENDED: i64 = 44;

/// A row of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub begin_ns: i64,
    pub duration_ns: i64,
    pub process: i64,
    pub thread: i64,
    pub code: i64,
    pub description: i64,
    pub descriptor: i64,
    pub offset: i64,
    pub bytes: i64,
    pub flags: i64,
    pub result: i64,
    pub path: String,
    pub second_path: String,
}

impl Row {
    pub fn opens(&self, path: &Path) -> bool {
        self.code == OPEN && Path::new(&self.path) == path
    }

    pub fn is_read(&self) -> bool {
        (4..=7).contains(&self.code)
    }

    /// Without what differs from run to run.
    pub fn without_its_run(self) -> Self {
        Self { begin_ns: 0, duration_ns: 0, process: 0, thread: 0, ..self }
    }

    pub fn is_write(&self) -> bool {
        (8..=11).contains(&self.code)
    }
}

/// The rows of a recording.
pub fn rows(recording: &Path) -> Vec<Row> {
    let reader = SerializedFileReader::new(File::open(recording).expect("a recording")).expect("Parquet");
    let rows = reader.get_row_iter(None).expect("rows");
    rows.map(|row| {
        let row = row.expect("a row");
        let fields: BTreeMap<String, Field> =
            row.get_column_iter().map(|(name, field)| (name.clone(), field.clone())).collect();
        let number = |name: &str| match &fields[name] {
            Field::UByte(value) => i64::from(*value),
            Field::UShort(value) => i64::from(*value),
            Field::UInt(value) => i64::from(*value),
            Field::ULong(value) => value.cast_signed(),
            Field::Long(value) => *value,
            other => panic!("{name} is {other:?}"),
        };
        let text = |name: &str| match &fields[name] {
            Field::Str(text) => text.clone(),
            other => panic!("{name} is {other:?}"),
        };
        Row {
            begin_ns: number("time_ns"),
            duration_ns: number("duration_ns"),
            process: number("process_id"),
            thread: number("thread_id"),
            code: number("call_code"),
            description: number("description_id"),
            descriptor: number("descriptor_number"),
            offset: number("file_offset"),
            bytes: number("byte_length"),
            flags: number("call_flags"),
            result: number("detail_value"),
            path: text("text_value"),
            second_path: text("second_path"),
        }
    })
    .collect()
}

/// The calls of a recording, as joj's analysis takes them.
pub fn calls(recording: &Path) -> Recording {
    let mut read = Recording::default();
    let short = |number: i64| u32::try_from(number).expect("32 bits");
    for row in rows(recording) {
        let call = RecordedCall {
            begin_ns: row.begin_ns.cast_unsigned(),
            duration_ns: row.duration_ns.cast_unsigned(),
            kind: CallKind::from_code(u8::try_from(row.code).expect("a code")).expect("a call"),
            process: short(row.process),
            thread: short(row.thread),
            description: short(row.description),
            descriptor: short(row.descriptor).cast_signed(),
            result: row.result,
            offset: row.offset.cast_unsigned(),
            bytes: row.bytes.cast_unsigned(),
            flags: short(row.flags),
            path: read.texts.keep(&row.path),
            second_path: read.texts.keep(&row.second_path),
        };
        read.calls.push(call);
    }
    read
}

/// A C program, compiled; `None`, and why, where that cannot be.
pub fn program(scratch: &Scratch, name: &str, source: &str) -> Option<PathBuf> {
    let program = scratch.file(name);
    let path = scratch.write(&format!("{name}.c"), source);
    compile(&program, &path)
}

/// A program of the tests' own directory.
pub fn compile(program: &Path, source: &Path) -> Option<PathBuf> {
    let built =
        Command::new("cc").args(["-O1", "-static", "-pthread", "-o"]).args([program, source]).output();
    match built {
        Ok(built) if built.status.success() => Some(program.to_owned()),
        Ok(built) => {
            eprintln!("skipped: no static C library: {}", String::from_utf8_lossy(&built.stderr));
            None
        }
        Err(_) => {
            eprintln!("skipped: cc is not there");
            None
        }
    }
}

/// `joj record` of a command.
pub fn record_command(
    method: &str,
    recording: &Path,
    words: &[&dyn AsRef<std::ffi::OsStr>],
) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_joj"))
        .args(["record", "--method", method, "-o"])
        .arg(recording)
        .arg("--")
        .args(words.iter().map(|word| word.as_ref()))
        .output()
        .expect("joj")
}

/// The rows of a command's recording; it ends with this code.
pub fn recorded(
    scratch: &Scratch,
    method: &str,
    words: &[&dyn AsRef<std::ffi::OsStr>],
    code: i32,
) -> Vec<Row> {
    let recording = scratch.file("it.joj");
    let (found, said) = told(&record_command(method, &recording, words));
    assert_eq!(found, Some(code), "{method}: {said}");
    rows(&recording)
}

/// The ways to record that work here.
pub fn methods() -> Vec<&'static str> {
    static METHODS: OnceLock<Vec<&str>> = OnceLock::new();
    let found = METHODS.get_or_init(|| {
        let scratch = Scratch::new("live-methods");
        let (code, said) = told(&record_command("bpf", &scratch.file("it.joj"), &[&"true"]));
        if code == Some(0) {
            return vec!["ptrace", "bpf"];
        }
        eprintln!("not tested with eBPF: {said}");
        vec!["ptrace"]
    });
    found.clone()
}

/// True where these bytes are in the file.
pub fn has(path: &Path, word: &str) -> bool {
    std::fs::read(path).expect("a file").windows(word.len()).any(|window| window == word.as_bytes())
}
