//! Goal: requests are put together as the block layer takes them apart: completed in two steps or in parts, put back, never issued.
//! Method: a few events by hand, and what attribution makes of them.

use joj_analysis::filesystem::class::Class;
use joj_analysis::trace::attribution::attribute::Outcome;
use joj_analysis::trace::attribution::request::Evidence;
use joj_analysis::trace::event::{Backing, DeviceNumber, Event, EventKind, FileKey, Operation, RequestFlags};
use joj_analysis::trace::summary::Summariser;
use joj_analysis::trace::summary::counts::RequestCount;
use joj_analysis::trace::texts::Texts;

mod attribution;

use attribution::{DISK, Seen, attributed_with, file, header, write};

const ELSEWHERE: DeviceNumber = DeviceNumber(8 << 20);

fn attributed(events: &[Event]) -> Seen {
    attributed_on("ext4", events)
}

fn attributed_on(filesystem: &str, events: &[Event]) -> Seen {
    attributed_with(&Texts::default(), filesystem, events)
}

#[test]
fn what_is_told_complete_twice_is_one_request() {
    let again = Event { bytes: 0, ..write(EventKind::Complete, 40, 8, 0) };
    // The sector is written anew before the flush behind the first write is over.
    let seen = attributed(&[
        write(EventKind::Queue, 1, 8, 8),
        write(EventKind::Issue, 2, 8, 8),
        write(EventKind::Complete, 30, 8, 8),
        write(EventKind::Queue, 31, 8, 8),
        write(EventKind::Issue, 32, 8, 8),
        again,
        write(EventKind::Complete, 50, 8, 8),
    ]);
    let times: Vec<_> = seen.requests.iter().map(|one| (one.issued_ns, one.completed_ns)).collect();
    assert_eq!(times, [(2, Some(30)), (32, Some(50))]);
}

#[test]
fn a_request_that_is_completed_in_parts_loses_none() {
    let seen = attributed(&[
        write(EventKind::Queue, 1, 8, 16),
        write(EventKind::Issue, 2, 8, 16),
        write(EventKind::Complete, 30, 8, 4),
        write(EventKind::Complete, 40, 12, 12),
    ]);
    let parts: Vec<_> = seen
        .requests
        .iter()
        .map(|one| (one.sector, one.bytes, one.completed_ns, one.runs[0].offset))
        .collect();
    assert_eq!(parts, [(8, 4 * 512, Some(30), 0), (12, 12 * 512, Some(40), 4 * 512)]);
}

#[test]
fn a_request_that_was_put_back_counts_when_it_is_issued_again() {
    let seen = attributed(&[
        write(EventKind::Queue, 1, 8, 8),
        write(EventKind::Issue, 2, 8, 8),
        write(EventKind::Requeue, 3, 8, 8),
        write(EventKind::Issue, 9, 8, 8),
        write(EventKind::Complete, 30, 8, 8),
    ]);
    let found: Vec<_> =
        seen.requests.iter().map(|one| (one.issued_ns, one.class(), one.runs.len())).collect();
    assert_eq!(found, [(9, Class::Data, 1)]);
}

#[test]
fn what_waits_for_its_flush_at_the_end_of_the_trace_was_not_written() {
    let flags = RequestFlags(RequestFlags::PREFLUSH.0 | RequestFlags::FUA.0);
    let waits = Event { flags, ..write(EventKind::Queue, 40, 64, 8) };
    let events = [
        write(EventKind::Queue, 1, 8, 8),
        write(EventKind::Issue, 2, 8, 8),
        write(EventKind::Complete, 30, 8, 8),
        waits,
    ];
    let mut summariser = Summariser::of(&header("ext4"));
    let seen = attributed(&events);
    for request in &seen.requests {
        summariser.outcome(&Outcome::Request(request), &Texts::default());
    }
    let counts = summariser.finish(&header("ext4"), &Texts::default()).counts;
    let written = [counts.writes, counts.unissued].map(|count| (count.requests, count.bytes));
    assert_eq!((written, counts.fua_issued), ([(1, 4096), (1, 4096)], 0));
    // A disk without a request queue issues nothing.
    let seen = attributed(&[waits]);
    assert!(seen.requests.iter().all(|one| one.unissued && !one.under_way));
}

#[test]
fn what_never_reaches_the_driver_is_told_as_such() {
    let minute_ns = 60_000_000_000;
    let mut events = vec![write(EventKind::Queue, 1, 8, 8)];
    // It is looked for now and then only.
    events.extend((0..1 << 16).map(|_| Event {
        time_ns: minute_ns,
        kind: EventKind::JournalEnd,
        ..Event::default()
    }));
    let seen = attributed(&events);
    let found: Vec<_> = seen.requests.iter().map(|one| (one.unissued, one.bytes, one.completed_ns)).collect();
    assert_eq!(found, [(true, 4096, None)]);
}

#[test]
fn what_a_call_waited_for_is_complete_when_it_returns_though_nobody_said_so() {
    let mut texts = Texts::default();
    let calls = ["fdatasync", "sync_file_range"].map(|call| texts.keep(call));
    let untold = |call, result, of: FileKey| {
        let around =
            |kind, time_ns, detail| Event { file: of, name: call, detail, ..write(kind, time_ns, 0, 0) };
        let events = [
            around(EventKind::SyncBegin, 1, 0),
            write(EventKind::Queue, 2, 8, 8),
            write(EventKind::Issue, 3, 8, 8),
            around(EventKind::SyncEnd, 40, result),
            Event { file: of, ..write(EventKind::Freed, 41, 0, 0) },
        ];
        let seen = attributed_with(&texts, "ext4", &events);
        let counts = {
            let mut summariser = Summariser::of(&header("ext4"));
            seen.requests.iter().for_each(|one| summariser.outcome(&Outcome::Request(one), &texts));
            summariser.finish(&header("ext4"), &texts).counts
        };
        assert_eq!((counts.writes.bytes, seen.syncs[0].writes), (4096, 1));
        (counts.untold.bytes, seen.requests[0].completed_ns)
    };
    let own = file(DISK);
    assert_eq!(untold(calls[0], 0, own), (4096, None));
    let other = FileKey { inode: 13, ..own };
    for (call, result, of) in [(calls[0], -5, own), (calls[1], 0, own), (calls[0], 0, other)] {
        assert_eq!(untold(call, result, of), (0, None), "nobody waited for it");
    }
}

#[test]
fn where_the_driver_has_a_request_is_no_place_in_a_file() {
    let slot = (1 << 32) + 7;
    let seen = attributed(&[Event { offset: slot, ..write(EventKind::Issue, 2, 8, 8) }]);
    let run = seen.requests[0].runs[0];
    assert_eq!((seen.requests[0].slot.0, run.offset, run.file), (slot, 0, FileKey::NONE));
}

#[test]
fn what_nobody_saw_handed_over_is_unattributed_and_the_rest_is_not() {
    let seen = attributed(&[
        write(EventKind::Queue, 1, 16, 8),
        write(EventKind::Issue, 2, 8, 24),
        write(EventKind::Complete, 30, 8, 24),
    ]);
    let runs: Vec<_> =
        seen.requests[0].runs.iter().map(|run| (run.sector, run.bytes / 512, run.class)).collect();
    assert_eq!(runs, [(8, 8, Class::Unattributed), (16, 8, Class::Data), (24, 8, Class::Unattributed)]);
}

#[test]
fn blocks_that_a_cut_file_gave_up_are_not_its_own() {
    let of_file = |kind, time_ns, bytes| Event { file: file(DISK), bytes, ..write(kind, time_ns, 8, 0) };
    let unseen = |time_ns| Event {
        file: FileKey::NONE,
        backing: Backing::Unseen,
        ..write(EventKind::Queue, time_ns, 8, 16)
    };
    let before =
        attributed(&[of_file(EventKind::Extent, 1, 8192), unseen(2), write(EventKind::Issue, 3, 8, 16)]);
    assert_eq!(before.requests[0].runs[0].class, Class::Data);
    let seen = attributed(&[
        of_file(EventKind::Extent, 1, 8192),
        of_file(EventKind::Truncated, 2, 4096),
        unseen(3),
        write(EventKind::Issue, 4, 8, 16),
    ]);
    let runs: Vec<_> = seen.requests[0].runs.iter().map(|run| (run.sector, run.file, run.class)).collect();
    let (kept, gone) = ((8, file(DISK), Class::Data), (16, FileKey::NONE));
    assert_eq!((runs[0], (runs[1].0, runs[1].1), runs.len()), (kept, gone, 2));
    assert_ne!(runs[1].2, Class::Data);
}

#[test]
fn pages_that_f2fs_placed_one_by_one_are_a_run_of_their_file_and_its_nodes_are_nodes() {
    let page = |inode, sector, offset| Event {
        file: FileKey { device: DISK, inode, generation: 0 },
        backing: Backing::Unseen,
        offset,
        ..write(EventKind::Extent, 1, sector, 8)
    };
    let unseen =
        Event { file: FileKey::NONE, backing: Backing::Unseen, ..write(EventKind::Queue, 2, 80, 32) };
    let seen = attributed_on(
        "f2fs",
        &[
            page(12, 80, 4096),
            page(12, 88, 8192),
            page(1, 96, 44 * 4096),
            unseen,
            write(EventKind::Issue, 3, 80, 32),
            write(EventKind::Complete, 4, 80, 32),
        ],
    );
    let runs: Vec<_> = seen.requests[0]
        .runs
        .iter()
        .map(|run| (run.class, run.bytes, run.file.inode, run.evidence))
        .collect();
    assert_eq!(
        runs,
        [
            (Class::Data, 8192, 12, Evidence::Extent),
            (Class::Node, 4096, 0, Evidence::Extent),
            (Class::Unattributed, 4096, 0, Evidence::None),
        ]
    );
}

#[test]
fn calls_and_locks_for_files_on_other_disks_cause_nothing_here() {
    let call = |kind, time_ns, device| Event { file: file(device), ..write(kind, time_ns, 0, 0) };
    let lock = |time_ns, device| Event {
        offset: 120,
        bytes: 1,
        detail: 1,
        ..call(EventKind::Lock, time_ns, device)
    };
    let events = |device| {
        vec![
            lock(1, device),
            call(EventKind::SyncBegin, 2, device),
            write(EventKind::Queue, 3, 8, 8),
            write(EventKind::Issue, 4, 8, 8),
            write(EventKind::Complete, 5, 8, 8),
            call(EventKind::SyncEnd, 6, device),
        ]
    };
    let (here, there) = (attributed(&events(DISK)), attributed(&events(ELSEWHERE)));
    assert_eq!((here.syncs.len(), here.transactions.len()), (1, 1));
    assert_eq!((there.syncs.len(), there.transactions.len()), (0, 0));
    let causes = [&here, &there].map(|seen| seen.requests[0].runs[0].cause.is_some());
    assert_eq!(causes, [true, false]);
    assert_eq!((here.syncs[0].requests, here.transactions[0].writes), (1, 1));
}

#[test]
fn a_flush_is_for_whom_asked_before() {
    let flags = RequestFlags::PREFLUSH.with(RequestFlags::FUA);
    let flush = |kind, time_ns| Event { operation: Operation::Flush, ..write(kind, time_ns, 0, 0) };
    let seen = attributed(&[
        Event { file: file(DISK), ..write(EventKind::SyncBegin, 1, 0, 0) },
        Event { flags, ..write(EventKind::Queue, 2, 8, 8) },
        flush(EventKind::Issue, 3),
        flush(EventKind::Complete, 13),
        write(EventKind::Issue, 14, 8, 8),
        write(EventKind::Complete, 15, 8, 8),
        flush(EventKind::Issue, 16),
        flush(EventKind::Complete, 36),
        Event { file: file(DISK), ..write(EventKind::SyncEnd, 40, 0, 0) },
        flush(EventKind::Issue, 50),
        flush(EventKind::Complete, 51),
    ]);
    let sync = &seen.syncs[0];
    assert_eq!((sync.flushes, sync.flush_ns, sync.requests, sync.last_completed_ns), (2, 30, 3, 36));
    assert!(seen.requests.last().is_some_and(|last| last.runs.is_empty()), "a flush that nobody wanted");
}

/// A commit with a sync in which so many sectors are written, and so many handled in another way.
fn commit_with(operation: Operation) -> Seen {
    let lock = |time_ns, detail| Event {
        file: file(DISK),
        offset: 120,
        bytes: 1,
        detail,
        ..write(EventKind::Lock, time_ns, 0, 0)
    };
    let other = |kind, time_ns| Event { operation, ..write(kind, time_ns, 800, 2048) };
    attributed(&[
        lock(1, 1),
        Event { file: file(DISK), ..write(EventKind::SyncBegin, 2, 0, 0) },
        write(EventKind::Queue, 3, 8, 8),
        write(EventKind::Issue, 4, 8, 8),
        write(EventKind::Complete, 5, 8, 8),
        other(EventKind::Queue, 6),
        other(EventKind::Issue, 7),
        other(EventKind::Complete, 8),
        Event { file: file(DISK), ..write(EventKind::SyncEnd, 9, 0, 0) },
        lock(10, 2),
    ])
}

#[test]
fn what_is_discarded_or_zeroed_by_the_device_is_not_written() {
    for operation in [Operation::Discard, Operation::WriteZeroes, Operation::Other, Operation::Read] {
        let seen = commit_with(operation);
        let (sync, transaction) = (&seen.syncs[0], &seen.transactions[0]);
        let written = [sync.bytes, transaction.bytes].map(|bytes| bytes.iter().sum::<u64>());
        assert_eq!((written, sync.writes, transaction.writes), ([4096; 2], 1, 1), "{operation:?}");
        // A read is no request for a call that makes something durable.
        let requests = if operation == Operation::Read { 1 } else { 2 };
        assert_eq!(sync.requests, requests, "{operation:?}");
    }
}

#[test]
fn the_table_of_files_has_what_was_written_and_read_of_each() {
    for operation in [Operation::Discard, Operation::WriteZeroes, Operation::Other, Operation::Read] {
        let texts = Texts::default();
        let head = header("ext4");
        let mut summariser = Summariser::of(&head);
        for request in &commit_with(operation).requests {
            summariser.outcome(&Outcome::Request(request), &texts);
        }
        let summary = summariser.finish(&head, &texts);
        let volumes = |written: &RequestCount, read: &RequestCount| [written.bytes, read.bytes];
        let read = if operation == Operation::Read { 1 << 20 } else { 0 };
        let of_files: Vec<_> = summary.files.iter().map(|one| volumes(&one.written, &one.read)).collect();
        assert_eq!(of_files, [[4096, read]], "{operation:?}");
        // As /sys/block/*/stat has it.
        let zeroed = if operation == Operation::WriteZeroes { 1 << 20 } else { 0 };
        assert_eq!(volumes(&summary.disks[0].written, &summary.disks[0].read), [4096 + zeroed, read]);
        let freed = matches!(operation, Operation::Discard | Operation::WriteZeroes);
        let discarded = if freed { 1 << 20 } else { 0 };
        let counts = &summary.counts;
        assert_eq!([counts.writes.bytes, counts.reads.bytes, counts.discards.bytes], [4096, read, discarded]);
    }
}

#[test]
fn what_ext4_writes_as_metadata_into_a_files_extent_is_the_files() {
    let meta = |kind, time_ns| Event {
        flags: RequestFlags::METADATA,
        backing: Backing::Unseen,
        file: FileKey::NONE,
        ..write(kind, time_ns, 808, 8)
    };
    let extent = Event {
        file: file(DISK),
        sector: 800,
        bytes: 8192,
        offset: 4096,
        ..write(EventKind::Extent, 1, 800, 16)
    };
    let handed = [meta(EventKind::Queue, 2), meta(EventKind::Issue, 3), meta(EventKind::Complete, 4)];
    let placed = |filesystem: &str, events: &[Event]| {
        let run = attributed_on(filesystem, events).requests[0].runs[0];
        (run.class, run.file.inode, run.evidence, run.offset)
    };
    let named = [&[extent], &handed[..]].concat();
    assert_eq!(placed("ext4", &named), (Class::Data, 12, Evidence::Extent, 8192));
    assert_eq!(placed("ext4", &handed).0, Class::Metadata);
    // XFS says so of its own buffers alone.
    assert_eq!(placed("xfs", &named).0, Class::Metadata);
}

#[test]
fn a_call_that_fails_before_a_filesystem_hears_of_it_is_none() {
    let call = |kind, time_ns, detail| Event { detail, ..write(kind, time_ns, 0, 0) };
    // EFBIG beyond the file size that the process may have, EINVAL of too many pieces.
    let results = [-9, -12, -14, 0, -27, -22, -11, -95, -5].into_iter().zip(1..);
    let events = results.flat_map(|(result, time)| {
        [call(EventKind::SyncBegin, time * 10, 0), call(EventKind::SyncEnd, time * 10 + 1, result)]
    });
    let seen = attributed(&events.collect::<Vec<_>>());
    assert_eq!(seen.syncs.iter().map(|sync| sync.result).collect::<Vec<_>>(), [0, -5]);
    // Where a part of the memory is mapped, msync writes that.
    let seen = attributed(&[
        call(EventKind::SyncBegin, 1, 0),
        write(EventKind::Queue, 2, 8, 8),
        call(EventKind::SyncEnd, 3, -12),
        write(EventKind::Issue, 4, 8, 8),
        write(EventKind::Complete, 5, 8, 8),
    ]);
    assert_eq!(seen.syncs.iter().map(|sync| (sync.result, sync.writes)).collect::<Vec<_>>(), [(-12, 1)]);
}
