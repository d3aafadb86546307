//! Goal: each request of a write and fsync is captured, with its file, on a real filesystem.
//! Method: a filesystem in a loop device, one file operation under capture, its events looked at. Needs root, BTF, mkfs.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use joj_analysis::trace::event::{Backing, Content, DeviceNumber, Event, EventKind, Operation, RequestFlags};
use joj_analysis::trace::texts::Texts;

use super::BpfCapture;
use crate::machine::capture_selection::Selection;
use crate::machine::connection::Connection;
use crate::machine::sqlite_api::Api;

/// A filesystem of its own, gone when dropped.
struct Mounted {
    image: PathBuf,
    at: PathBuf,
    loop_device: Option<String>,
    disk: DeviceNumber,
}

/// Runs a command; its output, or `None` where it is missing or fails.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        println!("{program} {arguments:?}: {said}");
        return None;
    }
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

impl Mounted {
    /// `None`, with the reason printed, where this machine cannot do it.
    fn new(kind: &str, name: &str, mebibytes: u64) -> Option<Self> {
        let base = std::env::temp_dir().join(format!("joj-bpf-{}-{name}", std::process::id()));
        let mut mounted = Self {
            image: base.with_extension("image"),
            at: base,
            loop_device: None,
            disk: DeviceNumber::NONE,
        };
        if mounted.set_up(kind, mebibytes).is_none() {
            println!(
                "skipped: no loop device with {kind} here (root, losetup, mkfs.{kind} and mount are needed)"
            );
            return None;
        }
        Some(mounted)
    }

    fn set_up(&mut self, kind: &str, mebibytes: u64) -> Option<()> {
        File::create(&self.image).ok()?.set_len(mebibytes << 20).ok()?;
        fs::create_dir(&self.at).ok()?;
        let image = self.image.to_str()?;
        // Blocks of 4 KiB as on every disk: mkfs would give a small image blocks of 1 KiB.
        let blocks: &[&str] = if kind == "ext4" {
            &["-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
        } else {
            &[]
        };
        run(&format!("mkfs.{kind}"), &[&["-q"], blocks, &[image]].concat())?;
        let device = run("losetup", &["--find", "--show", image])?;
        self.loop_device = Some(device.clone());
        run("mount", &["-t", kind, "-o", "noatime", &device, self.at.to_str()?])?;
        let number = fs::metadata(&device).ok()?.rdev();
        let (major, minor) = (u32::try_from(number >> 8 & 0xfff).ok()?, u32::try_from(number & 0xff).ok()?);
        self.disk = DeviceNumber::new(major, minor)?;
        Some(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = run("umount", &[self.at.to_str().unwrap_or_default()]);
        if let Some(device) = &self.loop_device {
            let _ = run("losetup", &["--detach", device]);
        }
        let _ = fs::remove_dir(&self.at);
        let _ = fs::remove_file(&self.image);
    }
}

/// What `work` made the disk do, in order.
fn captured(mounted: &Mounted, work: impl FnOnce()) -> Option<(Vec<Event>, Texts)> {
    let selection =
        Selection { devices: vec![mounted.disk], process: Some(std::process::id()), log_contents: false };
    let mut capture = match BpfCapture::start(&selection) {
        Ok(capture) => capture,
        Err(reason) => {
            assert!(!may_trace(), "{reason}");
            println!("skipped: {reason}");
            return None;
        }
    };
    let (mut texts, mut events) = (Texts::default(), Vec::new());
    work();
    capture
        .poll(Duration::from_millis(20), &mut texts, &mut |event| events.push(event))
        .expect("a readable ring");
    let lost = capture.stop(&mut texts, &mut |event| events.push(event)).expect("a readable ring");
    assert_eq!(lost, 0);
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    for event in &events {
        println!("{event:?} {} {}", texts.get(event.command), texts.get(event.name));
    }
    Some((events, texts))
}

/// Root on a kernel with BTF: there a capture must work.
fn may_trace() -> bool {
    Path::new("/sys/kernel/btf/vmlinux").exists() && run("id", &["-u"]).as_deref() == Some("0")
}

fn writes(events: &[Event], backing: Backing) -> Vec<&Event> {
    let is_write = |event: &&Event| event.kind == EventKind::Queue && event.operation == Operation::Write;
    events.iter().filter(is_write).filter(|event| event.backing == backing).collect()
}

fn of_kind(events: &[Event], kind: EventKind) -> Vec<&Event> {
    events.iter().filter(|event| event.kind == kind).collect()
}

/// Writes 4 KiB at `offset` of a file that is there.
fn write_and_sync(path: &Path, offset: u64) {
    let file = OpenOptions::new().write(true).open(path).expect("the file");
    file.write_all_at(&[7; 4096], offset).expect("room");
    file.sync_all().expect("a sync");
}

/// A file of 64 KiB that is on disk, with everything about it.
fn settled_file(mounted: &Mounted, name: &str) -> PathBuf {
    let path = mounted.at.join(name);
    File::create(&path).expect("a file").write_all(&[1; 65536]).expect("room");
    run("sync", &[]).expect("sync");
    path
}

/// Every queued run is issued and completed: by sectors, as requests may merge.
fn assert_completed(events: &[Event]) {
    for run in of_kind(events, EventKind::Queue).into_iter().filter(|run| run.bytes > 0) {
        for kind in [EventKind::Issue, EventKind::Complete] {
            let covers =
                |event: &&Event| event.sector <= run.sector && event.end_sector() >= run.end_sector();
            let found = of_kind(events, kind)
                .into_iter()
                .filter(|event| event.time_ns >= run.time_ns)
                .any(|event| covers(&event));
            assert!(found, "{run:?} was queued, but no {}", kind.text());
        }
    }
    assert!(of_kind(events, EventKind::Complete).iter().all(|event| event.detail == 0));
}

#[test]
fn write_and_fsync_on_ext4_is_one_data_block_then_descriptor_log_and_commit() {
    let Some(mounted) = Mounted::new("ext4", "sync", 64) else { return };
    let path = settled_file(&mounted, "app.db");
    let known = fs::metadata(&path).expect("the file");
    let Some((events, texts)) = captured(&mounted, || write_and_sync(&path, 8192)) else { return };

    let data = writes(&events, Backing::File);
    assert_eq!(data.len(), 1, "one data block");
    assert_eq!((data[0].file.inode, data[0].offset, data[0].bytes), (known.ino(), 8192, 4096));
    assert_eq!((data[0].file.device, data[0].device), (mounted.disk, mounted.disk));
    assert!(data[0].flags.has(RequestFlags::SYNC));

    // Others may write back metadata at the same time.
    let by_journal = |event: &&Event| texts.get(event.command).starts_with("jbd2/");
    let log: Vec<_> = writes(&events, Backing::Device).into_iter().filter(by_journal).collect();
    assert_eq!(log.first().map(|block| block.content), Some(Content::JournalDescriptor));
    let commit = log.last().expect("a commit block");
    assert_eq!((commit.content, commit.bytes), (Content::JournalCommit, 4096));
    assert!(commit.flags.has(RequestFlags::PREFLUSH.with(RequestFlags::FUA)));
    let copies: Vec<_> = log.iter().filter(|block| block.content == Content::Other).collect();
    assert_eq!(log.len(), copies.len() + 2, "one descriptor, one commit block");
    assert!(!copies.is_empty() && log.is_sorted_by_key(|block| block.sector));
    assert!(
        copies.iter().all(|copy| copy.offset / 512 != copy.sector),
        "a copy's pages lie elsewhere than its log block"
    );

    let calls: Vec<_> =
        [EventKind::SyncBegin, EventKind::SyncEnd].map(|kind| of_kind(&events, kind)).concat();
    assert_eq!(calls.iter().map(|call| texts.get(call.name)).collect::<Vec<_>>(), ["fsync", "fsync"]);
    assert!(calls.iter().all(|call| call.file == data[0].file && call.process == std::process::id()));
    assert!(calls[0].time_ns < data[0].time_ns && commit.time_ns < calls[1].time_ns);
    assert!(events.iter().any(|event| event.kind == EventKind::Named
        && event.file == data[0].file
        && texts.get(event.name) == "/app.db"));
    let (begin, end) = (of_kind(&events, EventKind::JournalBegin), of_kind(&events, EventKind::JournalEnd));
    assert_eq!((begin.len(), end.len(), begin[0].detail), (1, 1, end[0].detail));
    assert_completed(&events);
}

#[test]
fn an_inode_number_used_again_has_another_generation() {
    let Some(mounted) = Mounted::new("ext4", "reuse", 64) else { return };
    let path = mounted.at.join("app.db-journal");
    let Some((events, texts)) = captured(&mounted, || {
        for _ in 0..3 {
            let mut file = File::create(&path).expect("a file");
            file.write_all(&[3; 4096]).expect("room");
            file.sync_all().expect("a sync");
            drop(file);
            fs::remove_file(&path).expect("the file");
        }
    }) else {
        return;
    };
    let mut files: Vec<_> = writes(&events, Backing::File).iter().map(|run| run.file).collect();
    files.dedup();
    assert_eq!(files.len(), 3);
    assert!(files.iter().all(|file| file.inode == files[0].inode), "ext4 takes the lowest free inode");
    assert!(files[0] != files[1] && files[1] != files[2] && files[0] != files[2], "generations differ");
    let gone = of_kind(&events, EventKind::Unlinked);
    assert_eq!(gone.iter().map(|event| event.file).collect::<Vec<_>>(), files);
    assert!(gone.iter().all(|event| texts.get(event.name) == "/app.db-journal" && event.detail == 0));
    let named = of_kind(&events, EventKind::Named);
    assert!(files.iter().all(|file| named.iter().any(|name| name.file == *file)));
}

fn assert_direct(kind: &str, mebibytes: u64) {
    let Some(mounted) = Mounted::new(kind, &format!("direct-{kind}"), mebibytes) else { return };
    let path = settled_file(&mounted, "direct.bin");
    let inode = fs::metadata(&path).expect("the file").ino();
    let Some((events, _)) = captured(&mounted, || {
        let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(&path).expect("O_DIRECT");
        let memory = vec![9_u8; 3 * 8192];
        let start = memory.as_ptr().align_offset(8192);
        file.write_all_at(&memory[start..start + 8192], 16384).expect("a direct write");
    }) else {
        return;
    };
    let direct = writes(&events, Backing::Direct);
    assert_eq!(direct.iter().map(|run| run.bytes).sum::<u64>(), 8192, "{kind}");
    assert_eq!((direct[0].file.inode, direct[0].offset), (inode, 16384), "{kind}");
    assert_completed(&events);
}

#[test]
fn direct_writes_know_their_file_and_offset() {
    assert_direct("ext4", 64);
    assert_direct("xfs", 320);
}

#[test]
fn xfs_writes_data_and_a_log_record() {
    let Some(mounted) = Mounted::new("xfs", "xfs", 320) else { return };
    let path = settled_file(&mounted, "app.db");
    let inode = fs::metadata(&path).expect("the file").ino();
    let Some((events, _)) = captured(&mounted, || write_and_sync(&path, 4096)) else { return };
    let data = writes(&events, Backing::File);
    assert_eq!((data.len(), data[0].file.inode, data[0].offset, data[0].bytes), (1, inode, 4096, 4096));
    let private = writes(&events, Backing::Private);
    assert!(!private.is_empty() && private.iter().all(|run| run.content == Content::XfsLog), "{private:?}");
    assert_completed(&events);
}

#[test]
fn btrfs_writes_data_trees_by_number_and_superblock() {
    let Some(mounted) = Mounted::new("btrfs", "btrfs", 128) else { return };
    let path = settled_file(&mounted, "app.db");
    let inode = fs::metadata(&path).expect("the file").ino();
    let Some((events, _)) = captured(&mounted, || write_and_sync(&path, 4096)) else { return };
    let data = writes(&events, Backing::File);
    assert!(
        data.iter().all(|run| run.file.inode == inode)
            && data.iter().map(|run| run.bytes).sum::<u64>() == 4096
    );
    let trees = writes(&events, Backing::Inner);
    assert!(
        trees.iter().any(|run| run.content != Content::BtrfsTree || run.detail == -6),
        "a log tree: {trees:?}"
    );
    assert!(writes(&events, Backing::Device).iter().any(|run| run.offset == 65536), "the superblock");
    assert_completed(&events);
}

/// Inserts a row with a commit of its own 2,000 times, in a new database; how long each took, in nanoseconds.
fn commit_times(directory: &Path, times: &mut Vec<u64>) {
    let api = Api::bundled();
    for name in ["cost.db", "cost.db-wal", "cost.db-shm"] {
        let _ = fs::remove_file(directory.join(name));
    }
    let connection = Connection::open(&api, directory.join("cost.db").to_str().expect("a plain path"))
        .expect("a database");
    for sql in ["PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "CREATE TABLE t(a, b)"] {
        connection.run(sql).expect("SQL");
    }
    let sql = "INSERT INTO t VALUES(?1, 'a hundred bytes, more or less, as in the papers')";
    let mut insert = connection.prepare(sql).expect("SQL");
    for number in 0..2000 {
        let start = Instant::now();
        insert.bind_number(1, number).expect("a number");
        insert.run().expect("an insert");
        times.push(u64::try_from(start.elapsed().as_nanos()).expect("short"));
    }
}

/// A measurement, not a promise: what a capture costs SQLite in WAL mode with synchronous=FULL. Alternated; on a machine with
/// other work the lower quantiles are those of commits that nobody disturbed.
#[test]
#[ignore = "takes half a minute, and joj built with --release"]
fn cost_of_a_capture() {
    let Some(mounted) = Mounted::new("ext4", "cost", 512) else { return };
    let selection =
        Selection { devices: vec![mounted.disk], process: Some(std::process::id()), log_contents: false };
    let (mut without, mut with, mut events) = (Vec::new(), Vec::new(), 0);
    commit_times(&mounted.at, &mut Vec::new());
    for _ in 0..20 {
        commit_times(&mounted.at, &mut without);
        let mut capture = BpfCapture::start(&selection).expect("a capture");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let (mut texts, mut count) = (Texts::default(), 0_u64);
                while !done.load(Ordering::Relaxed) {
                    capture
                        .poll(Duration::from_millis(100), &mut texts, &mut |_| count += 1)
                        .expect("a readable ring");
                }
                assert_eq!(capture.stop(&mut texts, &mut |_| count += 1).expect("a readable ring"), 0);
                count
            });
            commit_times(&mounted.at, &mut with);
            done.store(true, Ordering::Relaxed);
            events += reader.join().expect("the reader");
        });
    }
    without.sort_unstable();
    with.sort_unstable();
    println!("{} commits each, {events} events", with.len());
    for percent in [5, 10, 25, 50, 75] {
        let (off, on) = (without[without.len() * percent / 100], with[with.len() * percent / 100]);
        println!("p{percent}: {off} ns without, {on} ns with, {:+} ns", i128::from(on) - i128::from(off));
    }
}
