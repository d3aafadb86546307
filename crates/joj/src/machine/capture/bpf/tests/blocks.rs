//! Goal: each request of a write is captured, with its file, on real filesystems.
//! Method: a filesystem in a loop device, one file operation under capture, its events looked at. Needs root, BTF, mkfs.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use joj_analysis::trace::event::{Backing, Content, Event, EventKind, Operation, RequestFlags};

use super::{assert_completed, captured, of_kind, settled_file, sync, volume, write_and_sync, writes};
use crate::machine::devices::disks;
use crate::machine::files::test_volume::TestVolume;

#[test]
fn write_and_fsync_on_ext4_is_one_data_block_then_descriptor_log_and_commit() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let path = settled_file(&mounted, "app.db");
    let known = fs::metadata(&path).expect("the file");
    let Some((events, texts)) = captured(&mounted, || write_and_sync(&path, 8192)) else { return };

    let data = writes(&events, Backing::File);
    assert_eq!(data.len(), 1, "one data block");
    assert_eq!((data[0].file.inode, data[0].offset, data[0].bytes), (known.ino(), 8192, 4096));
    assert_eq!((data[0].file.device, data[0].device), (mounted.disk(), mounted.disk()));
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
fn a_file_is_named_before_its_first_request_also_where_nobody_syncs_it() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let Some((events, texts)) = captured(&mounted, || {
        fs::write(mounted.path().join("page.bin"), [7; 8192]).expect("a file");
        sync(&mounted);
    }) else {
        return;
    };
    let inode = fs::metadata(mounted.path().join("page.bin")).expect("the file").ino();
    let of_file = |event: &&Event| event.file.inode == inode && event.file.device == mounted.disk();
    let first =
        events.iter().filter(of_file).find(|event| event.kind == EventKind::Queue).expect("a request");
    let named = events.iter().filter(of_file).find(|event| event.kind == EventKind::Named).expect("a name");
    assert_eq!(texts.get(named.name), "/page.bin");
    assert!(named.time_ns <= first.time_ns, "named {} ns after its request", named.time_ns - first.time_ns);
}

#[test]
fn an_inode_number_used_again_has_another_generation() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let path = mounted.path().join("app.db-journal");
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
    let Some(mounted) = volume(kind, mebibytes) else { return };
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

/// Into blocks that were reserved, and so are zeros: what a write leaves of its block is written, too, before it and behind it.
fn assert_padded(kind: &str, mebibytes: u64) {
    let Some(mounted) = volume(kind, mebibytes) else { return };
    let path = mounted.path().join("reserved.bin");
    let reserved = File::create(&path).expect("a file");
    rustix::fs::fallocate(&reserved, rustix::fs::FallocateFlags::empty(), 0, 65536).expect("room");
    reserved.sync_all().expect("a sync");
    let Some((events, _)) = captured(&mounted, || {
        let file = OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(&path).expect("O_DIRECT");
        let memory = vec![9_u8; 2 * 8192];
        let start = memory.as_ptr().align_offset(8192);
        for offset in [1024, 9216] {
            file.write_all_at(&memory[start..start + 512], offset).expect("a direct write");
        }
        file.write_all_at(&memory[start..start + 5120], 20480).expect("a direct write");
    }) else {
        return;
    };
    let direct = writes(&events, Backing::Direct);
    let mut places: Vec<_> = direct.iter().map(|run| (run.offset, run.bytes)).collect();
    places.sort_unstable();
    let first = [(0, 1024), (1024, 512), (1536, 2560)];
    let second = first.map(|(offset, bytes)| (offset + 8192, bytes));
    let third = [(20480, 5120), (25600, 3072)];
    assert_eq!(places, [&first[..], &second[..], &third[..]].concat(), "{kind}");
}

#[test]
fn zeros_around_a_direct_write_have_their_place_in_the_file() {
    assert_padded("ext4", 64);
    assert_padded("xfs", 320);
}

#[test]
fn xfs_writes_data_and_a_log_record() {
    let Some(mounted) = volume("xfs", 320) else { return };
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
    let Some(mounted) = volume("btrfs", 128) else { return };
    let path = settled_file(&mounted, "app.db");
    let inode = fs::metadata(&path).expect("the file").ino();
    let Some((events, _)) = captured(&mounted, || write_and_sync(&path, 4096)) else { return };
    let data = writes(&events, Backing::File);
    assert!(
        data.iter().all(|run| run.file.inode == inode)
            && data.iter().map(|run| run.bytes).sum::<u64>() == 4096
    );
    assert!(writes(&events, Backing::Device).iter().any(|run| run.offset == 65536), "the superblock");
    assert_completed(&events);

    // Another test's sync may commit everything between a write and its fsync: then there is nothing to log.
    let often = || (0..8).for_each(|_| write_and_sync(&path, 4096));
    let Some((events, _)) = captured(&mounted, often) else { return };
    let trees = writes(&events, Backing::Inner);
    let is_log = |run: &&Event| run.content == Content::BtrfsTree && run.detail == -6;
    assert!(trees.iter().any(is_log), "a log tree: {trees:?}");

    let commit = || {
        let file = OpenOptions::new().write(true).open(&path).expect("the file");
        file.write_all_at(&[8; 4096], 0).expect("room");
        rustix::fs::syncfs(&file).expect("a sync");
    };
    let Some((events, _)) = captured(&mounted, commit) else { return };
    let trees = writes(&events, Backing::Inner);
    assert!(!trees.is_empty() && !trees.iter().any(is_log), "a commit writes no log: {trees:?}");
}

/// Runs of one file that follow each other, without a gap.
fn assert_whole(events: &[Event], backing: Backing, inode: u64, bytes: u64, case: &str) {
    let mut runs: Vec<_> =
        writes(events, backing).into_iter().filter(|run| run.file.inode == inode).collect();
    runs.sort_by_key(|run| run.offset);
    assert!(runs.iter().all(|run| !run.flags.has(RequestFlags::CUT_SHORT)), "{case}");
    let mut next = 0;
    for run in &runs {
        assert_eq!(run.offset, next, "{case}: a gap or an overlap");
        next += run.bytes;
    }
    assert_eq!(next, bytes, "{case}");
}

#[test]
fn large_writes_are_captured_to_the_last_byte() {
    const BYTES: usize = 5 << 20;
    for (kind, mebibytes) in [("ext4", 64), ("xfs", 320), ("btrfs", 128)] {
        let Some(mounted) = volume(kind, mebibytes) else { continue };
        let path = mounted.path().join("large.bin");
        let Some((events, _)) = captured(&mounted, || {
            let mut file = File::create(&path).expect("a file");
            // Not a multiple of a page: the last block is written whole.
            file.write_all(&vec![5; BYTES - 100]).expect("room");
            file.sync_all().expect("a sync");
        }) else {
            return;
        };
        let inode = fs::metadata(&path).expect("the file").ino();
        assert_whole(&events, Backing::File, inode, BYTES as u64, kind);
        assert_completed(&events);
        if kind == "btrfs" {
            continue;
        }
        let Some((events, _)) = captured(&mounted, || {
            let file =
                OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(&path).expect("O_DIRECT");
            let memory = vec![9_u8; BYTES + 4096];
            let start = memory.as_ptr().align_offset(4096);
            file.write_all_at(&memory[start..start + BYTES], 0).expect("a direct write");
        }) else {
            return;
        };
        assert_whole(&events, Backing::Direct, inode, BYTES as u64, kind);
    }
}

#[test]
fn bytes_that_changed_since_a_block_was_logged_last_are_counted() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let path = settled_file(&mounted, "app.db");
    let Some((events, texts)) = captured(&mounted, || {
        for offset in [0, 4096] {
            // The time of change must differ, in any field of the inode.
            std::thread::sleep(std::time::Duration::from_millis(20));
            write_and_sync(&path, offset);
        }
    }) else {
        return;
    };
    let copies = writes(&events, Backing::Device)
        .into_iter()
        .filter(|run| run.content == Content::Other && texts.get(run.command).starts_with("jbd2/"));
    let changed: Vec<i64> = copies.map(|copy| copy.detail).collect();
    assert!(changed.len() >= 2 && changed[0] == 0, "{changed:?}");
    assert!(
        changed.iter().any(|bytes| (2..100).contains(bytes)),
        "times and checksum of one inode: {changed:?}"
    );
}

/// Writes, bytes written and flushes that a disk completed since it is there (the kernel's Documentation/block/stat.rst).
fn counters(mounted: &TestVolume) -> [u64; 3] {
    let counted = disks::counters(mounted.disk()).expect("its counters");
    [counted.writes, counted.written_bytes, counted.flushes]
}

/// Method: what the disk's own counters say of the same time. Something else may write to it just before or after the capture, and
/// some kernels run no eBPF program while some process of theirs is on the processor, so one of eight attempts must agree.
#[test]
fn no_request_is_missing_beside_the_kernels_own_counters() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let mut seen = Vec::new();
    for attempt in 0..8 {
        settled_file(&mounted, "app.db");
        let before = counters(&mounted);
        let work = || {
            for number in 0..50 {
                let path = mounted.path().join(format!("{attempt}-{number}"));
                let mut file = File::create(&path).expect("a file");
                file.write_all(&vec![1; 3000 * (number + 1)]).expect("room");
                file.sync_all().expect("a sync");
                fs::remove_file(path).expect("the file");
            }
            sync(&mounted);
        };
        let Some((events, _)) = captured(&mounted, work) else { return };
        let after = counters(&mounted);
        let done = |operation| {
            move |event: &&Event| event.kind == EventKind::Complete && event.operation == operation
        };
        // A write with FUA on a disk that has none is completed twice: with its bytes, and after the flush behind it.
        let writes: Vec<_> =
            events.iter().filter(done(Operation::Write)).filter(|event| event.bytes > 0).collect();
        let flushes = events.iter().filter(done(Operation::Flush)).count();
        // The kernel counts a bio that only asks for a flush as a write of nothing, beside the flush itself.
        let empty = of_kind(&events, EventKind::Queue)
            .into_iter()
            .filter(|event| event.operation == Operation::Flush)
            .count();
        let captured =
            [(writes.len() + empty) as u64, writes.iter().map(|event| event.bytes).sum(), flushes as u64];
        seen.push((captured, [after[0] - before[0], after[1] - before[1], after[2] - before[2]]));
        if seen.last().is_some_and(|(captured, counted)| captured == counted) {
            return;
        }
    }
    panic!("(captured, counted), each writes, bytes, flushes: {seen:?}");
}
