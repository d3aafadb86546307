//! Goal: each program of lab/programs does what it declares, and the recording of it that joj brings says the same.
//! Method: a program prints what it declares (`--declare`), as its author counted it. The calls of a recording are counted one by one, apart
//! from SQLite's: a commit is a journal that is removed. So are those of a recording that is made here, without the pauses.

mod record;
mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use joj_analysis::recording::call::CallKind;
use record::{PRESENT, methods, record_command, rows};
use replay::{Scratch, joj, printed};
use serde_json::{Value, json};

/// Each recording, with its program and the words for it.
const WORKLOADS: [(&str, &str, &[&str]); 12] = [
    ("browser", "browser", &[]),
    ("browser-usb", "browser", &["--network", "usb"]),
    ("installer", "installer", &[]),
    ("launch-game", "launch", &["game"]),
    ("launch-weather", "launch", &["weather"]),
    ("launch-twitter", "launch", &["twitter"]),
    ("launch-gmail", "launch", &["gmail"]),
    ("feed", "feed", &[]),
    ("mail", "mail", &[]),
    ("maps", "maps", &[]),
    ("sql", "sql", &[]),
    ("background", "background", &[]),
];
/// Those of many calls.
const LONG: [&str; 4] = ["browser", "browser-usb", "sql", "background"];
/// Of these a recording is made in `make test`: they have few syncs.
const QUICK: [&str; 2] = ["launch-weather", "maps"];
/// The programs' directory in the recordings that joj brings.
const SHIPPED_DIRECTORY: &str = "/data/phone";
const O_CREAT: i64 = 0o100;
/// What kind of file was there before is in its flags (stat(2)).
const S_IFMT: i64 = 0o170_000;
const S_IFREG: i64 = 0o100_000;

fn lab(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab").join(name)
}

fn python(program: &str, words: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg(lab(&format!("programs/{program}.py"))).args(words);
    command
}

/// What the program declares, without what no call shows.
fn declared(program: &str, words: &[&str]) -> Value {
    let output = python(program, words).arg("--declare").output().expect("python3");
    let mut declared: Value = serde_json::from_str(&printed(&output)).expect("JSON");
    declared.as_object_mut().expect("an object").remove("received_bytes");
    declared
}

/// The same of a recording's calls below `directory`. Sizes of databases only where `databases` names them.
fn counted(recording: &Path, directory: &str, databases: &Value) -> Value {
    let mut open = BTreeMap::new();
    let (mut files, mut sizes) = (BTreeSet::new(), BTreeMap::new());
    let (mut written, mut read, mut commits, mut syncs, mut file_syncs) = (0, 0, 0, 0, 0);
    let directory = &format!("{directory}/");
    let is_database = |path: &str| path.ends_with(".db") || path.ends_with("-journal");
    for row in rows(recording) {
        let is_here = row.path.starts_with(directory);
        let at = open.get(&row.description).cloned().unwrap_or_default();
        let kind = CallKind::from_code(u8::try_from(row.code).expect("a code"));
        match kind {
            _ if row.code == PRESENT && is_here && row.flags & S_IFMT == S_IFREG => {
                files.insert(row.path);
            }
            Some(CallKind::Open) if row.result >= 0 => {
                if is_here && row.flags & O_CREAT != 0 {
                    files.insert(row.path.clone());
                }
                open.insert(row.description, row.path);
            }
            Some(CallKind::Unlink) if is_here && row.result == 0 => {
                commits += u64::from(row.path.ends_with(".db-journal"));
                files.remove(&row.path);
            }
            Some(CallKind::Rename) if is_here && files.remove(&row.path) => {
                files.insert(row.second_path);
            }
            Some(CallKind::Fsync | CallKind::Fdatasync) if at.starts_with(directory) => {
                syncs += 1;
                file_syncs += u64::from(files.contains(&at) && !is_database(&at));
            }
            _ if !at.starts_with(directory) => {}
            _ if row.is_write() && at.ends_with(".db") => {
                let size = sizes.entry(at).or_insert(0);
                *size = (row.offset + row.result).max(*size);
            }
            _ if row.is_write() && !is_database(&at) => written += row.result,
            _ if row.is_read() && !is_database(&at) => read += row.result,
            _ => {}
        }
    }
    files.retain(|path| !is_database(path));
    let name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut kib: BTreeMap<String, i64> = sizes.iter().map(|(path, size)| (name(path), size / 1024)).collect();
    kib.retain(|name, _| databases.get(name).is_some());
    json!({
        "files": files.len(), "file_bytes": written, "read_bytes": read, "commits": commits, "syncs": syncs,
        "file_syncs": file_syncs, "databases": kib,
    })
}

/// Compares the recordings that joj brings with what their programs declare.
fn check(is_meant: impl Fn(&str) -> bool) {
    let list = printed(&joj(&[&"lab", &"list"]));
    for (name, program, words) in WORKLOADS.into_iter().filter(|(name, ..)| is_meant(name)) {
        assert!(list.contains(&format!("\n{name} ")), "{name} is not in\n{list}");
        let declared = declared(program, words);
        let recording = lab(&format!("recordings/{name}.joj"));
        assert_eq!(counted(&recording, SHIPPED_DIRECTORY, &declared["databases"]), declared, "{name}");
    }
}

#[test]
fn the_recordings_that_joj_brings_are_of_the_programs_as_they_declare_themselves() {
    check(|name| !LONG.contains(&name));
}

/// Some 20,000 calls each, which take their time to be read: not in `make test`, but in `make soak`.
#[test]
fn so_are_the_long_ones_made_in_the_lab() {
    check(|name| LONG.contains(&name));
}

/// Records programs here, and compares the recordings with what they declare.
fn check_here(test: &str, is_meant: impl Fn(&str) -> bool) {
    let scratch = Scratch::new(test);
    for (name, program, words) in WORKLOADS.into_iter().filter(|(name, ..)| is_meant(name)) {
        let directory = scratch.file(name).display().to_string();
        let recording = scratch.file(&format!("{name}.joj"));
        let words = [words, &[directory.as_str(), "--pace", "0"]].concat();
        printed(&python(program, &words).arg("--prepare").output().expect("python3"));
        let script = lab(&format!("programs/{program}.py"));
        let mut command: Vec<&dyn AsRef<std::ffi::OsStr>> = vec![&"python3", &script];
        command.extend(words.iter().map(|word| word as &dyn AsRef<std::ffi::OsStr>));
        let method = methods().pop().expect("a method");
        printed(&record_command(method, &recording, &command));
        let declared = declared(program, &words);
        assert_eq!(counted(&recording, &directory, &declared["databases"]), declared, "{name}, {method}");
    }
}

#[test]
fn a_program_does_here_what_it_declares() {
    check_here("workloads", |name| QUICK.contains(&name));
}

/// They sync often: not in `make test`, but in `make soak`.
#[test]
fn the_other_programs_do_here_what_they_did_in_the_lab() {
    check_here("workloads-others", |name| !QUICK.contains(&name));
}

#[test]
fn a_recording_is_replayed_by_its_name() {
    let scratch = Scratch::new("workloads-names");
    let replayed =
        joj(&[&"replay", &"maps", &scratch.file(""), &"--order", &"fast", &"--check", &"--json", &"-"]);
    let replayed: Value = serde_json::from_str(&printed(&replayed)).expect("JSON");
    let syncs: u64 = replayed["syncs"].as_object().expect("counts").values().filter_map(Value::as_u64).sum();
    assert_eq!(Value::from(syncs), declared("maps", &[])["syncs"]);
    assert_eq!(scratch.names(), [""; 0], "all is removed");
}
