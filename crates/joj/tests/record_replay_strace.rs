//! Goal: a replay makes the calls of the program that was recorded, and leaves the files that it left.
//! Method: a program in C with every call that a recording has runs under strace; so does the replay of what strace wrote. Both texts
//! are counted here, by other means than the importer's.

mod replay;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Command;

use joj_analysis::recording::import::strace;
use joj_analysis::recording::page_transactions::derive::derive;
use replay::{Scratch, joj, printed, replay, told};

/// Calls by the name that every variant of them has here.
const NAMES: [(&str, &str); 45] = [
    ("open", "open"),
    ("openat", "open"),
    ("close", "close"),
    ("dup", "dup"),
    ("fcntl", "dup"),
    ("read", "read"),
    ("pread64", "pread"),
    ("readv", "readv"),
    ("preadv", "preadv"),
    ("preadv2", "preadv"),
    ("write", "write"),
    ("pwrite64", "pwrite"),
    ("writev", "writev"),
    ("pwritev", "pwritev"),
    ("pwritev2", "pwritev"),
    ("lseek", "lseek"),
    ("fsync", "fsync"),
    ("fdatasync", "fdatasync"),
    ("sync_file_range", "sync_file_range"),
    ("syncfs", "syncfs"),
    ("ftruncate", "ftruncate"),
    ("truncate", "truncate"),
    ("fallocate", "fallocate"),
    ("rename", "rename"),
    ("renameat", "rename"),
    ("renameat2", "rename"),
    ("link", "link"),
    ("linkat", "link"),
    ("symlink", "symlink"),
    ("symlinkat", "symlink"),
    ("unlink", "unlink"),
    ("mkdir", "mkdir"),
    ("mkdirat", "mkdir"),
    ("rmdir", "rmdir"),
    ("access", "access"),
    ("faccessat", "access"),
    ("chmod", "attributes"),
    ("fchmod", "attributes"),
    ("chown", "attributes"),
    ("lchown", "attributes"),
    ("fchown", "attributes"),
    ("fchownat", "attributes"),
    ("utimensat", "attributes"),
    ("fadvise64", "advice"),
    ("readahead", "advice"),
];

/// The program's text of strace's, recorded in a directory of its own.
struct Traced {
    scratch: Scratch,
    text: PathBuf,
    recording: PathBuf,
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: {program} is not there");
    }
    found
}

fn traced(test: &str) -> Option<Traced> {
    if !is_there("strace") || !is_there("cc") {
        return None;
    }
    let scratch = Scratch::new(test);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replay/program.c");
    let program = scratch.file("program");
    let built = Command::new("cc")
        .args(["-O1", "-static", "-pthread", "-o"])
        .args([&program, &source])
        .output()
        .expect("cc");
    if !built.status.success() {
        eprintln!("skipped: no static C library: {}", String::from_utf8_lossy(&built.stderr));
        return None;
    }
    let place = scratch.file("place");
    std::fs::create_dir(&place).expect("a directory");
    std::fs::write(place.join("old"), "PLANTED-SECRET ".repeat(2000)).expect("a file");
    let text = scratch.file("text");
    strace(&text, &[program.to_str().expect("a path"), place.to_str().expect("a path")]);
    let recording = scratch.file("recording.joj");
    printed(&joj(&[&"record", &"--import", &text, &"-o", &recording]));
    Some(Traced { scratch, text, recording })
}

fn strace(text: &Path, command: &[&str]) -> String {
    let output = Command::new("strace")
        .args(["-f", "-ttt", "-T", "-y", "-o"])
        .arg(text)
        .args(command)
        .output()
        .expect("strace");
    printed(&output)
}

/// Calls, and bytes that reads and writes moved, of the threads that `counts` takes.
fn count(text: &Path, counts: impl Fn(&str) -> bool) -> (BTreeMap<String, u64>, BTreeMap<String, i64>) {
    let (mut calls, mut bytes) = (BTreeMap::new(), BTreeMap::new());
    for line in std::fs::read_to_string(text).expect("a text").lines() {
        // strace pads a short number.
        let (thread, rest) = line.split_once(' ').expect("a thread");
        let (_, rest) = rest.trim_start().split_once(' ').expect("a time");
        if !counts(thread) {
            continue;
        }
        let is_resumed = rest.starts_with("<... ");
        let name = rest.trim_start_matches("<... ").split(['(', ' ']).next().expect("a name");
        let family = match name {
            "unlinkat" if rest.contains("AT_REMOVEDIR") => "rmdir",
            "unlinkat" => "unlink",
            "newfstatat" | "fstat" if name == "fstat" || rest.contains(", \"\", ") => "fstat",
            "newfstatat" | "stat" | "lstat" | "statx" => "stat",
            "fcntl" if !rest.contains("F_DUPFD") => continue,
            name => match NAMES.iter().find(|(known, _)| *known == name) {
                Some((_, family)) => family,
                None => continue,
            },
        };
        if !is_resumed {
            *calls.entry(family.to_owned()).or_default() += 1;
        }
        if (family.contains("read") || family.contains("write")) && !rest.contains("<unfinished") {
            let result =
                rest.rsplit(" = ").next().and_then(|result| result.split(' ').next()).expect("a result");
            *bytes.entry(family.to_owned()).or_default() += result.parse::<i64>().expect("bytes");
        }
    }
    (calls, bytes)
}

/// Names and sizes below a directory.
fn tree(place: &Path) -> String {
    printed(
        &Command::new("find")
            .arg(place)
            .args(["-mindepth", "1", "-printf", "%P %y %s\n"])
            .output()
            .expect("find"),
    )
    .lines()
    // A link's size is the length of what is in it; a directory's the filesystem's own affair.
    .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
        [name, kind @ ("d" | "l"), _] => format!("{name} {kind}\n"),
        _ => format!("{line}\n"),
    })
    .collect::<std::collections::BTreeSet<_>>()
    .into_iter()
    .collect()
}

#[test]
fn a_traced_replay_has_the_calls_and_bytes_of_the_traced_program() {
    let Some(traced) = traced("strace-calls") else { return };
    let (calls, bytes) = count(&traced.text, |_| true);
    for family in NAMES.iter().map(|(_, family)| *family).chain(["fstat", "stat"]) {
        assert!(calls.contains_key(family), "the program makes no {family}: {calls:?}");
    }
    let text = traced.scratch.file("again");
    let place = traced.scratch.file("here");
    std::fs::create_dir(&place).expect("a directory");
    let joj = env!("CARGO_BIN_EXE_joj");
    let words = [joj, "replay", traced.recording.to_str().expect("a path"), place.to_str().expect("a path")];
    let printed =
        strace(&text, &[&words[..], &["--order", "fast", "--check", "--keep", "--json", "-"]].concat());
    let found: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(found["differences"], serde_json::json!([]), "{found}");
    let kinds = found["by_call"].as_object().expect("calls");
    assert!(kinds.values().all(|kind| kind["differ"] == 0 && kind["not_made"] == 0), "{found}");
    // The first thread makes the files that are there before, and removes them.
    let lines = std::fs::read_to_string(&text).expect("a text");
    let main = lines.split(' ').next().expect("a thread").to_owned();
    assert_eq!(count(&text, |thread| thread != main), (calls, bytes));
    let kept = PathBuf::from(found["kept"].as_str().expect("a path"));
    let original = traced.scratch.file("place");
    let replayed = kept.join(original.canonicalize().expect("a path").strip_prefix("/").expect("absolute"));
    assert_eq!(tree(&replayed), tree(&original));
    assert!(tree(&original).contains("calls f 160027"), "{}", tree(&original));
}

#[test]
fn a_reader_sees_the_renamed_file_in_every_order() {
    let Some(traced) = traced("strace-threads") else { return };
    for round in 0..10 {
        let order = ["fast", "dependent", "timed"][round % 3];
        let found = replay(&traced.recording, traced.scratch.as_ref(), &["--order", order, "--check"]);
        assert_eq!(found["threads"], 4, "two threads and a child beside the first");
        let differ: Vec<_> = found["by_call"]
            .as_object()
            .expect("calls")
            .iter()
            .filter(|(_, kind)| kind["differ"] != 0)
            .collect();
        assert!(differ.is_empty(), "round {round}, {order}: {differ:?}");
        assert_eq!(found["differences"], serde_json::json!([]), "round {round}, {order}");
    }
}

#[test]
fn a_recording_has_no_contents_and_hides_names() {
    let Some(traced) = traced("strace-secrets") else { return };
    let has = |path: &Path, word: &str| {
        std::fs::read(path).expect("a file").windows(word.len()).any(|window| window == word.as_bytes())
    };
    assert!(has(&traced.text, "PLANTED") && has(&traced.recording, "half-done"));
    assert!(!has(&traced.recording, "PLANTED"));
    let hidden = traced.scratch.file("hidden.joj");
    printed(&joj(&[&"record", &"--import", &traced.text, &"-o", &hidden, &"--hide-names"]));
    for name in ["PLANTED", "half-done", "folder", "moved"] {
        assert!(!has(&hidden, name), "{name}");
    }
    let found = replay(&hidden, traced.scratch.as_ref(), &["--order", "fast", "--check"]);
    assert_eq!(found["differences"], serde_json::json!([]), "links point to hidden names");
}

/// The recording's think time is seconds; the signal comes in the middle of it.
#[test]
fn a_signal_ends_a_replay_and_its_files_go() {
    let scratch = Scratch::new("replay-signal");
    let text = "1 1700000000.0 open(\"/a/b\", O_RDWR|O_CREAT) = 3\n1 1700000060.0 fsync(3) = 0\n";
    let recording = replay::record(&scratch, "long", text);
    let before = scratch.names();
    for (order, signal) in [("dependent", "-INT"), ("timed", "-INT"), ("dependent", "-QUIT")] {
        let mut words = Command::new(env!("CARGO_BIN_EXE_joj"));
        let command = words.arg("replay").args([&recording, scratch.as_ref()]).args(["--order", order]);
        let child = command.stderr(std::process::Stdio::piped()).spawn().expect("joj");
        let begin = std::time::Instant::now();
        while scratch.names().len() == before.len() {
            assert!(begin.elapsed().as_secs() < 30, "no directory was made");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        std::thread::sleep(std::time::Duration::from_millis(300));
        assert!(
            Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success()
        );
        let output = child.wait_with_output().expect("joj ends");
        let (code, said) = told(&output);
        assert!(
            code == Some(130) && said.contains("stopped by a signal: what the replay made is removed"),
            "{code:?} {said}"
        );
        assert_eq!(scratch.names(), before, "{order} {signal}");
        assert!(begin.elapsed().as_secs() < 30, "it waited for the end");
    }
}

/// A link of the recording that points above everything, and a disk of 256 KiB, in a namespace where a user may mount one.
#[test]
fn no_call_leaves_the_directory_and_a_full_disk_is_told() {
    let scratch = Scratch::new("replay-borders");
    let text = "1 00:00:00.1 symlink(\"../../../../../../victim\", \"/a/b/link\") = 0
1 00:00:00.2 rename(\"/a/b/link\", \"/link\") = 0
1 00:00:00.3 open(\"/link\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 3
1 00:00:00.4 write(3, \"x\", 5) = 5
";
    let recording = replay::record(&scratch, "link", text);
    let found = replay(&recording, scratch.as_ref(), &["--check", "--keep"]);
    assert_eq!(
        (&found["differences"], &found["by_call"]["open"]["differ"]),
        (&serde_json::json!([]), &0.into())
    );
    let kept = Path::new(found["kept"].as_str().expect("a path"));
    assert_eq!(std::fs::metadata(kept.join("victim")).expect("below the directory").len(), 5);
    assert!(!Path::new("/victim").exists());

    let text = "1 00:00:00.1 open(\"/big\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3\n1 00:00:00.2 write(3, \"x\", 1048576) = 1048576\n\
        1 00:00:00.3 write(3, \"x\", 1048576) = 1048576\n";
    let recording = replay::record(&scratch, "full", text);
    let short = "1 00:00:00.1 open(\"/big\", O_WRONLY|O_CREAT|O_EXCL, 0644) = 3\n1 00:00:00.2 write(3, \"x\", 1048576) = 1048576\n\
        1 00:00:00.3 ftruncate(3, 0) = 0\n";
    let recording_short = replay::record(&scratch, "short", short);
    let before =
        "1 00:00:00.1 open(\"/big\", O_RDONLY) = 3\n1 00:00:00.2 pread64(3, \"x\", 10, 1048576) = 10\n";
    let recording_before = replay::record(&scratch, "before", before);
    let small = scratch.file("small");
    std::fs::create_dir(&small).expect("a directory");
    let files: String = (0..9)
        .map(|one| format!("1 00:00:00.1 open(\"/{one}\", O_RDWR|O_CREAT, 0644) = {}\n", one + 3))
        .collect();
    let recording_files = replay::record(&scratch, "files", &files);
    let script = "mount -t tmpfs -o size=256k,nr_inodes=8 none \"$1\" || exit 99; \"$2\" replay \"$3\" \"$1\"; code=$?; ls \"$1\"; exit $code";
    for (recording, what) in [
        (&recording, "write of 1048576 bytes "),
        (&recording_short, "write of 1048576 bytes wrote 2"),
        (&recording_before, "the files that were there before need 1,025 KiB, and 2"),
        (&recording_files, " failed; a file system without a free inode is full, too (df -i). Make room "),
    ] {
        let output = Command::new("unshare")
            .args(["-rm", "sh", "-c", script, "sh"])
            .arg(&small)
            .arg(env!("CARGO_BIN_EXE_joj"))
            .arg(recording)
            .output();
        let Some(output) = output.ok().filter(|output| !matches!(output.status.code(), Some(99) | None))
        else {
            eprintln!("skipped: no namespace to mount a small disk in");
            return;
        };
        let (code, said) = told(&output);
        if said.contains("unshare failed") {
            eprintln!("skipped: {said}");
            return;
        }
        assert!(
            code == Some(1) && said.contains("is full") && said.contains(what) && said.contains("Make room"),
            "{code:?} {said}"
        );
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "what it made is gone");
    }
}

/// Writers on one log, of which many are killed; some roll back what their cache did not hold. Word 2: `synchronous`.
const KILLED_WRITERS: &str = "
import os, random, signal, sqlite3, sys, time
draw = random.Random(7)
def connect():
    db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
    for pragma in ['synchronous=' + sys.argv[2], 'cache_size=5']:
        db.execute('PRAGMA ' + pragma)
    return db
db = connect()
db.execute('PRAGMA journal_mode=WAL')
db.execute('CREATE TABLE t(writer, number, b)')
db.close()
def write(writer):
    draw, db = random.Random(writer), connect()
    for number in range(12):
        db.execute('BEGIN IMMEDIATE')
        for row in range(draw.randint(1, 4)):
            db.execute('INSERT INTO t VALUES(?, ?, ?)', (writer, number, 'b' * draw.choice([50, 3000, 20000])))
        db.execute('ROLLBACK' if draw.random() < .2 else 'COMMIT')
children = []
for writer in range(20):
    child = os.fork()
    if not child:
        write(writer)
        os._exit(0)
    children.append(child)
    time.sleep(draw.random() / 15)
    if draw.random() < .7:
        os.kill(draw.choice(children[-4:]), signal.SIGKILL)
for child in children:
    os.waitpid(child, 0)
print(connect().execute('SELECT count(DISTINCT writer * 100 + number) FROM t').fetchone()[0])
";

/// `PRAGMA journal_mode=WAL` and the table are a commit each.
#[test]
fn commits_of_writers_that_are_killed_are_those_that_are_in_the_database() {
    let scratch = Scratch::new("strace-killed");
    let script = scratch.write("killed.py", KILLED_WRITERS);
    for synchronous in ["FULL", "NORMAL"] {
        let (database, text) = (scratch.file(&format!("{synchronous}.db")), scratch.file("text"));
        let words = ["-f", "-ttt", "-T", "-y", "-o"];
        let mut traced = Command::new("strace");
        traced.args(words).arg(&text).arg("/usr/bin/python3").args([&script, &database]).arg(synchronous);
        let output = match traced.output() {
            Ok(output) if output.status.success() => output,
            _ => return eprintln!("skipped: strace or python3 with sqlite3 is not there"),
        };
        let committed: usize = printed(&output).trim().parse().expect("a number");
        let text = File::open(&text).expect("a text");
        let recording = strace::import(BufReader::new(text)).expect("a recording");
        let found = derive(&recording).expect("commits");
        // Where nothing tells, the notes say so: at the end of a log.
        let doubtful = |begin: &str| {
            let note = found.notes.iter().find(|note| note.starts_with(begin));
            note.map_or(0, |note| {
                note.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a number")
            })
        };
        let (over, under) = (doubtful("Commits that may be none"), doubtful("Transactions whose journal"));
        let commits = found.commits.len();
        println!("{synchronous}: {commits} commits, {committed} and 2 in the database; {:?}", found.notes);
        assert!(
            (commits - over..=commits + under).contains(&(committed + 2)),
            "{commits}: {:?}",
            found.notes
        );
        assert!(over + under <= 5, "{:?}", found.notes);
    }
}
