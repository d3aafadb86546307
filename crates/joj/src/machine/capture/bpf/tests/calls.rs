//! Goal: calls that make something durable, and SQLite's locks, are captured with the file that they are about.
//! Method: one such call after the other in a filesystem of its own. Needs root, BTF, mkfs.

use std::fs::{self, OpenOptions};
use std::io::{IoSlice, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};

use joj_analysis::trace::event::{EventKind, FileKey};

use super::{captured, of_kind, settled_file, volume};
use crate::machine::sqlite::connection::Connection;
use crate::machine::sqlite::sqlite_api::Api;

/// So many captures are made; one must be right. eBPF cannot look up the mapping of an `msync` while another thread of the process, a
/// test's, changes mappings.
const ATTEMPTS: usize = 5;

#[test]
fn every_kind_of_durable_call_has_a_begin_an_end_and_its_file() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let path = settled_file(&mounted, "app.db");
    let inode = fs::metadata(&path).expect("the file").ino();
    let work = || {
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("the file");
        file.sync_data().expect("fdatasync");
        let flags = libc::SYNC_FILE_RANGE_WRITE;
        // SAFETY: no memory is touched, the descriptor is open.
        assert_eq!(unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 4096, flags) }, 0);
        // SAFETY: a new mapping of an open file of at least that length.
        let map = unsafe {
            libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_WRITE, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(map, libc::MAP_FAILED);
        // SAFETY: mapped above, whole.
        assert_eq!(unsafe { libc::msync(map, 4096, libc::MS_SYNC) }, 0);
        // SAFETY: mapped above and not used any more.
        assert_eq!(unsafe { libc::munmap(map, 4096) }, 0);
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::syncfs(file.as_raw_fd()) }, 0);
        let durable =
            OpenOptions::new().write(true).custom_flags(libc::O_DSYNC).open(&path).expect("the file");
        durable.write_all_at(&[3; 4096], 12288).expect("a write");
        file.write_all_at(&[4; 4096], 0).expect("a write that is not durable");
        file.set_len(20000).expect("ftruncate");
    };
    let mut expected = Vec::new();
    for name in ["fdatasync", "sync_file_range", "msync", "syncfs"] {
        expected
            .extend([EventKind::SyncBegin, EventKind::SyncEnd].map(|kind| (kind, name.to_owned(), inode)));
    }
    expected.extend(
        [EventKind::DurableWrite, EventKind::SyncEnd].map(|kind| (kind, "pwrite64".to_owned(), inode)),
    );
    let mut seen = Vec::new();
    let events = loop {
        let Some((events, texts)) = captured(&mounted, work) else { return };
        let calls: Vec<_> = events
            .iter()
            .filter(|event| {
                [EventKind::SyncBegin, EventKind::SyncEnd, EventKind::DurableWrite].contains(&event.kind)
            })
            .map(|event| (event.kind, texts.get(event.name).to_owned(), event.file.inode))
            .collect();
        if calls == expected {
            break events;
        }
        seen.push(calls);
        assert!(seen.len() < ATTEMPTS, "not {expected:?} but {seen:?}");
    };
    let write = of_kind(&events, EventKind::DurableWrite)[0];
    assert_eq!((write.offset, write.bytes), (12288, 4096));
    let cut = of_kind(&events, EventKind::Truncated);
    assert_eq!(cut.iter().map(|event| (event.file.inode, event.bytes)).collect::<Vec<_>>(), [(inode, 20000)]);
}

#[test]
fn a_durable_write_without_bytes_is_no_call() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let path = settled_file(&mounted, "app.db");
    let work = || {
        let durable = OpenOptions::new().write(true).custom_flags(libc::O_DSYNC).open(&path);
        let mut durable = durable.expect("the file");
        let (none, some) = (IoSlice::new(&[]), IoSlice::new(&[3; 4096]));
        for pieces in [&[][..], &[none], &[none, none, none], &[none, some], &[some]] {
            let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
            assert_eq!(durable.write_vectored(pieces).expect("room"), bytes);
        }
        assert_eq!(durable.write(&[]).expect("room"), 0);
    };
    let Some((events, _)) = captured(&mounted, work) else { return };
    let told = [EventKind::DurableWrite, EventKind::SyncEnd].map(|kind| of_kind(&events, kind).len());
    assert_eq!(told, [2, 2]);
}

#[test]
fn what_is_about_no_file_is_no_call() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let path = settled_file(&mounted, "app.db");
    let work = || {
        // SAFETY: no memory is touched; nothing has a number that high.
        assert_eq!(unsafe { libc::fsync(99_999) }, -1);
        // SAFETY: no memory is touched; no descriptor is negative.
        assert_eq!(unsafe { libc::fdatasync(-1) }, -1);
        let named = OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(&path).expect("the file");
        // SAFETY: the descriptor is open, for its path alone.
        assert_eq!(unsafe { libc::fsync(named.as_raw_fd()) }, -1);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping of memory.
        let map = unsafe { libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_WRITE, flags, -1, 0) };
        assert_ne!(map, libc::MAP_FAILED);
        // SAFETY: mapped above, whole.
        assert_eq!(unsafe { libc::msync(map, 4096, libc::MS_SYNC) }, 0);
        // SAFETY: mapped above and not used any more.
        assert_eq!(unsafe { libc::munmap(map, 4096) }, 0);
    };
    let mut seen = Vec::new();
    while seen.len() < ATTEMPTS && seen.last() != Some(&[0, 0]) {
        let Some((events, _)) = captured(&mounted, work) else { return };
        seen.push([EventKind::SyncBegin, EventKind::SyncEnd].map(|kind| of_kind(&events, kind).len()));
    }
    assert_eq!(seen.last(), Some(&[0, 0]), "{seen:?}");
}

#[test]
fn a_file_that_is_cut_by_its_path_or_by_opening_it_is_told() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let Some(mounted) = volume(kind, 512) else { continue };
        let path = settled_file(&mounted, "app.db");
        let inode = fs::metadata(&path).expect("the file").ino();
        let c_path = std::ffi::CString::new(path.to_str().expect("a plain path")).expect("a path");
        let Some((events, texts)) = captured(&mounted, || {
            // SAFETY: the path ends with a zero.
            assert_eq!(unsafe { libc::truncate(c_path.as_ptr(), 4096) }, 0);
            OpenOptions::new().write(true).open(&path).expect("an open that cuts nothing");
            OpenOptions::new().write(true).truncate(true).open(&path).expect("the file");
            fs::write(mounted.path().join("new"), "x").expect("a file that was not there");
            // SAFETY: the path ends with a zero.
            let descriptor = unsafe { libc::creat(c_path.as_ptr(), 0o600) };
            assert!(descriptor >= 0);
            // SAFETY: opened above, closed once.
            assert_eq!(unsafe { libc::close(descriptor) }, 0);
        }) else {
            return;
        };
        let cut = of_kind(&events, EventKind::Truncated);
        let told: Vec<_> =
            cut.iter().map(|event| (texts.get(event.name), event.file.inode, event.bytes)).collect();
        let creat = if cfg!(target_arch = "x86_64") { "creat" } else { "openat" };
        assert_eq!(told, [("truncate", inode, 4096), ("openat", inode, 0), (creat, inode, 0)], "{kind}");
    }
}

#[test]
fn a_transaction_of_sqlite_is_seen_by_its_locks() {
    let Some(mounted) = volume("ext4", 64) else { return };
    let path = mounted.path().join("app.db");
    let api = Api::bundled();
    let connection = Connection::open(&api, path.to_str().expect("a plain path")).expect("a database");
    connection.run("CREATE TABLE t(a)").expect("SQL");
    let Some((events, texts)) =
        captured(&mounted, || connection.run("INSERT INTO t VALUES(1)").expect("SQL"))
    else {
        return;
    };
    let locks = of_kind(&events, EventKind::Lock);
    let inode = fs::metadata(&path).expect("the file").ino();
    assert!(locks.iter().all(|lock| lock.file.inode == inode && lock.process == std::process::id()));
    let (reserved, pending) = (0x4000_0001, 0x4000_0000);
    assert!(locks.iter().any(|lock| (lock.offset, lock.bytes, lock.detail) == (reserved, 1, 1)), "RESERVED");
    assert!(locks.iter().any(|lock| (lock.offset, lock.detail) == (pending, 1)), "PENDING");
    assert_eq!(locks.last().map(|lock| lock.detail), Some(2), "unlocked");
    let journal =
        events.iter().find(|event| texts.get(event.name) == "/app.db-journal").expect("the journal's name");
    assert_ne!(journal.file, FileKey::NONE);
    let gone = of_kind(&events, EventKind::Unlinked);
    assert_eq!(gone.iter().map(|event| event.file).collect::<Vec<_>>(), [journal.file]);
}
