//! Goal: bytes belong to the file that they are written to or read from. Their memory may be another file's, and the filesystem may move
//! them. And a trace begins when its counting does.
//! Method: direct I/O with a mapping of another file or of a disk; encrypted files; a scrub; balances of Btrfs, between which files are written; a filesystem of which only a
//! subvolume is mounted.

mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;
use trace::counted::{agreeing, differences};
use trace::volume::{Volume, has_backend, joj, or_skip, run, volume_or_skip};

const BACKENDS: [&str; 2] = ["bpf", "tracefs"];

/// (directory): a file's mapping is written to another file, past the page cache, and what that has is read into it.
const FOREIGN_MEMORY: &str = "
import mmap, os, sys
memory = os.open(sys.argv[1] + '/memory', os.O_RDWR | os.O_CREAT, 0o600)
os.pwrite(memory, os.urandom(65536), 0)
os.fsync(memory)
mapping = mmap.mmap(memory, 65536)
file = os.open(sys.argv[1] + '/file', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
for piece in range(16):
    os.pwritev(file, [mapping], piece * 65536)
os.fsync(file)
os.close(file)
file = os.open(sys.argv[1] + '/file', os.O_RDONLY | os.O_DIRECT)
for piece in range(16):
    os.preadv(file, [mapping], piece * 65536)
os._exit(0)
";

/// (directory): the same while the mapping's pages are being written back, all the time. 16 MiB in all.
const MEMORY_UNDER_WRITEBACK: &str = "
import mmap, os, sys, threading
memory = os.open(sys.argv[1] + '/memory', os.O_RDWR | os.O_CREAT, 0o600)
os.pwrite(memory, os.urandom(262144), 0)
mapping = mmap.mmap(memory, 262144)
file = os.open(sys.argv[1] + '/file', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
ended = False
def write_back():
    while not ended:
        for page in range(0, 262144, 4096):
            mapping[page] = 1
        os.fsync(memory)
thread = threading.Thread(target=write_back)
thread.start()
for piece in range(64):
    os.pwritev(file, [mapping], piece % 4 * 262144)
ended = True
thread.join()
os._exit(0)
";

/// (directory): a directory whose files are encrypted (<linux/fscrypt.h>: AES-256-XTS for contents, a key of 64 bytes).
const ENCRYPT: &str = "
import fcntl, os, struct, sys
directory = sys.argv[1] + '/secret'
os.mkdir(directory)
place = os.open(directory, os.O_RDONLY)
key = bytearray(struct.pack('<II32sII', 2, 0, b'', 64, 0) + bytes(32) + b'k' * 64)
fcntl.ioctl(place, 0xc0506617, key, True)
fcntl.ioctl(place, 0x800c6613, struct.pack('<BBBBB3s', 2, 1, 4, 2, 0, b'') + bytes(key[8:24]))
";

/// (directory): one file is written through the page cache, in two pieces, and one through a mapping.
const WRITE_ENCRYPTED: &str = "
import mmap, os, sys
plain = os.open(sys.argv[1] + '/secret/plain', os.O_RDWR | os.O_CREAT, 0o600)
os.pwrite(plain, os.urandom(1 << 20), 0)
os.fsync(plain)
os.pwrite(plain, os.urandom(8192), 65536)
os.fsync(plain)
mapped = os.open(sys.argv[1] + '/secret/mapped', os.O_RDWR | os.O_CREAT, 0o600)
os.truncate(mapped, 65536)
mapping = mmap.mmap(mapped, 65536)
mapping[:] = os.urandom(65536)
os.fsync(mapped)
";

/// What joj says of a command on a volume.
fn summary_of(volume: &Volume, backend: &str, options: &[&str], command: &[&str]) -> Value {
    let json = volume.beside("summary.json").display().to_string();
    let options = [&["--backend", backend, "--json", &json], options].concat();
    volume.settle();
    let output =
        joj(volume, &options, &[], &command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    assert!(output.status.success(), "{backend}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(&json).expect("a summary")).expect("JSON")
}

/// KiB of each file, which were written or read.
fn kib_of_files(summary: &Value, direction: &str) -> BTreeMap<String, u64> {
    let files = summary["files"].as_array().expect("files").iter();
    let of = |file: &Value| {
        (
            file["path"].as_str().expect("a path").to_owned(),
            file[direction]["bytes"].as_u64().expect("bytes") / 1024,
        )
    };
    files.map(of).filter(|(_, kib)| *kib > 0).collect()
}

/// (directory): files whose every block begins like one of jbd2's, in each way in which a file is written. 4 MiB each.
const LIKE_A_JOURNAL: &str = "
import mmap, os, struct, sys
for kind in range(1, 6):
    content = (struct.pack('>II', 0xc03b3998, kind) + bytes(4088)) * 1024
    for name, flags in (('cached', 0), ('durable', os.O_DSYNC), ('direct', os.O_DIRECT)):
        file = os.open(f'{sys.argv[1]}/{name}{kind}', os.O_RDWR | os.O_CREAT | flags, 0o600)
        memory = mmap.mmap(-1, len(content))
        memory[:] = content
        os.writev(file, [memory])
        os.fsync(file)
        os.close(file)
";

/// A copy of a journal, or whatever begins like one. Where the journal has the data, it goes to the log, and later to the file's place.
#[test]
fn what_begins_like_a_journal_is_its_files() {
    const FILES_MIB: u64 = 5 * 3 * 4;
    // What is in a log of 8 MiB at the end need not have its place yet.
    for (mount, logged_mib) in [("noatime", 0), ("noatime,data=journal", 8)] {
        let volume = or_skip(Volume::create_with("ext4", &["-J", "size=8"], mount));
        let Some(volume) = volume.filter(|_| has_backend("bpf")) else { return };
        let place = volume.path().display().to_string();
        let summary = summary_of(&volume, "bpf", &[], &["/usr/bin/python3", "-c", LIKE_A_JOURNAL, &place]);
        let kib_of = |heading: &str, label: &str| {
            let headings = summary["counts"][heading].as_array().expect("headings").iter();
            let own = headings.filter(|one| one["label"] == label);
            own.map(|one| one["written"]["bytes"].as_u64().expect("bytes")).sum::<u64>() / 1024
        };
        let data_mib = kib_of("classes", "data").div_ceil(1024);
        assert!((FILES_MIB - logged_mib..=FILES_MIB).contains(&data_mib), "{mount}: {data_mib} MiB of data");
        for part in ["descriptor", "commit", "revoke", "journal superblock"] {
            let kib = kib_of("parts", &format!("journal: {part}"));
            assert!(kib < 1024, "{mount}: {kib} KiB are {part}");
        }
        assert!(kib_of("parts", "journal: commit") > 0, "{mount}: the journal's own");
    }
}

#[test]
fn direct_io_belongs_to_its_file_whoever_owns_the_memory() {
    for (kind, options) in
        [("ext4", "noatime"), ("xfs", "noatime"), ("btrfs", "noatime"), ("btrfs", "nodatacow")]
    {
        let Some(volume) = or_skip(Volume::create_with(kind, &[], options)) else { continue };
        for backend in BACKENDS.into_iter().filter(|backend| has_backend(backend)) {
            let place = volume.path().join(backend);
            std::fs::create_dir(&place).expect("a directory");
            let place = place.display().to_string();
            let command = ["/usr/bin/python3", "-c", FOREIGN_MEMORY, &place];
            let summary = summary_of(&volume, backend, &[], &command);
            let [written, read] = ["written", "read"].map(|direction| kib_of_files(&summary, direction));
            let [file, memory] = ["file", "memory"].map(|name| format!("/{backend}/{name}"));
            let expected = [(file.clone(), 1024), (memory.clone(), 64)];
            // What was read into it may be written back to it.
            let written = written.into_iter().map(|(name, kib)| {
                let kib = if name == memory && (64..=128).contains(&kib) { 64 } else { kib };
                (name, kib)
            });
            assert_eq!(written.collect::<BTreeMap<_, _>>(), expected.into(), "{kind}, {options}, {backend}");
            let of_file = read.get(&file).copied().unwrap_or(0);
            // Btrfs takes a block of it from the page cache now and then, or reads it again.
            assert!((1000..=1280).contains(&of_file), "{kind}, {options}, {backend}: {read:?}");
            assert!(read.get(&memory).is_none_or(|kib| *kib <= 64), "{kind}, {options}, {backend}: {read:?}");
        }
    }
}

#[test]
fn direct_io_belongs_to_its_file_while_its_memory_is_written_back() {
    // Copies: how often the disk has each byte of data.
    for (make, copies) in [(&[][..], 1), (&["-d", "dup"][..], 2)] {
        let volume = or_skip(Volume::create_with("btrfs", make, "nodatacow"));
        let Some(volume) = volume.filter(|_| has_backend("bpf")) else { return };
        let place = volume.path().display().to_string();
        let command = ["/usr/bin/python3", "-c", MEMORY_UNDER_WRITEBACK, &place];
        let summary = summary_of(&volume, "bpf", &[], &command);
        let written = kib_of_files(&summary, "written");
        assert_eq!(written.get("/file"), Some(&(copies * 16 * 1024)), "{make:?}: {written:?}");
    }
}

#[test]
fn what_is_encrypted_on_its_way_is_its_file_s() {
    let Some(volume) = or_skip(Volume::create_with("ext4", &["-O", "encrypt"], "noatime")) else { return };
    let place = volume.path().display().to_string();
    if let Err(error) = run(Command::new("/usr/bin/python3").args(["-c", ENCRYPT, &place])) {
        println!("skipped: no encrypted files: {error}");
        return;
    }
    for backend in BACKENDS.into_iter().filter(|backend| has_backend(backend)) {
        let summary = summary_of(&volume, backend, &[], &["/usr/bin/python3", "-c", WRITE_ENCRYPTED, &place]);
        let written = kib_of_files(&summary, "written");
        let expected = [("/secret/mapped".to_owned(), 64), ("/secret/plain".to_owned(), 1032)];
        assert_eq!(written, expected.into(), "{backend}");
        std::fs::remove_dir_all(volume.path().join("secret")).expect("removed");
        run(Command::new("/usr/bin/python3").args(["-c", ENCRYPT, &place])).expect("another one");
    }
}

/// (device, directory): a direct write of a file from a mapping of a disk.
const DEVICE_MEMORY: &str = "
import mmap, os, sys
disk = os.open(sys.argv[1], os.O_RDONLY)
mapping = mmap.mmap(disk, 1 << 20, mmap.MAP_SHARED, mmap.PROT_READ)
touched = [mapping[page] for page in range(0, 1 << 20, 4096)]
file = os.open(sys.argv[2] + '/file', os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
os.pwritev(file, [mapping], 0)
os._exit(0)
";

#[test]
fn direct_io_belongs_to_its_file_where_its_memory_is_a_disk_s() {
    for (kind, options) in [("ext4", "noatime"), ("btrfs", "nodatacow")] {
        let Some(volume) = or_skip(Volume::create_with(kind, &[], options)) else { continue };
        let place = volume.path().display().to_string();
        let disk = run(Command::new("findmnt").args(["-no", "SOURCE", &place])).expect("a disk");
        for backend in BACKENDS.into_iter().filter(|backend| has_backend(backend)) {
            let command = ["/usr/bin/python3", "-c", DEVICE_MEMORY, disk.trim(), &place];
            let summary = summary_of(&volume, backend, &[], &command);
            let written = kib_of_files(&summary, "written");
            assert_eq!(written.get("/file"), Some(&1024), "{kind}, {backend}: {written:?}");
            std::fs::remove_file(volume.path().join("file")).expect("removed");
        }
    }
}

/// (directory): all that is in use is read, and nothing of it is a file's that a program reads.
const SCRUB: &str = "btrfs scrub start -B $0 >/dev/null";

#[test]
fn what_a_scrub_reads_is_neither_data_nor_a_file_s() {
    let Some(volume) = volume_or_skip("btrfs") else { return };
    let place = volume.path();
    for number in 0..400 {
        std::fs::write(place.join(format!("small{number}")), "x".repeat(1500)).expect("a file");
    }
    let place = place.display().to_string();
    for backend in BACKENDS.into_iter().filter(|backend| has_backend(backend)) {
        let summary = summary_of(&volume, backend, &[], &["/bin/bash", "-c", SCRUB, &place]);
        let read = |class: &str| {
            let classes = summary["counts"]["classes"].as_array().expect("classes").iter();
            let of = classes.filter(|one| one["label"] == class);
            of.map(|one| one["read"]["bytes"].as_u64().expect("bytes")).sum::<u64>()
        };
        assert_eq!(read("data"), 0, "{backend}: {}", summary["counts"]["classes"]);
        assert!(read("unattributed") + read("metadata") > 1 << 20, "{backend}");
    }
}

/// (directory): four times files are written and all that there is is moved; then metadata alone.
const BALANCES: &str = "
set -e
for round in 1 2 3 4; do
    dd if=/dev/urandom of=$0/$round bs=64k count=8 conv=fsync status=none
    btrfs balance start --full-balance $0 >/dev/null
done
# Each takes new chunks, and other requests follow in the next polls.
for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
    btrfs balance start -m $0 >/dev/null
done
sync
";

#[test]
fn what_a_balance_moves_is_counted_once_and_is_no_block_of_a_tree() {
    for backend in BACKENDS {
        let Some(volume) = volume_or_skip("btrfs").filter(|_| has_backend(backend)) else { continue };
        let [runs, events] = ["runs.csv", "events.csv"].map(|name| volume.beside(name));
        let exports =
            [("runs", &runs), ("csv", &events)].map(|(what, file)| format!("{what}={}", file.display()));
        let place = volume.path().display().to_string();
        let options = ["--export", &exports[0], "--export", &exports[1]];
        let command = ["/bin/bash", "-c", BALANCES, &place];
        let summary = agreeing(|| summary_of(&volume, backend, &options, &command), |summary| summary);
        assert_eq!(differences(&summary), Vec::<&Value>::new(), "{backend}");
        let rows = std::fs::read_to_string(&events).expect("events");
        let requests = rows
            .lines()
            .filter(|line| [",queue,", ",issue,", ",complete,"].iter().any(|kind| line.contains(kind)));
        let mut once = BTreeSet::new();
        let twice: Vec<&str> = requests.filter(|line| !once.insert(*line)).collect();
        assert!(twice.is_empty(), "{backend}: {twice:?}");
        // Blocks of trees have 16 KiB each, twice. Data came as 64 KiB and more.
        let rows = std::fs::read_to_string(&runs).expect("runs");
        let mut lines = rows.lines();
        let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
        let column = |name| head.iter().position(|one| *one == name).expect("a column");
        let (class, bytes) = (column("class"), column("byte_length"));
        let of_data = |line: &&str| {
            let fields: Vec<&str> = line.split(',').collect();
            fields[class] == "metadata" && fields[bytes].parse::<u64>().is_ok_and(|bytes| bytes >= 256 << 10)
        };
        let wrong: Vec<&str> = lines.filter(of_data).collect();
        assert!(wrong.is_empty(), "{backend}: {wrong:?}");
    }
}

#[test]
fn files_have_names_where_only_their_subvolume_is_mounted() {
    let Some(volume) = volume_or_skip("btrfs") else { return };
    let place = volume.path();
    run(Command::new("btrfs").args(["subvolume", "create"]).arg(place.join("inner"))).expect("btrfs");
    let device = run(Command::new("findmnt").args(["-no", "SOURCE"]).arg(&place)).expect("findmnt");
    // Held while it is mounted nowhere: its loop device would go.
    let held = std::fs::File::open(device.trim()).expect("the loop device");
    run(Command::new("umount").arg(&place)).expect("umount");
    run(Command::new("mount").args(["-o", "subvol=inner", device.trim()]).arg(&place)).expect("mount");
    drop(held);
    let script =
        "for name in a b c; do dd if=/dev/urandom of=$0/$name bs=20k count=1 conv=fsync status=none; done";
    for backend in BACKENDS.into_iter().filter(|backend| has_backend(backend)) {
        let inside = place.join(backend);
        std::fs::create_dir(&inside).expect("a directory");
        let inside = inside.display().to_string();
        let summary = summary_of(&volume, backend, &[], &["/bin/sh", "-c", script, &inside]);
        let expected = ["a", "b", "c"].map(|name| (format!("/inner/{backend}/{name}"), 20));
        assert_eq!(kib_of_files(&summary, "written"), expected.into(), "{backend}");
        let limits = summary["header"]["inferred"].to_string();
        assert!(!limits.contains("cannot watch"), "{backend}: {limits}");
    }
}

#[test]
fn a_trace_begins_when_its_counting_does() {
    let Some(volume) = volume_or_skip("ext4").filter(|_| has_backend("bpf")) else { return };
    let now_ns = || {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        u64::try_from(now.tv_sec * 1_000_000_000 + now.tv_nsec).expect("after the boot")
    };
    let told = volume.path().join("told");
    let program = "import os, sys, time; at = time.clock_gettime_ns(time.CLOCK_MONOTONIC); \
                   file = open(sys.argv[1], 'w'); file.write(str(at)); file.flush(); os.fsync(file)";
    let launched_ns = now_ns();
    let command = ["/usr/bin/python3", "-c", program, &told.display().to_string()];
    let summary = summary_of(&volume, "bpf", &[], &command);
    let started_ns = summary["header"]["started_ns"].as_u64().expect("a time");
    let runs_ns: u64 = std::fs::read_to_string(&told).expect("a time").parse().expect("a number");
    // To load the programs takes longer than to start a command.
    let (before, after) = (started_ns - launched_ns, runs_ns - started_ns);
    assert!(after < before, "{before} ns before the trace begins, {after} ns from there to the command");
}

#[test]
fn zeroes_that_the_device_makes_are_written_and_told_apart() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    let device = run(Command::new("findmnt").args(["-no", "SOURCE"]).arg(volume.path())).expect("findmnt");
    // Room at the end that no file has.
    let at = |mib: u32| format!("-f -o $(({mib} << 20)) -l $((4 << 20)) {}", device.trim());
    let zero = format!("blkdiscard -z {} && blkdiscard {}", at(960), at(970));
    let text = volume.beside("blkparse.txt").display().to_string();
    let export = ["--export", &format!("blkparse={text}")];
    for backend in BACKENDS.into_iter().filter(|backend| has_backend(backend)) {
        let summary = summary_of(&volume, backend, &export, &["/bin/sh", "-c", &zero]);
        let disk = &summary["disks"][0];
        assert_eq!(disk["written"]["bytes"], disk["counted_written_bytes"], "{backend}: {disk}");
        assert_eq!(summary["counts"]["discards"]["bytes"], 8 << 20, "{backend}: {}", summary["counts"]);
        let back =
            run(Command::new(env!("CARGO_BIN_EXE_joj")).args(["trace", "--read", &text, "--json", "-"]))
                .expect("a summary");
        let back: Value = serde_json::from_str(&back).expect("JSON");
        for counted in ["writes", "reads", "discards", "flushes"] {
            assert_eq!(back["counts"][counted], summary["counts"][counted], "{backend}: {counted}");
        }
    }
}

/// (directory, file for the places): `f` loses three pages and gets two, and changes eight with `g`. Then both are written over.
/// The places are what the filesystem says at the end: name, first byte, first sector and sectors of each extent.
const SHIFTS: &str = "
import ctypes, fcntl, json, os, struct, sys
libc, PAGE = ctypes.CDLL(None, use_errno=True), 4096
files = {name: os.open(sys.argv[1] + '/' + name, os.O_RDWR) for name in 'fg'}
for mode, page, pages in (8, 10, 3), (32, 20, 2), (32, 0, 1):
    place = [ctypes.c_long(number * PAGE) for number in (page, pages)]
    assert libc.fallocate(files['f'], mode, *place) == 0, os.strerror(ctypes.get_errno())
EXT4_IOC_MOVE_EXT = 0xc028660f
fcntl.ioctl(files['f'], EXT4_IOC_MOVE_EXT, bytearray(struct.pack('<IIQQQQ', 0, files['g'], 40, 40, 8, 0)))
places = []
for name, file in files.items():
    os.pwrite(file, os.urandom(os.fstat(file).st_size), 0)
    os.fsync(file)
    FIEMAP, entries = 0xc020660b, bytearray(struct.pack('<QQIIII', 0, 1 << 62, 1, 0, 100, 0) + bytes(5600))
    fcntl.ioctl(file, FIEMAP, entries)
    for at in range(struct.unpack_from('<I', entries, 20)[0]):
        offset, byte, length = struct.unpack_from('<QQQ', entries, 32 + 56 * at)
        places.append(['/' + name, offset, byte // 512, length // 512])
json.dump(places, open(sys.argv[2], 'w'))
";

#[test]
fn bytes_that_were_moved_inside_a_file_or_to_another_are_where_the_filesystem_says() {
    for backend in BACKENDS.into_iter().filter(|backend| has_backend(backend)) {
        let Some(volume) = volume_or_skip("ext4") else { return };
        for name in ["f", "g"] {
            std::fs::write(volume.path().join(name), vec![7; 256 << 10]).expect("a file");
        }
        let [runs, places] = ["runs.csv", "places.json"].map(|name| volume.beside(name));
        let [directory, told] = [&volume.path(), &places].map(|path| path.display().to_string());
        let export = format!("runs={}", runs.display());
        let command = ["/usr/bin/python3", "-c", SHIFTS, &directory, &told];
        summary_of(&volume, backend, &["--export", &export], &command);
        let places: Vec<(String, u64, u64, u64)> =
            serde_json::from_slice(&std::fs::read(&places).expect("places")).expect("JSON");
        let rows = std::fs::read_to_string(&runs).expect("runs");
        let mut lines = rows.lines();
        let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
        let written = lines.map(|line| head.iter().copied().zip(line.split(',')).collect::<BTreeMap<_, _>>());
        let mut known = 0;
        for run in written.filter(|run| run["operation"] == "write") {
            let number = |name: &str| run[name].parse::<u64>().unwrap_or(0);
            for sector in number("first_sector")..number("first_sector") + number("byte_length") / 512 {
                let is_at = |place: &&(String, u64, u64, u64)| (place.2..place.2 + place.3).contains(&sector);
                let Some((name, offset, first, _)) = places.iter().find(is_at) else { continue };
                let expected = (name.as_str(), offset + (sector - first) * 512);
                let found = number("file_offset") + (sector - number("first_sector")) * 512;
                assert_eq!((run["file_path"], found), expected, "{backend}: sector {sector}");
                known += 1;
            }
        }
        assert_eq!(known, places.iter().map(|place| place.3).sum::<u64>(), "{backend}");
    }
}

/// (mount point, file): opens the file by its handle, with nothing of its directory in memory, and writes 64 KiB.
const BY_HANDLE: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
class Handle(ctypes.Structure):
    _fields_ = [('bytes', ctypes.c_uint), ('kind', ctypes.c_int), ('handle', ctypes.c_char * 128)]
handle, mount = Handle(128, 0), ctypes.c_int()
assert libc.name_to_handle_at(-100, sys.argv[2].encode(), ctypes.byref(handle), ctypes.byref(mount), 0) == 0
os.sync()
open('/proc/sys/vm/drop_caches', 'w').write('3')
file = libc.open_by_handle_at(os.open(sys.argv[1], os.O_RDONLY), ctypes.byref(handle), os.O_RDWR)
assert file >= 0, os.strerror(ctypes.get_errno())
os.pwrite(file, bytes(65536), 0)
os.fsync(file)
";

#[test]
fn a_file_that_was_opened_by_its_handle_is_not_called_the_root() {
    let Some(volume) = volume_or_skip("ext4") else { return };
    let inside = volume.path().join("below");
    std::fs::create_dir(&inside).expect("a directory");
    let file = inside.join("file");
    for backend in BACKENDS.into_iter().filter(|backend| has_backend(backend)) {
        std::fs::write(&file, "before").expect("a file");
        let [place, file] = [&volume.path(), &file].map(|path| path.display().to_string());
        let command = ["/usr/bin/python3", "-c", BY_HANDLE, &place, &file];
        let summary = summary_of(&volume, backend, &[], &command);
        let kib = kib_of_files(&summary, "written");
        assert_eq!(kib.values().sum::<u64>(), 64, "{backend}: {kib:?}");
        assert!(kib.keys().all(|path| path.is_empty() || path == "/below/file"), "{backend}: {kib:?}");
    }
}
