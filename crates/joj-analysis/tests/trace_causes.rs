//! Goal: what is written stands with a sync call that waits for it, and with no other.
//! Method: a few events by hand, and the calls that attribution names for them.

mod attribution;

use attribution::{DISK, attributed_with, file, write};
use joj_analysis::trace::event::{Backing, Content, Event, EventKind, FileKey};
use joj_analysis::trace::texts::Texts;

/// The calls that writes of the log stand with, by the writes' times. `events`: with the threads in which they happen; those of thread 9
/// are a kernel thread's.
fn causes(filesystem: &str, helper: &str, events: &[Event]) -> Vec<(u64, Option<u64>)> {
    let mut texts = Texts::default();
    let command = texts.keep(helper);
    let of_helper = |event: &Event| if event.thread == 9 { Event { command, ..*event } } else { *event };
    let events: Vec<Event> = events.iter().map(of_helper).collect();
    let seen = attributed_with(&texts, filesystem, &events);
    let runs = seen.requests.iter().map(|request| request.runs[0]);
    runs.map(|run| (run.queued_ns, run.cause.map(|cause| cause.0))).collect()
}

fn in_thread(kind: EventKind, time_ns: u64, thread: u32) -> Event {
    Event { thread, process: thread, file: file(DISK), ..write(kind, time_ns, 0, 0) }
}

fn journal(kind: EventKind, time_ns: u64, thread: u32, transaction: i64) -> Event {
    Event { detail: transaction, file: FileKey::NONE, ..in_thread(kind, time_ns, thread) }
}

/// A write of the log at a place of its own.
fn logged(time_ns: u64, thread: u32, content: Content, detail: i64) -> Event {
    let (file, backing) = (FileKey::NONE, Backing::Private);
    let place = write(EventKind::Queue, time_ns, time_ns * 8, 8);
    Event { thread, process: thread, file, backing, content, detail, ..place }
}

#[test]
fn a_commit_is_for_no_call_that_an_earlier_one_satisfied() {
    let block = |time_ns| logged(time_ns, 9, Content::JournalDescriptor, 0);
    let seen = causes(
        "ext4",
        "jbd2/loop0-8",
        &[
            in_thread(EventKind::SyncBegin, 1, 1),
            journal(EventKind::JournalBegin, 2, 9, 7),
            block(3),
            in_thread(EventKind::SyncBegin, 4, 2),
            block(5),
            journal(EventKind::JournalEnd, 6, 9, 7),
            journal(EventKind::JournalBegin, 7, 9, 8),
            // The first call was woken and did not return yet.
            block(8),
            in_thread(EventKind::SyncEnd, 9, 1),
            block(10),
            journal(EventKind::JournalEnd, 11, 9, 8),
            journal(EventKind::JournalBegin, 12, 9, 9),
            block(13),
        ],
    );
    assert_eq!(seen, [(3, Some(0)), (5, Some(0)), (8, Some(1)), (10, Some(1)), (13, None)]);
}

/// What kernel threads write while a sync(2) is busy with another filesystem, and others make this one durable.
#[test]
fn what_is_written_while_a_sync_is_under_way_is_for_the_call_that_names_it() {
    let mut texts = Texts::default();
    let [sync, syncfs, writer, jbd2] =
        ["sync", "syncfs", "kworker/u8:1", "jbd2/loop0-8"].map(|name| texts.keep(name));
    let data = |time_ns: u64| Event {
        thread: 9,
        command: writer,
        ..write(EventKind::Queue, time_ns, time_ns * 8, 8)
    };
    let block = |time_ns| Event { command: jbd2, ..logged(time_ns, 8, Content::JournalDescriptor, 0) };
    let commit = |kind, time_ns, transaction| journal(kind, time_ns, 8, transaction);
    let of_all = |kind, time_ns| Event { name: sync, file: FileKey::NONE, ..in_thread(kind, time_ns, 1) };
    let other = FileKey { inode: 13, ..file(DISK) };
    let of_one = |kind, time_ns| Event { name: syncfs, file: other, ..in_thread(kind, time_ns, 2) };
    let seen = attributed_with(
        &texts,
        "ext4",
        &[
            of_all(EventKind::SyncBegin, 1),
            of_one(EventKind::SyncBegin, 2),
            data(3),
            // It has this one begun for the blocks that are placed, and waits for the next.
            commit(EventKind::JournalBegin, 4, 7),
            block(5),
            journal(EventKind::JournalWait, 6, 2, 8),
            commit(EventKind::JournalBegin, 7, 8),
            block(8),
            data(9),
            commit(EventKind::JournalEnd, 10, 8),
            of_one(EventKind::SyncEnd, 11),
            in_thread(EventKind::SyncBegin, 12, 3),
            data(13),
            in_thread(EventKind::SyncEnd, 14, 3),
            data(15),
            journal(EventKind::JournalWait, 16, 1, 9),
            commit(EventKind::JournalBegin, 17, 9),
            block(18),
            commit(EventKind::JournalEnd, 19, 9),
            commit(EventKind::JournalBegin, 20, 10),
            block(21),
        ],
    );
    let runs = seen.requests.iter().map(|request| request.runs[0]);
    let causes: Vec<_> = runs.map(|run| (run.queued_ns, run.cause.map(|cause| cause.0))).collect();
    let of_syncfs = [(3, Some(1)), (5, Some(1)), (8, Some(1))];
    let of_others = [(9, Some(0)), (13, Some(2)), (15, Some(0)), (18, Some(0)), (21, None)];
    assert_eq!(causes, [&of_syncfs[..], &of_others[..]].concat());
}

#[test]
fn what_a_call_did_not_wait_for_stands_with_another_and_what_its_thread_wrote_is_its_own() {
    let mut texts = Texts::default();
    let [syncfs, range, worker] = ["syncfs", "sync_file_range", "kworker/u8:1"].map(|name| texts.keep(name));
    let of = |name, kind, time_ns, thread| Event { name, ..in_thread(kind, time_ns, thread) };
    let by_worker =
        |kind, time_ns, sector| Event { thread: 9, command: worker, ..write(kind, time_ns, sector, 8) };
    let written = |done_ns, sector| {
        [write(EventKind::Issue, done_ns - 1, sector, 8), write(EventKind::Complete, done_ns, sector, 8)]
    };
    let seen = attributed_with(
        &texts,
        "ext4",
        &[
            &[
                of(syncfs, EventKind::SyncBegin, 1, 1),
                of(syncfs, EventKind::SyncBegin, 2, 2),
                of(range, EventKind::SyncBegin, 3, 5),
                by_worker(EventKind::Queue, 4, 8),
                write(EventKind::Queue, 5, 16, 8),
                of(range, EventKind::SyncEnd, 6, 5),
                of(syncfs, EventKind::SyncEnd, 7, 1),
                of(syncfs, EventKind::SyncBegin, 8, 3),
                by_worker(EventKind::Queue, 9, 24),
            ],
            &written(11, 8)[..],
            &written(13, 16),
            &[of(syncfs, EventKind::SyncEnd, 14, 2), of(syncfs, EventKind::SyncEnd, 15, 3)],
            &written(17, 24),
        ]
        .concat(),
    );
    // The call that is for this file was first, and returned; the third one had not begun when the worker wrote for the second.
    let causes = seen.requests.iter().map(|request| request.runs[0].cause.map(|cause| cause.0));
    assert_eq!(causes.collect::<Vec<_>>(), [Some(1), Some(2), None]);
    let mut syncs: Vec<_> =
        seen.syncs.iter().map(|sync| (sync.id.0, sync.bytes.iter().sum::<u64>())).collect();
    syncs.sort_unstable();
    assert_eq!(syncs, [(0, 0), (1, 4096), (2, 4096), (3, 0)]);
}

#[test]
fn a_record_of_xfs_log_is_for_who_waits_for_its_checkpoint() {
    let begins = [(1, 1), (2, 2)].map(|(time_ns, thread)| in_thread(EventKind::SyncBegin, time_ns, thread));
    let waits = [(3, 2, 5), (4, 1, 6)]
        .map(|(time_ns, thread, checkpoint)| journal(EventKind::JournalWait, time_ns, thread, checkpoint));
    let record = |time_ns, thread, checkpoint| logged(time_ns, thread, Content::XfsLog, checkpoint);
    let owners = |last_of_five: Event| {
        let records = [record(10, 9, 0), last_of_five, record(12, 9, 0), record(13, 1, 0), record(14, 9, 0)];
        causes("xfs", "kworker/u8:1", &[&begins[..], &waits[..], &records[..]].concat())
    };
    // The call itself writes the last of its checkpoint; or the record says which checkpoint ends in it.
    for last in [record(11, 2, 0), record(11, 9, 5)] {
        let expected = [(10, Some(1)), (11, Some(1)), (12, Some(0)), (13, Some(0)), (14, None)];
        assert_eq!(owners(last), expected);
    }
}
