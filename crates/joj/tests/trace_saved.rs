//! Goal: a saved trace says the same on every machine, without root, and damage is told and never read as a whole.
//! Method: traces recorded on ext4, XFS and Btrfs in fixtures/traces, each beside the text that joj prints of it, byte by byte.
//! With JOJ_WRITE_FIXTURES set those texts are written, to be read by a human before they are committed.

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Traces, without their ending. Four transactions with requests each, on a fresh filesystem.
const FIXTURES: [&str; 9] = [
    "ext4_delete",
    "ext4_wal",
    "ext4_wal_tracefs",
    "xfs_wal",
    "btrfs_wal",
    "f2fs_delete",
    "f2fs_delete_tracefs",
    "f2fs_wal",
    "nilfs2_wal",
];

const SUMMARY_DOCUMENT: &str = include_str!("../../../docs/trace_summary_format.md");
const TRACE_DOCUMENT: &str = include_str!("../../../docs/trace_format.md");

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces")
}

fn fixture(name: &str) -> PathBuf {
    fixtures().join(format!("{name}.parquet"))
}

/// A directory of one test; gone with the value.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("joj-trace-saved-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn holds(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.file(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).expect("the directory").flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(path: &Path, options: &[&str]) -> Output {
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    joj.args(["trace", "--read"]).arg(path).args(options).output().expect("joj")
}

/// What a reading that must succeed prints.
fn told(path: &Path, options: &[&str]) -> String {
    let output = read(path, options);
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn summary(path: &Path, options: &[&str]) -> Value {
    serde_json::from_str(&told(path, &[options, &["--json", "-"]].concat())).expect("JSON")
}

#[test]
fn each_trace_is_told_as_the_text_beside_it() {
    for name in FIXTURES {
        let told = told(&fixture(name), &["--steps=2"]);
        let path = fixtures().join(format!("{name}.txt"));
        if std::env::var_os("JOJ_WRITE_FIXTURES").is_some() {
            fs::write(&path, &told).expect("a text");
        }
        let wanted = fs::read_to_string(&path).expect("the text beside it");
        for (number, (told, wanted)) in told.lines().zip(wanted.lines()).enumerate() {
            assert_eq!(told, wanted, "line {} of {name}.txt", number + 1);
        }
        assert_eq!(told, wanted, "{name}.txt");
    }
}

#[test]
fn in_each_trace_every_byte_is_placed_and_nothing_is_lost() {
    for name in FIXTURES {
        let summary = summary(&fixture(name), &[]);
        assert_eq!((&summary["lost"], &summary["attributed_share"]), (&0.into(), &1.0.into()), "{name}");
        // Who opens a log first takes the lock and writes nothing: that is none.
        assert_eq!(summary["commits"]["total"], 4, "{name}");
        assert_eq!(summary["commits"]["with_requests"], 4, "{name}");
    }
}

/// It ends with 1, says each of the words, and shows nothing.
fn refused(path: &Path, words: &[&str]) {
    let output = read(path, &["--steps"]);
    let said = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing: {said}");
    }
}

#[test]
fn a_trace_that_was_cut_off_is_refused() {
    let scratch = Scratch::new("cut");
    let whole = fs::read(fixture("ext4_wal")).expect("the fixture");
    for bytes in [4, 100, whole.len() / 2, whole.len() - 1] {
        let cut = scratch.holds("cut.parquet", &whole[..bytes]);
        refused(&cut, &["cut.parquet was cut off or is damaged", "copy it again, or capture again"]);
    }
    let nothing = scratch.holds("nothing.parquet", b"");
    refused(&nothing, &["nothing.parquet"]);
}

#[test]
fn a_capture_under_way_is_refused() {
    let scratch = Scratch::new("part");
    let whole = fs::read(fixture("ext4_wal")).expect("the fixture");
    let part = scratch.holds("run.parquet.part", &whole[..whole.len() / 2]);
    refused(&part, &["still running or was interrupted", "delete it and capture again"]);
}

#[test]
fn a_text_that_is_no_trace_is_refused() {
    let scratch = Scratch::new("text");
    refused(&scratch.holds("notes.txt", b"Milk, bread, and a new disk.\n"), &["notes.txt"]);
    refused(&scratch.holds("notes.parquet", b"Milk, bread, and a new disk.\n"), &["no recording or trace"]);
    refused(&scratch.file("missing.parquet"), &["cannot read", "missing.parquet"]);
}

#[test]
fn a_newer_version_is_refused_with_the_remedy() {
    let scratch = Scratch::new("newer");
    let mut bytes = fs::read(fixture("ext4_wal")).expect("the fixture");
    let version = br#"{"version":1"#;
    let at = bytes.windows(version.len()).position(|window| window == version).expect("its version");
    bytes[at + version.len() - 1] = b'9';
    let newer = scratch.holds("newer.parquet", &bytes);
    refused(&newer, &["written by a newer joj (format 9", "upgrade this one"]);
}

#[test]
fn a_flipped_bit_is_refused_and_leaves_no_export() {
    let scratch = Scratch::new("bit");
    let mut bytes = fs::read(fixture("ext4_wal")).expect("the fixture");
    // In the pages of the first column: found when its row group is read, after the exports were begun.
    bytes[200] ^= 1;
    let damaged = scratch.holds("damaged.parquet", &bytes);
    refused(&damaged, &["is damaged", "take another copy of the file"]);
    let export = format!("csv={}", scratch.file("events.csv").display());
    assert_eq!(read(&damaged, &["--export", &export]).status.code(), Some(1));
    assert_eq!(scratch.names(), ["damaged.parquet"]);
}

/// At these places, counted from the end, the library that decodes such files panics: the first column would begin at a negative byte.
#[test]
fn of_a_file_at_which_the_library_gives_up_only_that_is_said() {
    let scratch = Scratch::new("panics");
    for place in [3727, 3724, 3634] {
        let mut bytes = fs::read(fixture("ext4_wal")).expect("a trace");
        let at = bytes.len() - place;
        bytes[at] ^= 1;
        let path = scratch.holds("forged.parquet", &bytes);
        let output = read(&path, &[]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && output.stdout.is_empty(), "{place}: {told}");
        assert!(told.starts_with("joj: ") && told.lines().count() == 1, "{place}: {told}");
        assert!(
            told.contains("is damaged") && told.contains("the Parquet library gave up"),
            "{place}: {told}"
        );
    }
}

#[test]
fn a_trace_goes_out_in_every_format() {
    let scratch = Scratch::new("formats");
    let formats = ["csv", "jsonl", "runs", "blkparse", "iolog", "perfetto"];
    let exports: Vec<String> =
        formats.iter().map(|format| format!("{format}={}", scratch.file(format).display())).collect();
    let options: Vec<&str> = exports.iter().flat_map(|export| ["--export", export]).collect();
    told(&fixture("ext4_delete"), &options);
    let sizes = formats.map(|format| fs::metadata(scratch.file(format)).expect("an export").len());
    assert!(sizes.iter().all(|bytes| *bytes > 1000), "{formats:?}: {sizes:?} bytes");
    let events = summary(&fixture("ext4_delete"), &[])["events"].as_u64().expect("a number");
    let lines = |format| fs::read_to_string(scratch.file(format)).expect("a text").lines().count() as u64;
    assert_eq!((lines("csv"), lines("jsonl")), (events + 1, events), "a line an event");
}

#[test]
fn blkparses_text_of_a_trace_has_the_same_writes() {
    let scratch = Scratch::new("blkparse");
    for name in FIXTURES {
        let text = scratch.file(name);
        let export = format!("blkparse={}", text.display());
        let whole = summary(&fixture(name), &["--export", &export]);
        let back = summary(&text, &[]);
        for counted in ["writes", "reads", "flushes"] {
            assert_eq!(whole["counts"][counted], back["counts"][counted], "{name}: {counted}");
        }
        assert_ne!(whole["counts"]["writes"]["bytes"], 0, "{name}");
    }
}

/// The text of a trace that comes through a pipe.
fn through_a_pipe(path: &Path) -> Output {
    let mut cat = Command::new("cat").arg(path).stdout(std::process::Stdio::piped()).spawn().expect("cat");
    let pipe = cat.stdout.take().expect("a pipe");
    let output = Command::new(env!("CARGO_BIN_EXE_joj")).args(["trace", "--read", "-"]).stdin(pipe).output();
    assert!(cat.wait().expect("cat").success());
    output.expect("joj")
}

#[test]
fn a_trace_that_comes_through_a_pipe_reads_as_the_file() {
    let imported = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/import");
    let scratch = Scratch::new("pipe");
    let single = scratch.file("single");
    fs::copy(imported.join("loop1.blktrace.0"), &single).expect("a copy");
    let texts = ["ext4_sqlite.ftrace", "loop1.blkparse"].map(|name| imported.join(name));
    for path in texts.into_iter().chain([single, fixture("ext4_wal")]) {
        let (whole, piped) = (read(&path, &[]), through_a_pipe(&path));
        assert!(whole.status.success() && !whole.stdout.is_empty(), "{}", path.display());
        let said = String::from_utf8_lossy(&piped.stderr);
        assert!(piped.status.success() && piped.stdout == whole.stdout, "{}: {said}", path.display());
    }
    let cut = scratch.file("cut");
    let text = fs::read(imported.join("loop1.blkparse")).expect("a text");
    fs::write(&cut, &text[..text.len() / 2]).expect("half of it");
    let piped = through_a_pipe(&cut);
    let said = String::from_utf8_lossy(&piped.stderr);
    assert_eq!((piped.status.code(), piped.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("standard input: line ") && said.contains("cut off"), "{said}");
}

#[test]
fn ctrl_c_ends_the_wait_for_a_pipe() {
    use std::io::Write;
    use std::process::Stdio;
    let mut joj = Command::new(env!("CARGO_BIN_EXE_joj"));
    joj.args(["trace", "--read", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut joj = joj.spawn().expect("joj");
    // The pipe stays open, and nothing more comes.
    let mut pipe = joj.stdin.take().expect("a pipe");
    pipe.write_all(b"8,0 1 1 0.000000000 1 Q WS 1000 + 8 [a]\n").expect("a line");
    // Behind the line's way through the pipe its reader waits again.
    std::thread::sleep(std::time::Duration::from_millis(500));
    let process = joj.id().to_string();
    assert!(Command::new("kill").args(["-INT", &process]).status().expect("kill").success());
    let output = joj.wait_with_output().expect("joj");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(130), 0), "{said}");
    assert!(said.contains("stopped by a signal"), "{said}");
    drop(pipe);
}

#[test]
fn a_long_text_fills_no_memory() {
    let scratch = Scratch::new("long");
    let long = scratch.file("long");
    let mut text = String::new();
    for number in 0..400_000_u64 {
        let (seconds, rest) = (number / 100_000, number % 100_000 * 10_000);
        let action = ["Q", "D", "C"][usize::try_from(number % 3).expect("small")];
        let end = if action == "C" { "[0]" } else { "[app]" };
        text += &format!("  8,0 0 {number} {seconds}.{rest:09} 7 {action} WS {} + 8 {end}\n", number / 3 * 8);
    }
    fs::write(&long, &text).expect("a text");
    // 40 MB of private memory, of which joj takes a third whatever the length; the text has 20 MB, and its events would have 60.
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -d 40000; exec \"$0\" trace --read \"$1\"", env!("CARGO_BIN_EXE_joj")]);
    let output = shell.arg(&long).output().expect("sh");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn an_export_that_cannot_be_written_whole_is_not_left_behind() {
    let scratch = Scratch::new("full");
    let export = |format: &str, name: &str| format!("{format}={}", scratch.file(name).display());
    let (good, bad) = (export("csv", "events.csv"), export("jsonl", "no/events.jsonl"));
    let output = read(&fixture("ext4_wal"), &["--export", &good, "--export", &bad]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("events.jsonl") && said.contains("give another FILE"), "{said}");

    // 512 bytes (dash) or 1 KiB (bash) are room for less than any of these.
    let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", limited, env!("CARGO_BIN_EXE_joj"), "trace", "--read"]).arg(fixture("ext4_wal"));
    let output =
        shell.args(["--export", &good, "--export", &export("runs", "runs.csv")]).output().expect("sh");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{said}");
    assert!(said.contains("cannot write") && said.contains(".csv"), "{said}");
    assert_eq!(scratch.names(), Vec::<String>::new());
}

/// Every key, but those of `bytes`, which are the classes' names.
fn keys(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                found.insert(key.clone());
                if key != "bytes" {
                    keys(value, found);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

fn all_named<'a>(names: impl Iterator<Item = &'a str>, document: &str, which: &str) {
    let is_named = |name: &str| ["", "[]"].iter().any(|list| document.contains(&format!("`{name}{list}`")));
    let missing: Vec<&str> = names.filter(|name| !is_named(name)).collect();
    assert!(missing.is_empty(), "{which} does not name {missing:?}");
}

#[test]
fn the_document_names_every_field_of_a_summary() {
    for name in FIXTURES {
        let mut summary = summary(&fixture(name), &["--steps=2"]);
        let (mut of_header, mut others) = (BTreeSet::new(), BTreeSet::new());
        keys(&summary["header"].take(), &mut of_header);
        keys(&summary, &mut others);
        assert!(of_header.len() > 30 && others.len() > 60, "{name}: {of_header:?} {others:?}");
        all_named(of_header.iter().map(String::as_str), TRACE_DOCUMENT, "trace_format.md");
        all_named(others.iter().map(String::as_str), SUMMARY_DOCUMENT, "trace_summary_format.md");
    }
}

#[test]
fn the_document_names_every_column_of_the_runs() {
    let scratch = Scratch::new("columns");
    let path = scratch.file("runs.csv");
    told(&fixture("ext4_wal"), &["--export", &format!("runs={}", path.display())]);
    let text = fs::read_to_string(&path).expect("the runs");
    let columns = text.lines().next().expect("names");
    let (_, section) = SUMMARY_DOCUMENT.split_once("## `--export runs=`").expect("their section");
    all_named(columns.split(','), section, "trace_summary_format.md, `--export runs=`,");
}

#[test]
fn the_guides_examples_are_what_joj_prints() {
    let guide = include_str!("../../../docs/tracing.md");
    let examples: Vec<&str> =
        guide.split("```text\n").skip(1).filter_map(|rest| rest.split("\n```").next()).collect();
    assert_eq!(examples.len(), 2);
    for (example, name) in examples.iter().zip(["ext4_delete", "ext4_wal"]) {
        assert!(told(&fixture(name), &["--steps=2"]).contains(example), "{name}");
    }
}

/// README shows some lines of one command, `...` for those between.
#[test]
fn readme_shows_what_the_command_prints() {
    let readme = include_str!("../../../README.md");
    let readme = readme.replace("\\\n", "");
    let command = readme
        .lines()
        .find_map(|line| {
            line.strip_prefix("target/release/joj trace --read fixtures/traces/ext4_delete.parquet ")
        })
        .expect("the command");
    let shown = readme.split("```text\n").find(|block| block.starts_with("commit 1")).expect("its output");
    let mut arguments = vec!["trace", "--read"];
    let file = fixture("ext4_delete");
    arguments.push(file.to_str().unwrap());
    let scratch = Scratch::new("readme");
    let picture = scratch.0.join("picture.svg");
    let (name, typed) = ("docs/pictures/ext4_delete.svg", "commits.svg");
    arguments.extend(
        command.split_whitespace().map(|word| if word == typed { picture.to_str().unwrap() } else { word }),
    );
    let output = Command::new(env!("CARGO_BIN_EXE_joj")).args(arguments).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let mut printed = printed.lines();
    for line in shown.lines().take_while(|line| !line.starts_with("```")).filter(|line| line.trim() != "...")
    {
        assert!(
            printed.any(|other| other == line),
            "README shows what was not printed, or not there: {line}"
        );
    }
    let shown = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    let drawn = fs::read_to_string(&picture).expect("the picture");
    assert!(
        drawn == fs::read_to_string(shown).expect("README's"),
        "README's picture is another: run its command"
    );
    assert!(drawn.starts_with("<svg xmlns=") && drawn.ends_with("</svg>\n"));
    let nothing = read(&fixture("ext4_delete"), &["--picture", "/no/such/place.svg"]);
    assert!(
        !nothing.status.success() && String::from_utf8_lossy(&nothing.stderr).contains("/no/such/place.svg")
    );
}

#[test]
fn no_result_is_written_over_another_or_over_the_trace() {
    let scratch = Scratch::new("twice");
    let trace = scratch.0.join("a.parquet");
    fs::copy(fixture(FIXTURES[0]), &trace).expect("a trace");
    let before = fs::read(&trace).expect("its bytes");
    let [trace_name, other] = [&trace, &scratch.0.join("./a.json")].map(|path| path.display().to_string());
    let export = format!("csv={}", scratch.0.join("a.json").display());
    for options in
        [&["--json", &trace_name][..], &["--save", &trace_name], &["--json", &other, "--export", &export]]
    {
        let output = read(&trace, options);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains("is named twice"), "{options:?}: {said}");
    }
    assert!(fs::read(&trace).expect("its bytes") == before && !scratch.0.join("a.json").exists());
    let twice = read(&trace, &["--json", "/dev/null", "--export", "csv=/dev/null"]);
    assert!(twice.status.success(), "a device keeps nothing");
}
