//! Who may take the lock, and who is next.

use super::*;

const NANOSECOND: Duration = Duration::from_nanos(1);

/// A queue of these connections, asleep, who came in this order.
fn asleep(connections: &[usize], now: Instant) -> QueueState {
    let mut queue = QueueState::default();
    for connection in connections {
        queue.wait_in_queue(*connection, &Arc::default(), now);
        queue.set_asleep(*connection, true);
    }
    queue
}

fn reserve(queue: &mut QueueState, connection: usize, until: Instant, awake: bool) {
    queue.reserved = Some(Reserved { connection, until, awake });
}

fn look(queue: &QueueState, connection: usize, now: Instant) -> Look {
    queue.next_look(connection, now)
}

#[test]
fn what_is_kept_for_one_is_its_own_until_the_time_is_over() {
    let now = now();
    let until = now + RESERVATION;
    let mut queue = asleep(&[1, 2], now);
    reserve(&mut queue, 1, until, true);
    let just_before = until.checked_sub(NANOSECOND).unwrap();
    assert!(queue.is_kept(just_before) && !queue.is_kept(until));
    assert_eq!([1, 2].map(|one| queue.may_take(one, just_before)), [true, false]);
    assert_eq!([1, 2].map(|one| look(&queue, one, just_before)), [Look::Mine, Look::At(until)]);
    // From here on as if nothing were kept: the first who sleeps is next, and others may pass it.
    assert_eq!([1, 2].map(|one| queue.may_take(one, until)), [true, true]);
    reserve(&mut queue, 2, until, true);
    assert_eq!([1, 2].map(|one| look(&queue, one, until)), [Look::Mine, Look::Woken]);
}

#[test]
fn who_claims_what_is_kept_for_it_already_gets_no_longer_time() {
    let now = now();
    let mut queue = asleep(&[1], now);
    let until = now + RESERVATION;
    let claimed = |queue: &mut QueueState, at: Instant| {
        queue.claim(1, at);
        queue.reserved.map(|reserved| (reserved.connection, reserved.until, reserved.awake))
    };
    reserve(&mut queue, 1, until, false);
    assert_eq!(claimed(&mut queue, now + RESERVATION / 2), Some((1, until, true)));
    assert_eq!(claimed(&mut queue, until), Some((1, until + RESERVATION, true)), "it had lapsed");
    reserve(&mut queue, 2, until + RESERVATION * 2, false);
    assert_eq!(claimed(&mut queue, until), Some((1, until + RESERVATION, true)), "another's");
}

#[test]
fn those_who_sleep_are_passed_a_few_times_and_no_more() {
    let now = now();
    let mut queue = asleep(&[1], now);
    for _ in 0..PASSES_MAX {
        assert!(queue.may_take(2, now));
        queue.take(2, now);
        queue.holder = None;
    }
    assert!(!queue.may_take(2, now) && queue.may_take(1, now));
    // Whoever claimed was counted then.
    queue.claim(1, now);
    queue.take(1, now);
    assert_eq!((queue.holder, queue.passes, queue.reserved.is_none()), (Some(1), 0, true));
    assert!(!queue.may_take(1, now) && !queue.may_take(2, now), "held");
}

#[test]
fn who_passes_nobody_may_take_the_lock_however_often_others_were_passed() {
    let now = now();
    let mut queue = asleep(&[1, 2], now);
    for _ in 0..PASSES_MAX {
        queue.take(3, now);
        queue.release(now);
    }
    assert_eq!([1, 2, 3].map(|one| queue.may_take(one, now)), [true, false, false]);
    // Its nap ended by itself, as where nobody can try for the lock in its sleep. The other one sleeps on.
    queue.set_asleep(1, false);
    assert_eq!([1, 2, 3].map(|one| queue.may_take(one, now)), [true, true, false]);
}

#[test]
fn a_lock_that_came_in_a_sleep_is_held_and_a_stale_snapshot_is_told_so() {
    let now = now();
    let mut queue = asleep(&[1, 2], now);
    queue.refuse(3, &Arc::default(), now);
    assert!(queue.is_foreign());
    queue.take_asleep(1, now);
    assert_eq!((queue.holder, queue.is_foreign(), queue.may_take(2, now)), (Some(1), false, false));
    let stale = |queue: &mut QueueState, one| queue.ask_in_vain(one, &Arc::default(), now);
    assert_eq!([2, 1].map(|one| stale(&mut queue, one)), [Turn::Stale, Turn::Try]);
    queue.grant(1, now);
    assert_eq!(stale(&mut queue, 2), Turn::Wait, "it writes");
    queue.release(now);
    assert_eq!(stale(&mut queue, 2), Turn::Try);
}

#[test]
fn the_lock_counts_as_contended_for_a_while_after_it_changed_hands() {
    let now = now();
    let mut queue = QueueState::default();
    let mut granted = |connection, at| queue.grant(connection, at).1;
    assert!(!granted(1, now) && !granted(1, now));
    assert!(granted(2, now), "another had it");
    let over = now + CONTENDED;
    assert!(granted(2, over.checked_sub(NANOSECOND).unwrap()) && !granted(2, over));
    let mut queue = asleep(&[3], over);
    assert!(queue.grant(2, over).1, "another wants it");
    let (place, _) = queue.grant(3, over);
    assert_eq!((place.map(|place| place.connection), queue.places.len()), (Some(3), 0));
}

#[test]
fn the_first_who_sleeps_looks_for_another_process() {
    let now = now();
    let mut queue = asleep(&[1, 2], now);
    assert!(!queue.waits_for_other_process(1), "nobody of another process has it");
    queue.refuse(3, &Arc::default(), now);
    assert_eq!([1, 2, 3].map(|one| queue.waits_for_other_process(one)), [true, false, false]);
    queue.set_asleep(1, false);
    assert_eq!([1, 2].map(|one| queue.waits_for_other_process(one)), [false, true]);
    assert_eq!(look(&queue, 2, now), Look::OtherProcess);
    for shut in [true, false] {
        (queue.shut, queue.holder) = (shut, (!shut).then_some(9));
        assert!(!queue.waits_for_other_process(2));
        assert_eq!(look(&queue, 2, now), Look::Woken);
    }
}

#[test]
fn a_refusal_of_one_that_nothing_stands_before_tells_of_another_process() {
    let now = now();
    let refused = |holder: Option<usize>, shut: bool| {
        let mut queue = QueueState { holder, shut, ..QueueState::default() };
        reserve(&mut queue, 1, now + RESERVATION, true);
        queue.refuse(1, &Arc::default(), now);
        (queue.is_foreign(), queue.holder, queue.reserved.is_some(), queue.places.len())
    };
    assert_eq!(refused(None, false), (true, None, false, 1));
    assert_eq!(refused(Some(1), false), (true, None, false, 1), "it had asked");
    assert_eq!(refused(Some(2), false), (false, Some(2), false, 1));
    assert_eq!(refused(None, true), (false, None, false, 1), "a checkpoint has it");
    let mut queue = asleep(&[], now);
    queue.refuse(1, &Arc::default(), now);
    queue.grant_in_vain(1);
    assert_eq!(
        (queue.is_foreign(), queue.holder, queue.places.len()),
        (false, Some(1), 1),
        "it keeps its place"
    );
    reserve(&mut queue, 2, now + RESERVATION, true);
    queue.drop_kept_for(1);
    assert!(queue.reserved.is_some());
}

#[test]
fn whoever_asks_in_vain_disturbs_nobody() {
    let now = now();
    let until = now + RESERVATION;
    let asked = |holder: Option<usize>, kept: Option<usize>, at: Instant| {
        let mut queue = QueueState { holder, ..QueueState::default() };
        if let Some(connection) = kept {
            reserve(&mut queue, connection, until, false);
        }
        let turn = queue.ask_in_vain(1, &Arc::default(), at);
        (turn, queue.places.len(), queue.holder == holder, queue.is_kept(now) == kept.is_some())
    };
    assert_eq!(asked(None, None, now), (Turn::Try, 0, true, true));
    assert_eq!(asked(Some(1), Some(1), now), (Turn::Try, 0, true, true), "it has it, or has it next");
    assert_eq!(asked(Some(2), Some(3), now), (Turn::Wait, 1, true, true));
    assert_eq!(asked(None, Some(2), now), (Turn::Stale, 1, true, true));
    assert_eq!(asked(None, Some(2), until), (Turn::Try, 0, true, true), "what was kept has lapsed");
}

#[test]
fn places_of_those_not_heard_of_for_long_are_given_up() {
    let now = now();
    let mut queue = asleep(&[1, 2, 3], now);
    for connection in [1, 2] {
        queue.set_asleep(connection, false);
    }
    let last_seen = queue.places.iter().map(|place| place.seen).max().unwrap();
    queue.wait_in_queue(2, &Arc::default(), last_seen + NANOSECOND);
    let first = queue.first_asleep(last_seen + PLACE_KEPT).map(|place| place.connection);
    let left: Vec<usize> = queue.places.iter().map(|place| place.connection).collect();
    assert_eq!((first, left), (Some(3), vec![2, 3]));
    queue.set_shared_place(3, 7);
    let shared: Vec<Option<usize>> = queue.places.iter().map(|place| place.shared_place).collect();
    assert_eq!(shared, [None, Some(7)]);
}

#[test]
fn who_waits_with_many_or_for_long_tries_less_often() {
    let came = now();
    let queue = asleep(&[1], came);
    let pause = |processes, waited_ms| {
        let at = came + Duration::from_millis(waited_ms);
        queue.try_again(1, processes, at) - at
    };
    let micros = Duration::from_micros;
    assert_eq!([0, 1, 2, 40, 64].map(|processes| pause(processes, 0)), [50, 50, 100, 2000, 3200].map(micros));
    assert_eq!([1, 8, 64, 10_000].map(|waited_ms| pause(1, waited_ms)), [50, 250, 2000, 4000].map(micros));
    assert_eq!(pause(u32::MAX, 0), TRY_UNRUNG, "whatever the page says");
}

/// One that does nothing but write has the lock again and again, each time so long after it gave it back. Returns the time of its last release.
fn writes(queue: &mut QueueState, times: u32, gap: Duration, begins: Instant) -> Instant {
    let mut now = begins;
    for _ in 0..times {
        now += gap;
        queue.note_ask(1, now);
        assert!(queue.may_take(1, now));
        queue.take(1, now);
        queue.grant(1, now);
        queue.release(now);
    }
    now
}

#[test]
fn who_comes_back_at_once_has_the_lock_for_a_slice_and_no_longer() {
    let mut now = now();
    let gap = AT_ONCE / 2;
    let mut queue = QueueState::default();
    now = writes(&mut queue, STREAK + 2, gap, now);
    // Another had it in between: its slice is over, and the habit stays.
    queue.grant(3, now);
    queue.release(now);
    now = writes(&mut queue, 1, gap, now);
    let end = now + SLICE;
    queue.wait_in_queue(2, &Arc::default(), now);
    queue.set_asleep(2, true);
    assert_eq!(look(&queue, 2, now), Look::Slice(end));
    queue.set_timed(2);
    now = writes(&mut queue, PASSES_MAX * 2, gap, now);
    assert_eq!((queue.slice_end(now), queue.passes), (Some(end), 0));
    // One that waits for flushes waits here, too.
    queue.note_pause(5);
    queue.wait_in_queue(5, &Arc::default(), now);
    assert_eq!((queue.slice_end(now), look(&queue, 2, now)), (None, Look::Mine));
    queue.forget(5, now);
    queue.holder = Some(1);
    assert_eq!(look(&queue, 2, now), Look::Slice(end), "while it writes, too");
    assert_eq!([2, 4].map(|one| queue.may_take(one, now)), [false; 2]);
    queue.holder = None;
    assert_eq!(look(&queue, 2, now + AT_ONCE), Look::Mine, "it did not come back");
    assert_eq!(look(&queue, 2, end), Look::Mine);
    // From here on it passes others as anybody does.
    now = end;
    queue.wait_in_queue(2, &Arc::default(), now);
    for _ in 0..PASSES_MAX {
        assert!(queue.may_take(1, now));
        queue.take(1, now);
        queue.release(now);
    }
    assert!(!queue.may_take(1, now) && queue.may_take(2, now));
}

#[test]
fn who_waits_for_something_else_between_its_transactions_has_no_slice() {
    let begins = now();
    let has_slice = |gap, pauses: bool| {
        let mut queue = asleep(&[], begins);
        let mut now = begins;
        for _ in 0..STREAK * 2 {
            now = writes(&mut queue, 1, gap, now);
            if pauses {
                queue.note_pause(1);
            }
        }
        queue.slice_end(now).is_some()
    };
    assert!(has_slice(AT_ONCE / 2, false));
    assert!(!has_slice(AT_ONCE, false), "it thinks");
    assert!(!has_slice(AT_ONCE / 2, true), "for a flush");
}
