//! Goal: a flush stands with the call that waited for it, whatever the capture missed and the driver gave back.
//! Method: a few events by hand, and what attribution makes of them.

use joj_analysis::trace::event::{Event, EventKind, Operation, RequestFlags};
use joj_analysis::trace::texts::{Text, Texts};

mod attribution;

use attribution::{DISK, attributed_with, file, write};

/// A sync of the file begins or ends.
fn call(name: Text, kind: EventKind, time_ns: u64) -> Event {
    Event { file: file(DISK), name, ..write(kind, time_ns, 0, 0) }
}

fn flush(kind: EventKind, time_ns: u64) -> Event {
    Event { operation: Operation::Flush, flags: RequestFlags::PREFLUSH, ..write(kind, time_ns, 0, 0) }
}

#[test]
fn a_flush_whose_completion_nobody_told_takes_no_other_ones() {
    let mut texts = Texts::default();
    let fsync = texts.keep("fsync");
    let call = |kind, time_ns| call(fsync, kind, time_ns);
    // The driver's queue has one flush under way at a time. An old trace does not have it: there the call says that its flush is over.
    for queue in [1, 0] {
        let slot = |time_ns| (queue << 32) + queue * time_ns / 100;
        let of_driver = |kind, time_ns| Event { offset: slot(time_ns), ..flush(kind, time_ns) };
        let mut events = Vec::new();
        for begun_ns in [100, 200, 300] {
            events.push(call(EventKind::SyncBegin, begun_ns));
            events.push(flush(EventKind::Queue, begun_ns + 1));
            events.push(of_driver(EventKind::Issue, begun_ns + 2));
            if begun_ns > 100 {
                events.push(of_driver(EventKind::Complete, begun_ns + 50));
            }
            events.push(call(EventKind::SyncEnd, begun_ns + 60));
        }
        let seen = attributed_with(&texts, "ext4", &events);
        let ends: Vec<_> = seen.requests.iter().map(|one| (one.untold, one.completed_ns)).collect();
        assert_eq!(ends, [(true, None), (false, Some(250)), (false, Some(350))], "{queue}");
        assert_eq!(seen.syncs.iter().map(|sync| sync.flushes).collect::<Vec<_>>(), [1; 3]);
    }
}

/// The second flush seems to be for threads 6 and 7. The sixth returns before it is over: the first one was for it, too.
#[test]
fn a_flush_of_a_call_that_returned_before_stands_with_another_that_had_it() {
    let mut texts = Texts::default();
    let fsync = texts.keep("fsync");
    let of = |thread, event| Event { thread, process: thread, ..event };
    let call = |thread, kind, time_ns| of(thread, call(fsync, kind, time_ns));
    let mut events = Vec::new();
    for thread in [5, 6, 7] {
        let time_ns = u64::from(thread) * 10;
        events.push(call(thread, EventKind::SyncBegin, time_ns));
        events.push(of(thread, flush(EventKind::Queue, time_ns + 1)));
    }
    let of_driver = |kind, time_ns| Event { offset: (1 << 32) + 8, ..flush(kind, time_ns) };
    events.push(of_driver(EventKind::Issue, 110));
    events.push(of_driver(EventKind::Complete, 120));
    events.push(call(5, EventKind::SyncEnd, 125));
    events.push(of_driver(EventKind::Issue, 130));
    events.push(call(6, EventKind::SyncEnd, 140));
    events.push(of_driver(EventKind::Complete, 150));
    events.push(call(7, EventKind::SyncEnd, 160));
    let seen = attributed_with(&texts, "ext4", &events);
    let mut flushes: Vec<_> = seen.syncs.iter().map(|sync| (sync.process, sync.flushes)).collect();
    flushes.sort_unstable();
    assert_eq!(flushes, [(5, 1), (6, 0), (7, 1)]);
}

#[test]
fn a_flush_that_goes_back_to_its_queue_keeps_its_call() {
    let mut texts = Texts::default();
    let fsync = texts.keep("fsync");
    let call = |kind, time_ns| call(fsync, kind, time_ns);
    let seen = attributed_with(
        &texts,
        "ext4",
        &[
            call(EventKind::SyncBegin, 1),
            flush(EventKind::Queue, 2),
            flush(EventKind::Issue, 3),
            flush(EventKind::Requeue, 4),
            flush(EventKind::Issue, 50),
            flush(EventKind::Complete, 60),
            call(EventKind::SyncEnd, 70),
        ],
    );
    let runs: Vec<_> = seen.requests.iter().map(|one| (one.issued_ns, one.runs[0].queued_ns)).collect();
    assert_eq!((runs, seen.syncs[0].flushes), (vec![(50, 2)], 1));
}

/// Two calls, each with a commit record between two flushes.
#[test]
fn a_commit_record_whose_completion_nobody_told_keeps_no_flush_from_its_call() {
    let mut texts = Texts::default();
    let fsync = texts.keep("fsync");
    let both = RequestFlags(RequestFlags::PREFLUSH.0 | RequestFlags::FUA.0);
    // When the first flush and the first record were complete.
    for untold_ns in [&[][..], &[110], &[120], &[110, 120]] {
        let call = |kind, time_ns| call(fsync, kind, time_ns);
        let flush = |kind, time_ns| Event { offset: (1 << 32) + 6, ..flush(kind, time_ns) };
        let record = |kind, time_ns| Event { offset: (1 << 32) + 5, ..write(kind, time_ns, 8, 8) };
        let mut events = Vec::new();
        for at_ns in [100, 200] {
            events.extend([
                call(EventKind::SyncBegin, at_ns),
                Event { flags: both, ..write(EventKind::Queue, at_ns + 1, 8, 8) },
                flush(EventKind::Issue, at_ns + 2),
                flush(EventKind::Complete, at_ns + 10),
                record(EventKind::Issue, at_ns + 11),
                record(EventKind::Complete, at_ns + 20),
                flush(EventKind::Issue, at_ns + 21),
                flush(EventKind::Complete, at_ns + 30),
                call(EventKind::SyncEnd, at_ns + 40),
            ]);
        }
        events.retain(|event| !untold_ns.contains(&event.time_ns));
        let seen = attributed_with(&texts, "ext4", &events);
        let flushes: Vec<_> = seen.syncs.iter().map(|sync| (sync.writes, sync.flushes)).collect();
        assert_eq!(flushes, [(1, 2); 2], "{untold_ns:?}");
        let without: Vec<_> = seen.requests.iter().filter(|one| one.untold).collect();
        assert_eq!(without.len(), untold_ns.len(), "{untold_ns:?}: {without:?}");
    }
}
