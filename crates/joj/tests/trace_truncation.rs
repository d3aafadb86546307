//! Goal: a block belongs to the file that it was written for, also when a file that had it before gave it up by being cut: by its
//! path, by being opened with O_TRUNC, by its descriptor.
//! Method: a filesystem so full that the next file must take the blocks of the one that was cut.

mod trace;

use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::MetadataExt;

use serde_json::Value;
use trace::runs::{Line, number, read};
use trace::volume::{Volume, has_backend, joj, or_skip, volume_or_skip};

/// Eight files of 8 MiB, of which each but the first has to take the room of the one before it.
const CUTS: &str = "
import os, sys
place = sys.argv[1]
def path(number):
    return f'{place}/file{number}'
def write(number):
    with open(path(number), 'wb') as file:
        file.write(os.urandom(8 << 20))
        file.flush()
        os.fsync(file.fileno())
def truncate(name):
    os.truncate(name, 0)
def trunc_open(name):
    os.close(os.open(name, os.O_WRONLY | os.O_TRUNC))
def ftruncate(name):
    with open(name, 'r+b') as file:
        os.ftruncate(file.fileno(), 0)
def part(name):
    os.truncate(name, 4096)
for number in range(8):
    write(number)
    if number < 7:
        [truncate, trunc_open, ftruncate, part][number % 4](path(number))
        os.sync()
";
const BYTES: i64 = 8 << 20;

/// A file of 64 blocks gives up the first sixty, on a filesystem that has no others left. Then directories take them.
const HOLE: &str = "
import ctypes, os, sys
place, how = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
def fallocate(file, mode, begin, length):
    return libc.fallocate(file, mode, ctypes.c_long(begin), ctypes.c_long(length))
file = os.open(place + '/a', os.O_RDWR | os.O_CREAT)
os.pwrite(file, os.urandom(64 * 4096), 0)
os.fsync(file)
os.mkdir(place + '/d')
device = os.stat(place).st_dev
name = os.path.basename(os.path.realpath(f'/sys/dev/block/{os.major(device)}:{os.minor(device)}'))
open(f'/sys/fs/ext4/{name}/reserved_clusters', 'w').write('0')
rest = os.open(place + '/rest', os.O_RDWR | os.O_CREAT)
step = 1 << 30
while step >= 4096:
    if fallocate(rest, 0, os.fstat(rest).st_size, step) != 0:
        step //= 2
os.sync()
fallocate(file, {'punch': 3, 'collapse': 8}[how], 0, 60 * 4096)
os.sync()
for number in range(20):
    os.mkdir(f'{place}/d/{number}')
os.sync()
";

/// Leaves 12 MiB of the volume.
fn fill(volume: &Volume) {
    let facts = rustix::fs::statvfs(volume.path().as_path()).expect("the volume");
    let bytes = (facts.f_bavail * facts.f_frsize).saturating_sub(12 << 20);
    let file = std::fs::File::create(volume.path().join("filler")).expect("a file");
    let mode = rustix::fs::FallocateFlags::empty();
    rustix::fs::fallocate(&file, mode, 0, bytes).expect("room");
    volume.settle();
}

fn check(kind: &str, backend: &str) {
    let Some(volume) = volume_or_skip(kind).filter(|_| has_backend(backend)) else { return };
    fill(&volume);
    let (table, script) = (volume.beside("runs.csv"), volume.beside("cuts.py"));
    std::fs::write(&script, CUTS).expect("a script");
    let export = format!("runs={}", table.display());
    let mounted = volume.path().display().to_string();
    let command = ["/usr/bin/python3", &script.display().to_string(), &mounted].map(str::to_owned);
    let options = ["--backend", backend, "--export", &export, "--json", "/dev/null"];
    let output = joj(&volume, &options, &[], &command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = read(&table);
    let writes = || lines.iter().filter(|line| line["operation"] == "write");
    // By inode: what a kernel thread writes before anybody names the file has no name yet. All eight are there until the end.
    let mut bytes_of: HashMap<i64, i64> = HashMap::new();
    let mut sectors: Vec<(i64, BTreeSet<i64>)> = Vec::new();
    for line in writes().filter(|line| line["class"] == "data") {
        let inode = number(line, "file_inode");
        *bytes_of.entry(inode).or_default() += number(line, "byte_length");
        if sectors.last().is_none_or(|(last, _)| *last != inode) {
            sectors.push((inode, BTreeSet::new()));
        }
        sectors.last_mut().expect("pushed").1.extend(blocks(line));
    }
    // One file after the other, and none twice: a block of the next that was taken for one of the last would mix them.
    let inode_of = |file| std::fs::metadata(volume.path().join(format!("file{file}"))).expect("a file").ino();
    let inodes: Vec<i64> = (0..8).map(|file| inode_of(file).cast_signed()).collect();
    assert_eq!(sectors.iter().map(|(inode, _)| *inode).collect::<Vec<_>>(), inodes, "{kind}, {backend}");
    for (inode, bytes) in bytes_of {
        assert_eq!(bytes, BYTES, "{kind}, {backend}: inode {inode}");
    }
    let reused = sectors.windows(2).filter(|two| two[0].1.intersection(&two[1].1).next().is_some()).count();
    assert!(reused >= 5, "{kind}, {backend}: blocks are used again, or this test shows nothing: {reused}");
    assert!(writes().all(|line| line["class"] != "unattributed"), "{kind}, {backend}");
}

/// First sectors of the 4 KiB of a run.
fn blocks(line: &Line) -> impl Iterator<Item = i64> + use<> {
    let (first, bytes) = (number(line, "first_sector"), number(line, "byte_length"));
    (0..bytes / 4096).map(move |block| first + block * 8)
}

#[test]
fn blocks_that_a_cut_file_gave_up_are_their_next_files_on_ext4() {
    check("ext4", "bpf");
    check("ext4", "tracefs");
}

#[test]
fn blocks_that_a_cut_file_gave_up_are_their_next_files_on_xfs() {
    check("xfs", "bpf");
    check("xfs", "tracefs");
}

#[test]
fn blocks_of_a_hole_that_directories_take_are_no_files_any_more() {
    let Some(volume) = or_skip(Volume::create_with("ext4", &["-m", "0"], "noatime")) else { return };
    let script = volume.beside("hole.py");
    std::fs::write(&script, HOLE).expect("a script");
    for (backend, how) in [("bpf", "punch"), ("tracefs", "punch"), ("tracefs", "collapse")] {
        if !has_backend(backend) {
            continue;
        }
        let json = volume.beside("hole.json");
        let place = volume.path().display().to_string();
        let command = ["/usr/bin/python3", script.to_str().expect("UTF-8"), &place, how].map(str::to_owned);
        let options = ["--backend", backend, "--json", json.to_str().expect("UTF-8")];
        let output = joj(&volume, &options, &[], &command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let summary: Value = serde_json::from_slice(&std::fs::read(&json).expect("JSON")).expect("JSON");
        let files = summary["files"].as_array().expect("files");
        let file = files.iter().find(|file| file["path"] == "/a").expect("the file");
        assert_eq!(file["written"]["bytes"], 64 * 4096, "{backend}, {how}");
        for name in ["a", "rest"] {
            std::fs::remove_file(volume.path().join(name)).expect("it was there");
        }
        std::fs::remove_dir_all(volume.path().join("d")).expect("it was there");
        volume.settle();
    }
}
