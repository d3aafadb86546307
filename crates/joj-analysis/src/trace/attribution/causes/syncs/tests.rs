//! Which call a kernel thread works for.

use super::*;

fn begin(thread: u32, inode: u64) -> Event {
    let file = FileKey { device: DeviceNumber(3), inode, generation: 0 };
    Event { thread, file, ..Event::default() }
}

/// A call for a file begins, of no transaction.
fn start(syncs: &mut Syncs, event: &Event) -> Option<Ended> {
    syncs.begin(event, Scope::File, FileInfo::default(), None, None)
}

#[test]
fn a_kernel_thread_works_for_the_call_that_began_first() {
    let mut syncs = Syncs::default();
    start(&mut syncs, &begin(1, 10));
    start(&mut syncs, &begin(2, 20));
    let cause = |syncs: &Syncs, file: Option<u64>| {
        let data_of = file.map(|inode| begin(0, inode).file);
        syncs.waiting(DeviceNumber(3), data_of, 9).map(|sync| sync.id.0)
    };
    assert_eq!(
        (cause(&syncs, None), cause(&syncs, Some(20)), cause(&syncs, Some(30))),
        (Some(0), Some(1), None)
    );
    assert_eq!(syncs.waiting(DeviceNumber(4), None, 9), None);
    let ended = syncs.end(&Event { time_ns: 9, detail: -5, ..begin(1, 0) }).expect("it began").sync;
    assert_eq!((ended.ended_ns, ended.result, cause(&syncs, None)), (Some(9), -5, Some(1)));
    assert!(syncs.end(&begin(1, 0)).is_none());
    let ended = syncs.end(&Event { time_ns: 9, detail: END_NOT_TOLD, ..begin(2, 0) }).expect("it began").sync;
    assert_eq!((ended.ended_ns, ended.result), (None, 0), "nobody told");
}

#[test]
fn calls_without_an_end_are_counted_all_the_same_and_cause_nothing_later() {
    let mut syncs = Syncs::default();
    let endless = Event { detail: NO_END, ..begin(1, 10) };
    for _ in 0..3 {
        let told = start(&mut syncs, &endless).expect("told at once").sync;
        assert_eq!((told.ended_ns, told.file.inode), (None, 10));
    }
    assert_eq!((syncs.of_thread(1), syncs.waiting(DeviceNumber(3), None, 9)), (None, None));
    assert!(start(&mut syncs, &begin(1, 11)).is_none());
    let before = start(&mut syncs, &begin(1, 12)).expect("its end was not seen").sync;
    assert_eq!((before.file.inode, before.ended_ns, syncs.finish().len()), (11, None, 1));
}

/// Which of the calls 0 and 1 (threads 1 and 2) a commit is for.
fn owner(syncs: &Syncs, commit: JournalCommit) -> Option<u64> {
    syncs.waiting_for_commit(DeviceNumber(3), Some(commit), u64::MAX).map(|sync| sync.id.0)
}

fn commit(transaction: i64, begun_ns: u64) -> JournalCommit {
    JournalCommit { device: DeviceNumber(3), transaction, begun_ns }
}

/// Two calls, of which the first one's commit is over; the second came while it was under way.
fn two_calls() -> Syncs {
    let mut syncs = Syncs::default();
    for (thread, time_ns) in [(1, 10), (2, 30)] {
        start(&mut syncs, &Event { time_ns, ..begin(thread, 10) });
    }
    assert_eq!(owner(&syncs, commit(7, 20)), Some(0));
    syncs.committed(commit(7, 20));
    syncs
}

#[test]
fn a_call_that_was_woken_and_has_not_run_yet_has_no_part_in_the_next_commit() {
    let mut syncs = two_calls();
    assert_eq!(owner(&syncs, commit(8, 40)), Some(1));
    syncs.end(&Event { time_ns: 50, ..begin(2, 10) });
    assert_eq!(owner(&syncs, commit(8, 40)), None, "better nobody than one that is satisfied");
    assert_eq!(syncs.waiting_for_commit(DeviceNumber(3), None, u64::MAX), None);
}

#[test]
fn a_call_that_writes_more_waits_again() {
    let mut syncs = two_calls();
    syncs.hand_over(SyncId(0), 35, 4096);
    // Its data is on the way, the other one waits for sure.
    assert_eq!(owner(&syncs, commit(8, 40)), Some(1));
    syncs.end(&Event { time_ns: 50, ..begin(2, 10) });
    assert_eq!(owner(&syncs, commit(8, 40)), Some(0));
}

#[test]
fn a_call_that_is_given_anothers_data_waits_again() {
    let mut syncs = two_calls();
    let before = BlockRun { cause: Some(SyncId(9)), class: Class::Data, bytes: 4096, ..BlockRun::default() };
    syncs.pass(&before, &BlockRun { cause: Some(SyncId(0)), queued_ns: 35, ..before });
    syncs.end(&Event { time_ns: 50, ..begin(2, 10) });
    assert_eq!(owner(&syncs, commit(8, 40)), Some(0));
}

#[test]
fn what_was_handed_over_before_a_call_began_is_not_for_it() {
    let mut syncs = Syncs::default();
    start(&mut syncs, &Event { time_ns: 20, ..begin(1, 10) });
    let cause = |queued_ns| syncs.waiting(DeviceNumber(3), None, queued_ns).map(|sync| sync.id.0);
    assert_eq!([19, 20].map(cause), [None, Some(0)]);
}

#[test]
fn a_call_for_all_filesystems_waits_for_each_journal_once() {
    let mut syncs = Syncs::default();
    let of_all = Event { file: FileKey::NONE, time_ns: 10, ..begin(1, 0) };
    syncs.begin(&of_all, Scope::All, FileInfo::default(), None, None);
    syncs.waits(&Event { thread: 1, detail: 7, device: DeviceNumber(3), ..Event::default() });
    assert_eq!(owner(&syncs, commit(7, 20)), Some(0));
    syncs.committed(commit(7, 20));
    syncs.waits(&Event { thread: 1, detail: 3, device: DeviceNumber(4), ..Event::default() });
    assert_eq!(owner(&syncs, commit(8, 40)), None, "it is busy with the next filesystem");
    let on_the_next = JournalCommit { device: DeviceNumber(4), ..commit(3, 40) };
    let cause = syncs.waiting_for_commit(DeviceNumber(4), Some(on_the_next), u64::MAX);
    assert_eq!(cause.map(|sync| sync.id.0), Some(0));
}

#[test]
fn a_call_that_flushes_by_itself_waits_for_no_commit() {
    let mut syncs = two_calls();
    syncs.flushes(2);
    assert_eq!(owner(&syncs, commit(8, 40)), None);
}

#[test]
fn what_the_capture_tells_goes_before_what_can_be_concluded() {
    let mut syncs = Syncs::default();
    for (thread, time_ns) in [(1, 10), (2, 11)] {
        start(&mut syncs, &Event { time_ns, ..begin(thread, 10) });
    }
    let wait = |thread, detail| Event { thread, detail, device: DeviceNumber(3), ..Event::default() };
    syncs.waits(&wait(2, 7));
    syncs.waits(&Event { device: DeviceNumber(4), ..wait(1, 7) });
    assert_eq!(owner(&syncs, commit(7, 20)), Some(1));
    // Of several the one that began first.
    syncs.waits(&wait(1, 7));
    assert_eq!(owner(&syncs, commit(7, 20)), Some(0));
}

#[test]
fn a_checkpoint_is_for_the_first_call_that_waits_for_the_next_that_is_not_handed_over() {
    let mut syncs = Syncs::default();
    for (thread, checkpoint) in [(1, 0), (2, 8), (3, 7), (4, 7)] {
        start(&mut syncs, &begin(thread, 10));
        let device = DeviceNumber(3);
        syncs.waits(&Event { thread, detail: checkpoint, device, ..Event::default() });
    }
    // One that did not say so waits for none.
    start(&mut syncs, &begin(5, 10));
    let owner =
        |handed_over| syncs.waiting_for_checkpoint(DeviceNumber(3), handed_over, 9).map(|sync| sync.id.0);
    assert_eq!([6, 7, 8].map(owner), [Some(2), Some(1), Some(0)]);
    assert_eq!(syncs.awaited(2), Some((DeviceNumber(3), 8)));
}
