//! Goal: what a capture without eBPF says of known work is true, on each filesystem that this machine can mount.
//! Method: a filesystem in a file, on a loop device of its own; without root they say that they are skipped.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use joj_analysis::trace::event::Operation;

use super::*;
use crate::machine::files::test_volume::TestVolume;

/// A new filesystem and a capture of it; `None` where this machine cannot have them.
fn started(kind: &str, megabytes: u64) -> Option<(TestVolume, TracefsCapture)> {
    let missing = if !rustix::process::geteuid().is_root() {
        Some("it needs root".to_owned())
    } else if !Path::new("/sys/kernel/tracing/instances").is_dir() {
        Some("there is no tracefs".to_owned())
    } else {
        None
    };
    let volume = missing.map_or_else(|| TestVolume::create(kind, megabytes), Err);
    let volume = match volume {
        Ok(volume) => volume,
        Err(reason) => {
            println!("skipped: {reason}");
            return None;
        }
    };
    // A sync(2) would be in the captures of other tests, too.
    rustix::fs::syncfs(File::open(volume.path()).unwrap()).unwrap();
    let selection = Selection { devices: vec![volume.disk()], ..Selection::default() };
    let capture = TracefsCapture::start(&selection, &[volume.path()]).unwrap();
    Some((volume, capture))
}

/// What happened on a new filesystem while `work` ran in it; `None` where this machine cannot say.
fn captured(kind: &str, megabytes: u64, work: impl FnOnce(&Path)) -> Option<(Vec<Event>, Texts, u64)> {
    let (volume, mut capture) = started(kind, megabytes)?;
    let (mut texts, mut events) = (Texts::default(), Vec::new());
    capture.poll(Duration::ZERO, &mut texts, &mut |event| events.push(event)).unwrap();
    work(&volume.path());
    let lost = capture.stop(&mut texts, &mut |event| events.push(event)).unwrap();
    if std::env::var_os("JOJ_SHOW").is_some() {
        for event in &events {
            println!("{event:?} {:?} {:?}", texts.get(event.command), texts.get(event.name));
        }
    }
    assert!(events.is_sorted_by_key(|event| event.time_ns));
    Some((events, texts, lost))
}

/// (file, offset) of what was written, sector by sector, by the newest extent before it.
fn attributed(events: &[Event]) -> Vec<(u64, Option<(FileKey, u64)>)> {
    let mut placed: Vec<Event> = Vec::new();
    let mut found = Vec::new();
    for event in events {
        match event.kind {
            EventKind::Extent => placed.push(*event),
            EventKind::Freed => placed.retain(|extent| extent.file != event.file),
            EventKind::Issue if event.operation == Operation::Write => {
                for sector in (event.sector..event.end_sector()).step_by(8) {
                    let extent = placed.iter().rev().find(|extent| {
                        extent.device == event.device
                            && (extent.sector..extent.end_sector()).contains(&sector)
                    });
                    let place =
                        |extent: &Event| (extent.file, extent.offset + (sector - extent.sector) * 512);
                    found.push((sector, extent.map(place)));
                }
            }
            _ => {}
        }
    }
    found
}

/// Somebody else's sync(2) is in the trace too: it means every disk.
fn is_sync_of_file(event: &Event) -> bool {
    event.kind == EventKind::SyncBegin && event.file.is_some()
}

fn four_kib_and_fsync(directory: &Path) {
    let mut file = File::create(directory.join("app.db")).unwrap();
    file.seek(SeekFrom::Start(8192)).unwrap();
    file.write_all(&[7; 4096]).unwrap();
    file.sync_all().unwrap();
}

/// A rollback journal's life, again and again: its inode's number is used again, with other generations.
fn journals_that_come_and_go(directory: &Path) {
    let free_inodes = || rustix::fs::statvfs(directory).unwrap().f_ffree;
    let free_before = free_inodes();
    for turn in 0..20_u8 {
        let path = directory.join("app.db-journal");
        let mut journal = File::create(&path).unwrap();
        journal.write_all(&[turn; 4096]).unwrap();
        journal.sync_data().unwrap();
        drop(journal);
        std::fs::remove_file(&path).unwrap();
    }
    // Somebody else's sync(2) may hold the last one for a moment: the kernel frees it when that lets go.
    let deadline = std::time::Instant::now() + Duration::from_secs(30);
    while free_inodes() < free_before {
        assert!(std::time::Instant::now() < deadline, "a removed file is not freed");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn files_that_are_gone_before_anybody_asks_have_names_and_generations() {
    let Some((events, texts, _)) = captured("ext4", 64, journals_that_come_and_go) else { return };
    let syncs = events.iter().filter(|event| is_sync_of_file(event)).map(|event| event.file);
    let files: std::collections::BTreeSet<FileKey> = syncs.collect();
    assert_eq!(files.len(), 20, "20 files, whatever their numbers: {files:?}");
    for file in &files {
        let of = |kind| events.iter().find(|event| event.kind == kind && event.file == *file);
        assert_eq!(of(EventKind::Named).map(|event| texts.get(event.name)), Some("/app.db-journal"));
        assert_eq!(of(EventKind::Unlinked).map(|event| texts.get(event.name)), Some("/app.db-journal"));
        assert!(of(EventKind::Freed).is_some());
    }
    let written: std::collections::BTreeSet<FileKey> =
        attributed(&events).into_iter().filter_map(|(_, place)| Some(place?.0)).collect();
    assert_eq!(written, files, "each wrote its own block");
}

/// As SQLite's log grows: the file was there before, and gets longer and is overwritten.
fn appends(directory: &Path) {
    let mut file = File::options().append(true).create(true).open(directory.join("app.db-wal")).unwrap();
    for _ in 0..5 {
        file.write_all(&[7; 4120]).unwrap();
        file.sync_data().unwrap();
    }
}

fn check_appends(kind: &str, megabytes: u64) {
    let Some((events, _, lost)) = captured(kind, megabytes, appends) else { return };
    assert_eq!(lost, 0, "{kind}");
    let syncs: Vec<&Event> = events.iter().filter(|event| is_sync_of_file(event)).collect();
    assert_eq!(syncs.len(), 5, "{kind}");
    let file = syncs[0].file;
    assert!(file.generation != 0 && syncs.iter().all(|sync| sync.file == file), "{kind}: {syncs:?}");
    let offsets: std::collections::BTreeSet<u64> = attributed(&events)
        .into_iter()
        .filter_map(|(_, place)| place.filter(|(written, _)| *written == file).map(|(_, offset)| offset))
        .collect();
    let expected: Vec<u64> = (0..6).map(|block| block * 4096).collect();
    assert_eq!(offsets.into_iter().collect::<Vec<_>>(), expected, "{kind}");
}

#[test]
fn appended_blocks_are_placed_on_every_filesystem() {
    for (kind, megabytes) in [("ext4", 64), ("xfs", 320), ("btrfs", 160)] {
        check_appends(kind, megabytes);
    }
}

#[test]
fn on_ext4_a_synced_write_leads_to_its_file_its_call_and_its_offset() {
    let Some((events, texts, lost)) = captured("ext4", 64, four_kib_and_fsync) else { return };
    assert_eq!(lost, 0);
    let sync = events.iter().find(|event| is_sync_of_file(event)).expect("an fsync");
    assert_eq!(texts.get(sync.name), "fsync");
    let named = events.iter().find(|event| event.kind == EventKind::Named && event.file == sync.file);
    assert_eq!(named.map(|named| texts.get(named.name)), Some("/app.db"));
    assert_ne!(sync.file.generation, 0);
    let data: Vec<_> = attributed(&events).into_iter().filter_map(|(_, place)| place).collect();
    assert_eq!(data, [(sync.file, 8192)]);
    let end = events
        .iter()
        .find(|event| event.kind == EventKind::SyncEnd && event.file.is_some())
        .expect("its end");
    assert_eq!((end.file, end.detail, end.process), (sync.file, 0, std::process::id()));
    let commits = events.iter().filter(|event| event.kind == EventKind::JournalEnd).count();
    // Another's sync(2) in between has one of its own.
    let others =
        events.iter().filter(|event| event.kind == EventKind::SyncBegin && !event.file.is_some()).count();
    assert!((1..=1 + others).contains(&commits), "the journal's: {commits} beside {others} of others");
}

#[test]
fn the_capture_gives_way_to_what_it_traces_until_a_buffer_is_half_full() {
    let Some((_volume, mut capture)) = started("ext4", 64) else { return };
    let (mut texts, nice) = (Texts::default(), || rustix::process::getpriority_process(None).unwrap());
    let before = nice();
    // The records of one processor are in one buffer.
    let mut here = rustix::thread::CpuSet::new();
    here.set(rustix::thread::sched_getcpu());
    rustix::thread::sched_setaffinity(None, &here).unwrap();
    capture.poll(Duration::ZERO, &mut texts, &mut |_| {}).unwrap();
    assert!(nice() > before, "it gives way");
    let no_file = File::open("/dev/null").unwrap();
    // Two records of some 40 bytes each.
    for _ in 0..buffer::BYTES / 100 {
        assert!(no_file.sync_data().is_err());
    }
    capture.poll(Duration::ZERO, &mut texts, &mut |_| {}).unwrap();
    assert_eq!(nice(), before, "the kernel would soon throw records away");
    assert_eq!(capture.stop(&mut texts, &mut |_| {}).unwrap(), 0, "it did not");
}
