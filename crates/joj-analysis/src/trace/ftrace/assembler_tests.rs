//! Goal: records of each kind become the steps that they stand for.
//! Method: made-up records of one small filesystem.

use super::*;
use crate::trace::event::DeviceNumber;
use crate::trace::ftrace::record::NameChange;
use crate::trace::ftrace::volume::{Addressing, Base};
use crate::trace::texts::Texts;

const DEVICE: DeviceNumber = DeviceNumber(7);

fn assembler() -> Assembler {
    let base = Base { disk: DeviceNumber(9), start_sector: 100 };
    let addressing = Addressing::Blocks { base, block_bytes: 4096 };
    Assembler::new(vec![Volume { device: DEVICE, id: [0; 16], first_inode: 11, addressing }])
}

fn inode(number: u64) -> Inode {
    Inode { holder: Holder::Device(DEVICE), number }
}

fn key(inode: u64) -> FileKey {
    FileKey { device: DEVICE, inode, generation: 0 }
}

/// (time, kind, inode, detail) of what comes out of records of thread 1, one nanosecond apart.
fn events(records: &[What]) -> Vec<(u64, EventKind, u64, i64)> {
    let (mut assembler, mut texts, mut found) = (assembler(), Texts::default(), Vec::new());
    let mut ask = |_, descriptor, _| key(u64::from(descriptor) + 1000);
    let mut sink = |step| {
        if let Step::Event(event, _) = step {
            found.push((event.time_ns, event.kind, event.file.inode, event.detail));
        }
    };
    let mut around = Surroundings { texts: &mut texts, ask: &mut ask, sink: &mut sink };
    for (time_ns, what) in (1..).zip(records) {
        assembler.take(&Record { time_ns, thread: 1, what: *what }, &mut around);
    }
    assembler.settle(u64::MAX, &mut around);
    found
}

const FSYNC: What = What::CallBegin { call: Call::Fsync, descriptor: Some(4), offset: 0 };

fn sync_of(number: u64) -> What {
    What::FileSync { file: inode(number), ends: true, data_only: Some(false) }
}

fn synced(number: u64, result: i64) -> What {
    What::FileSyncEnd { file: inode(number), result }
}

#[test]
fn a_call_begins_when_it_was_made_and_has_the_file_that_its_filesystem_tells() {
    let records = [FSYNC, sync_of(12), synced(12, 0), What::CallEnd(-5)];
    assert_eq!(events(&records), [(1, EventKind::SyncBegin, 12, 0), (4, EventKind::SyncEnd, 12, -5)]);
}

#[test]
fn a_call_waits_for_a_transaction_and_the_kernel_says_it_twice() {
    let wait = |transaction| What::Journal { kind: EventKind::JournalWait, device: DEVICE, transaction };
    let records = [FSYNC, wait(5), wait(5), sync_of(12), wait(6), What::CallEnd(0), wait(7)];
    let mut found = events(&records);
    found.sort_by_key(|(time, ..)| *time);
    let waits = |time, transaction| (time, EventKind::JournalWait, 0, transaction);
    let call = [(1, EventKind::SyncBegin, 12, 0), (6, EventKind::SyncEnd, 12, 0)];
    assert_eq!(found, [call[0], waits(2, 5), waits(5, 6), call[1]], "what no call waits for is no news");
}

#[test]
fn without_a_telling_filesystem_the_descriptor_is_asked_for() {
    let expected = [(1, EventKind::SyncBegin, 1004, 0), (2, EventKind::SyncEnd, 1004, 0)];
    assert_eq!(events(&[FSYNC, What::CallEnd(0)]), expected);
    assert_eq!(events(&[FSYNC]), expected[..1], "a call that never returned");
}

#[test]
fn a_durable_write_has_its_file_from_the_sync_in_it_whatever_the_filesystem_does_before() {
    let write = What::CallBegin { call: Call::Pwritev2, descriptor: Some(4), offset: 0 };
    let place = What::Mapped(Mapping { file: inode(12), in_bytes: false, first: 2, start: 5, count: 3 });
    let expected = [
        (2, EventKind::Extent, 12, 0),
        (1, EventKind::DurableWrite, 12, 0),
        (5, EventKind::SyncEnd, 12, 4096),
    ];
    let records = [write, place, sync_of(12), synced(12, 0), What::CallEnd(4096)];
    assert_eq!(events(&records), expected, "the descriptor is another file's by now, maybe");
}

#[test]
fn a_call_under_way_is_told_when_its_filesystem_has_named_its_file_or_had_time_to() {
    let (mut assembler, mut texts, mut found) = (assembler(), Texts::default(), Vec::new());
    let mut ask = |_, _, is_named| if is_named { FileKey::NONE } else { key(13) };
    let mut sink = |step| {
        if let Step::Event(event, _) = step {
            found.push((event.time_ns, event.thread, event.file.inode));
        }
    };
    let mut around = Surroundings { texts: &mut texts, ask: &mut ask, sink: &mut sink };
    let begin = |call| What::CallBegin { call, descriptor: Some(4), offset: 0 };
    for (thread, call) in (1..).zip([Call::Pwritev2, Call::Syncfs, Call::Fsync]) {
        let time_ns = 10 + u64::from(thread);
        assembler.take(&Record { time_ns, thread, what: begin(call) }, &mut around);
    }
    assert_eq!(assembler.settle(1000, &mut around), 11, "what came since waits for the first");
    assembler.take(&Record { time_ns: 2000, thread: 1, what: sync_of(12) }, &mut around);
    assert_eq!(assembler.settle(3000, &mut around), 13);
    assert_eq!(assembler.settle(NAMED_NS + 14, &mut around), u64::MAX);
    assert_eq!(found, [(12, 2, 13), (11, 1, 12), (13, 3, 0)]);
}

#[test]
fn a_filesystem_that_syncs_without_a_call_is_a_durable_write() {
    let records = [sync_of(12), synced(13, 0), synced(12, 0), synced(12, 0), What::CallEnd(0)];
    assert_eq!(events(&records), [(1, EventKind::SyncBegin, 12, 0), (3, EventKind::SyncEnd, 12, 0)]);
    let endless = What::FileSync { file: inode(12), ends: false, data_only: None };
    let not_told = (1, EventKind::SyncEnd, 12, END_NOT_TOLD);
    assert_eq!(events(&[endless]), [(1, EventKind::SyncBegin, 12, 0), not_told], "nobody says when it ends");
}

#[test]
fn a_write_that_goes_on_without_its_thread_has_no_end_and_what_is_tried_in_vain_is_none() {
    let begun = |number| What::DirectWrite { file: inode(number), offset: 0, bytes: 4096, tries: false };
    let done = |number, result| What::DirectWriteEnd { file: inode(number), result };
    let queued = What::DirectWriteQueued(inode(12));
    let records =
        [begun(12), done(12, -11), begun(12), queued, begun(13), done(12, 4096), done(13, 4096), queued];
    let write = EventKind::DurableWrite;
    let expected = [
        (3, write, 12, 0),
        (4, EventKind::SyncEnd, 12, END_NOT_TOLD),
        (5, write, 13, 0),
        (7, EventKind::SyncEnd, 13, 4096),
    ];
    assert_eq!(events(&records), expected, "an end of another file is not this one's");
    // The kernel tries without waiting, gives up without a word, and goes on in another thread.
    let tried = |number| What::DirectWrite { file: inode(number), offset: 0, bytes: 4096, tries: true };
    let place = What::Mapped(Mapping { file: inode(8), in_bytes: false, first: 2, start: 5, count: 3 });
    let expected = [(3, write, 13, 0), (4, EventKind::SyncEnd, 13, END_NOT_TOLD)];
    let records = [tried(12), place, tried(13), What::DirectWriteQueued(inode(13)), tried(12)];
    assert_eq!(events(&records), expected, "what got nowhere is no call");
}

#[test]
fn a_worker_syncs_for_a_call_that_the_filesystem_tells_or_nobody_knows() {
    let (mut assembler, mut texts, mut found) = (assembler(), Texts::default(), Vec::new());
    assembler.know_thread(2, b"kworker/1:0");
    let sync = |number, data_only| What::FileSync { file: inode(number), ends: false, data_only };
    let write = What::DirectWrite { file: inode(14), offset: 0, bytes: 4096, tries: false };
    let records = [
        (1, What::Renamed { thread: 1, command: *b"iou-wrk-3-4\0\0\0\0\0" }),
        (1, sync(12, Some(false))),
        (1, sync(12, Some(true))),
        (2, sync(12, None)),
        (3, sync(12, None)),
        (3, write),
        (3, What::DirectWriteQueued(inode(14))),
        (2, sync(14, None)),
        (2, What::DirectWriteEnd { file: inode(14), result: 4096 }),
        (2, sync(14, None)),
    ];
    let mut sink = |step| {
        if let Step::Event(event, _) = step {
            found.push((event.thread, event.kind, event.name));
        }
    };
    let mut around = Surroundings { texts: &mut texts, ask: &mut |_, _, _| FileKey::NONE, sink: &mut sink };
    for (time_ns, (thread, what)) in (1..).zip(records) {
        assembler.take(&Record { time_ns, thread, what }, &mut around);
    }
    found.retain(|(_, kind, _)| *kind != EventKind::SyncEnd);
    let found: Vec<(u32, &str)> = found.iter().map(|(thread, _, name)| (*thread, texts.get(*name))).collect();
    let expected = [
        (1, "fsync"),
        (1, "fdatasync"),
        (2, "sync (call unknown)"),
        (3, "durable write"),
        (3, "write"),
        (2, "sync (call unknown)"),
    ];
    assert_eq!(found, expected, "what ends a queued write is part of it");
}

/// (thread, name) of the beginnings in these records of (thread, time, what), where thread 2 is a kworker and 3 one of io_uring's.
fn begun(records: &[(u32, u64, What)]) -> Vec<(u32, String)> {
    let (mut assembler, mut texts, mut found) = (assembler(), Texts::default(), Vec::new());
    assembler.know_thread(2, b"kworker/1:0");
    assembler.know_thread(3, b"iou-wrk-1-2");
    let mut sink = |step| match step {
        Step::Event(event, _) if event.kind != EventKind::SyncEnd => found.push((event.thread, event.name)),
        _ => {}
    };
    let mut around = Surroundings { texts: &mut texts, ask: &mut |_, _, _| FileKey::NONE, sink: &mut sink };
    for &(thread, time_ns, what) in records {
        assembler.take(&Record { time_ns, thread, what }, &mut around);
    }
    found.iter().map(|(thread, name)| (*thread, texts.get(*name).to_owned())).collect()
}

const SLOW_NS: u64 = 50_000_000;

#[test]
fn a_write_whose_thread_had_to_wait_for_a_processor_is_one_call() {
    let queued = What::DirectWriteQueued(inode(12));
    let done = What::DirectWriteEnd { file: inode(12), result: 4096 };
    let sync = What::FileSync { file: inode(12), ends: false, data_only: Some(true) };
    for tries in [false, true] {
        let write = What::DirectWrite { file: inode(12), offset: 0, bytes: 4096, tries };
        let late = [(1, 1, write), (1, SLOW_NS, queued), (2, SLOW_NS + 1, sync), (2, SLOW_NS + 2, done)];
        assert_eq!(begun(&late), [(1, "write".to_owned())], "tries: {tries}");
        // The device was done before the thread said that it goes on.
        let overtaken =
            [(1, 1, write), (2, 2, sync), (2, 3, done), (1, SLOW_NS, queued), (2, SLOW_NS + 1, sync)];
        let expected = [(1, "write".to_owned()), (2, "fdatasync".to_owned())];
        assert_eq!(begun(&overtaken), expected, "tries: {tries}: the second is not the write's");
    }
}

#[test]
fn a_sync_beside_direct_writes_is_not_one_of_theirs() {
    let write = |tries| What::DirectWrite { file: inode(12), offset: 0, bytes: 4096, tries };
    let queued = What::DirectWriteQueued(inode(12));
    let sync = What::FileSync { file: inode(12), ends: false, data_only: Some(false) };
    let fsync = |thread| (thread, "fsync".to_owned());
    let of_io_uring = [(1, 1, write(false)), (1, 2, queued), (3, 3, sync)];
    assert_eq!(begun(&of_io_uring)[1..], [fsync(3)], "direct writes end in the kernel's own workers");
    // What the first thread gave up, a worker of io_uring did.
    let given_up = [
        (1, 1, write(true)),
        (3, 2, write(false)),
        (3, 3, What::DirectWriteEnd { file: inode(12), result: 4096 }),
        (2, 4, sync),
    ];
    assert_eq!(begun(&given_up), [(3, "write".to_owned()), fsync(2)]);
}

#[test]
fn mappings_become_sectors_but_for_the_filesystems_own_files() {
    let mapped =
        |number| What::Mapped(Mapping { file: inode(number), in_bytes: false, first: 2, start: 5, count: 3 });
    let (mut assembler, mut texts, mut found) = (assembler(), Texts::default(), Vec::new());
    let mut around = Surroundings {
        texts: &mut texts,
        ask: &mut |_, _, _| FileKey::NONE,
        sink: &mut |step| found.push(step),
    };
    for number in [8, 12] {
        assembler.take(&Record { time_ns: 1, thread: 1, what: mapped(number) }, &mut around);
    }
    let extent = Event {
        time_ns: 1,
        kind: EventKind::Extent,
        thread: 1,
        file: key(12),
        offset: 8192,
        device: DeviceNumber(9),
        sector: 140,
        bytes: 12288,
        ..Event::default()
    };
    assert_eq!(found, [Step::Event(extent, None)]);
}

#[test]
fn a_new_block_of_a_tree_is_told_with_its_tree_and_room_for_data_is_not() {
    let (mut assembler, mut texts, mut found) = (assembler(), Texts::default(), Vec::new());
    let mut sink = |step| {
        if let Step::Event(event, _) = step {
            found.push((event.kind, event.sector, event.bytes, event.content, event.detail));
        }
    };
    let mut around = Surroundings { texts: &mut texts, ask: &mut |_, _, _| FileKey::NONE, sink: &mut sink };
    let room = |start| What::RoomFound { holder: Holder::Device(DEVICE), start, bytes: 16384 };
    let records = [(1, What::RoomWanted(Some(-6))), (2, What::RoomWanted(None)), (1, room(5)), (2, room(9))];
    for (thread, what) in records {
        assembler.take(&Record { time_ns: 1, thread, what }, &mut around);
    }
    assert_eq!(found, [(EventKind::Extent, 140, 16384, Content::BtrfsTree, -6)]);
}

#[test]
fn a_file_cut_to_nothing_holds_no_blocks() {
    let cut = |blocks| What::Truncated { file: inode(12), length: Length::Blocks(blocks) };
    let expected = [
        (1, EventKind::Truncated, 12, 0),
        (2, EventKind::Truncated, 12, 0),
        (2, EventKind::Freed, 12, 0),
        (3, EventKind::Freed, 12, 0),
    ];
    assert_eq!(events(&[cut(2), cut(0), What::Ended(inode(12))]), expected);
}

#[test]
fn the_inode_that_a_creating_thread_brings_into_memory_is_the_new_file() {
    let (mut assembler, mut texts, mut found) = (assembler(), Texts::default(), Vec::new());
    let mut around = Surroundings {
        texts: &mut texts,
        ask: &mut |_, _, _| FileKey::NONE,
        sink: &mut |step| found.push(step),
    };
    let fetched = |number| What::Fetched(inode(number));
    let records = [
        (1, fetched(11)),
        (1, What::CreateBegin),
        (2, fetched(12)),
        (1, fetched(13)),
        (1, fetched(14)),
        (2, What::NamesChanged(NameChange::Removed)),
    ];
    for (thread, what) in records {
        assembler.take(&Record { time_ns: 1, thread, what }, &mut around);
    }
    let created = Step::Created { file: key(13), kind: InodeKind::File };
    let fetched = |number| Step::Fetched(key(number));
    let removed = Step::NamesChanged { thread: 2, change: NameChange::Removed };
    assert_eq!(found, [fetched(11), fetched(12), created, fetched(14), removed]);
}
