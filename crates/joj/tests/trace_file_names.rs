//! Goal: each byte stands under the name that its file had when it was written, and two files are never one.
//! Method: files of different sizes in directories as deep as programs make them and deeper than paths are told (eBPF), and under a
//! directory that is renamed before another takes its name; files that get each other's names, and files with two names; files from
//! before the capture that no sync call of their own writes.

mod trace;

use serde_json::Value;
use trace::volume::{has_backend, joj, volume_or_skip};

const PATHS: &str = "
import os, sys
place = sys.argv[1]
def write(name, kib):
    os.chdir(place)
    # Longer than a path may be that is named at once.
    *directories, last = name[1:].split('/')
    for directory in directories:
        os.path.exists(directory) or os.mkdir(directory)
        os.chdir(directory)
    file = os.open(last, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(file, b'x' * (kib << 10), 0)
    os.fsync(file)
    os.close(file)
    os.chdir(place)
deep = ''.join('/d%d' % number for number in range(100))
write('/p' + deep + '/x', 12)
write('/q' + deep + '/x', 20)
write('/r' + '/e' * 140 + '/x.db', 28)
write('/s' + '/e' * 140 + '/x.db', 36)
long = '/' + 'l' * 200
write('/t' + long * 30 + '/x', 40)
write('/u' + long * 30 + '/x', 44)
write('/v1/x', 4)
os.rename('v1', 'v2')
write('/v1/x', 8)
write('/v2/x', 64)
";

#[test]
fn each_file_has_its_own_name_however_deep_it_lies_and_whatever_is_renamed() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("bpf")) else { return };
        let json = volume.beside("summary.json");
        let command = ["/usr/bin/python3", "-c", PATHS, &volume.path().display().to_string()];
        let options = ["--backend", "bpf", "--json", &json.display().to_string()];
        let output = joj(&volume, &options, &[], &command.map(str::to_owned));
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        check(kind, &summary);
    }
}

fn check(kind: &str, summary: &Value) {
    let rows = summary["files"].as_array().expect("files");
    // Every byte is written once: all of a row is one file's.
    let path_of = |kib: u64| {
        let mut rows = rows.iter().filter(|row| row["written"]["bytes"].as_u64() == Some(kib << 10));
        let row = rows.next().unwrap_or_else(|| panic!("{kind}: no row of {kib} KiB: {summary}"));
        assert!(rows.next().is_none(), "{kind}: two rows of {kib} KiB");
        row["path"].as_str().expect("a path")
    };
    let deep: String = (0..100).map(|number| format!("/d{number}")).collect();
    assert_eq!([path_of(12), path_of(20)], [format!("/p{deep}/x"), format!("/q{deep}/x")], "{kind}");
    for cut in [28, 36, 40, 44].map(path_of) {
        assert!(cut.starts_with("…(inode "), "{kind}: {cut}");
    }
    assert!(path_of(28).ends_with("/e/x.db") && path_of(28) != path_of(36), "{kind}");
    assert!(path_of(40).ends_with("l/x") && path_of(40) != path_of(44), "{kind}");
    assert_eq!(path_of(64), "/v2/x", "{kind}");
    for kib in [4, 8] {
        assert!(path_of(kib).starts_with("/v1/x (inode "), "{kind}: {}", path_of(kib));
    }
    assert_eq!((rows.len(), &summary["files_not_named"]), (9, &Value::from(0)), "{kind}: {rows:?}");
}

const EXCHANGED_AND_LINKED: &str = "
import ctypes, os, sys
os.chdir(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def write(name, kib):
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    os.pwrite(file, b'x' * (kib << 10), 0)
    os.fsync(file)
    os.close(file)
def exchange(one, other):
    AT_FDCWD, EXCHANGE = -100, 2
    assert libc.renameat2(AT_FDCWD, one.encode(), AT_FDCWD, other.encode(), EXCHANGE) == 0
write('one', 4)
write('other', 8)
write('before', 16)
exchange('one', 'other')
os.rename('before', 'after')
write('one', 32)
write('other', 64)
write('after', 128)
write('first', 256)
os.link('first', 'second')
os.unlink('first')
write('second', 512)
write('kept', 1024)
os.link('kept', 'gone')
os.unlink('gone')
write('kept', 2048)
write('old', 12)
os.unlink('older')
write('old', 20)
os.sync()
";

#[test]
fn files_that_exchange_names_or_have_two_stand_under_the_name_they_had() {
    for (kind, backend) in
        ["ext4", "xfs", "btrfs"].into_iter().flat_map(|kind| [(kind, "bpf"), (kind, "tracefs")])
    {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend(backend)) else { return };
        let json = volume.beside("summary.json");
        std::fs::write(volume.path().join("old"), "").expect("a file");
        std::fs::hard_link(volume.path().join("old"), volume.path().join("older")).expect("its second name");
        let place = volume.path().display().to_string();
        let command = ["/usr/bin/python3", "-c", EXCHANGED_AND_LINKED, &place];
        let options = ["--backend", backend, "--json", &json.display().to_string()];
        let output = joj(&volume, &options, &[], &command.map(str::to_owned));
        assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
        let rows = summary["files"].as_array().expect("files");
        // What an inode is called besides its name does not matter here.
        let kib_of = |name: &str| {
            let is_it =
                |row: &&Value| row["path"].as_str().is_some_and(|path| path.split(" (").next() == Some(name));
            rows.iter()
                .filter(is_it)
                .map(|row| row["written"]["bytes"].as_u64().unwrap_or(0) >> 10)
                .sum::<u64>()
        };
        let names = ["/one", "/other", "/before", "/after", "/first", "/second", "/kept", "/gone"];
        let expected = [4 + 32, 8 + 64, 16, 128, 256, 512, 1024 + 2048, 0];
        assert_eq!(names.map(kib_of), expected, "{kind}, {backend}: {rows:#?}");
        let deleted = rows.iter().any(|row| row["deleted"] != Value::Bool(false));
        assert!(!deleted, "{kind}, {backend}: each file has a name still: {rows:#?}");
    }
}

/// Over what is there, so that no record of ext4 says where.
const OVERWRITTEN: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None)
for number in range(4):
    file = os.open(sys.argv[1] + '/n%d' % number, os.O_RDWR)
    os.pwrite(file, b'x' * (4096 << number), 0)
    if sys.argv[2] == 'sync_file_range':
        assert libc.sync_file_range(file, ctypes.c_long(0), ctypes.c_long(0), 7) == 0
    if sys.argv[2] == 'syncfs' and number == 3:
        assert libc.syncfs(file) == 0
if sys.argv[2] == 'sync':
    os.sync()
";

#[test]
fn a_file_from_before_has_its_name_whatever_call_writes_it() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("tracefs")) else { return };
        let names = [0, 1, 2, 3].map(|number| format!("/n{number}"));
        for name in &names {
            std::fs::write(volume.path().join(&name[1..]), vec![1; 1 << 16]).expect("a file");
        }
        for call in ["sync", "syncfs", "sync_file_range"] {
            volume.settle();
            let json = volume.beside("summary.json");
            let place = volume.path().display().to_string();
            let command = ["/usr/bin/python3", "-c", OVERWRITTEN, &place, call];
            let options = ["--backend", "tracefs", "--json", &json.display().to_string()];
            let output = joj(&volume, &options, &[], &command.map(str::to_owned));
            assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
            let summary: Value =
                serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON");
            let rows = summary["files"].as_array().expect("files");
            let bytes_of = |name: &String| {
                let mut rows = rows.iter().filter(|row| row["path"].as_str() == Some(name));
                rows.next().and_then(|row| row["written"]["bytes"].as_u64())
            };
            let expected = [4096, 8192, 16384, 32768].map(Some);
            assert_eq!(names.each_ref().map(bytes_of), expected, "{kind}, {call}: {rows:#?}");
        }
    }
}

/// Each number of KiB is written under one name. With pauses joj looks between any two steps, without at the end.
const MOVED: &str = "
import os, sys, time
os.chdir(sys.argv[1])
pause = float(sys.argv[2])
def write(file, kib):
    os.pwrite(file, b'x' * (kib << 10), 0)
    os.fsync(file)
    time.sleep(pause)
def make(name):
    return os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
old = os.open('old/file', os.O_RDWR)
write(old, 4)
os.rename('old', 'older')
write(old, 8)
os.makedirs('a/b')
file = make('a/b/file')
write(file, 16)
os.rename('a', 'c')
write(file, 32)
# Another takes the name that is free.
os.makedirs('a/b')
other = make('a/b/file')
write(other, 64)
os.rename('c/b', 'b')
write(file, 128)
write(other, 256)
os.makedirs('gone/below')
file = make('gone/below/file')
write(file, 512)
os.unlink('gone/below/file')
os.removedirs('gone/below')
os.rename('a', 'gone')
write(other, 1024)
os.close(file)
unnamed = os.open('.', os.O_RDWR | os.O_TMPFILE, 0o600)
write(unnamed, 2048)
os.close(unnamed)
time.sleep(0.3)
replaced = make('replaced')
write(replaced, 4096)
os.rmdir('c')
os.close(make('replacing'))
os.rename('replacing', 'replaced')
os.close(replaced)
time.sleep(0.3)
unnamed = os.open('.', os.O_RDWR | os.O_TMPFILE, 0o600)
write(unnamed, 8192)
time.sleep(0.3)
";

#[test]
fn tracefs_follows_directories_that_are_moved_and_gives_no_name_to_files_without() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(volume) = volume_or_skip(kind).filter(|_| has_backend("tracefs")) else { return };
        for pause in ["0.3", "0"] {
            let _ = std::fs::remove_dir_all(volume.path().join("older"));
            let _ = std::fs::remove_dir_all(volume.path().join("b"));
            let _ = std::fs::remove_dir_all(volume.path().join("gone"));
            let _ = std::fs::remove_file(volume.path().join("replaced"));
            std::fs::create_dir(volume.path().join("old")).expect("a directory");
            std::fs::write(volume.path().join("old/file"), vec![1; 1 << 16]).expect("a file");
            volume.settle();
            let runs = volume.beside("runs.csv");
            let place = volume.path().display().to_string();
            let command = ["/usr/bin/python3", "-c", MOVED, &place, pause];
            let export = format!("runs={}", runs.display());
            let options = ["--backend", "tracefs", "--export", &export];
            let output = joj(&volume, &options, &[], &command.map(str::to_owned));
            assert!(output.status.success(), "{kind}: {}", String::from_utf8_lossy(&output.stderr));
            let mut kib = std::collections::BTreeMap::new();
            for run in trace::runs::read(&runs) {
                if run["operation"] == "write" && run["class"] == "data" {
                    let name = run["file_path"].clone();
                    *kib.entry(name).or_insert(0) += run["byte_length"].parse::<u64>().expect("bytes") >> 10;
                }
            }
            let expected = [
                ("", 2048 + 8192),
                ("/a/b/file", 16 + 64 + 256),
                ("/b/file", 128),
                ("/c/b/file", 32),
                ("/gone/b/file", 1024),
                ("/gone/below/file", 512),
                ("/old/file", 4),
                ("/older/file", 8),
                ("/replaced", 4096),
            ];
            let expected = expected.map(|(name, kib)| (name.to_owned(), kib));
            assert_eq!(kib, expected.into(), "{kind}, {pause} s");
        }
    }
}
