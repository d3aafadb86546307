//! Goal: what holds on every device, whatever is asked of it.
//! Method: seeded streams of requests on each shipped device; a failure prints device, seed and step.

use super::*;
use crate::chance::Chance;
use crate::shipped;

const BLOCK: u64 = 4096;
const CAPACITY: u64 = 64 << 20;

fn any_request(chance: &mut Chance) -> Request {
    let len_bytes = 512 * (1 + chance.below(64));
    let offset_bytes = 512 * chance.below((CAPACITY - len_bytes) / 512);
    match chance.below(10) {
        0 | 1 => Request::read(offset_bytes, len_bytes),
        2 => Request::write_fua(offset_bytes, len_bytes),
        3 => Request::flush(),
        4 => Request { kind: RequestKind::Trim, offset_bytes, len_bytes },
        5 | 6 => Request::write(offset_bytes, len_bytes),
        _ => Request::write(offset_bytes / BLOCK * BLOCK, BLOCK),
    }
}

/// Runs 400 requests on each device and hands each completion to `check` (device, submission, request, completion).
fn on_every_device(mut check: impl FnMut(&str, &Model, u64, Request, Completion)) {
    for name in shipped::names() {
        let description = Description::named(name).unwrap();
        for seed in 0..4 {
            let (mut chance, mut now_ns) = (Chance::new(seed), 0);
            let mut model = Model::new(&description, CAPACITY);
            for step in 0..400 {
                now_ns += chance.below(400_000);
                let request = any_request(&mut chance);
                let done = model.submit(now_ns, request);
                check(&format!("{name}, seed {seed}, step {step}"), &model, now_ns, request, done);
            }
        }
    }
}

#[test]
fn nothing_completes_before_it_began_nor_begins_before_it_was_submitted() {
    on_every_device(|place, _, at_ns, request, done| {
        assert!(at_ns <= done.start_ns && done.start_ns <= done.done_ns, "{place}: {request:?} {done:?}");
    });
}

#[test]
fn what_is_neither_waiting_nor_bus_begins_behind_them() {
    on_every_device(|place, _, at_ns, _, done| {
        let Detail { queue_ns, command_ns, transfer_ns, .. } = done.detail;
        assert_eq!(at_ns + queue_ns, done.start_ns, "{place}: {done:?}");
        assert!(done.done_ns >= done.start_ns + command_ns + transfer_ns, "{place}: {done:?}");
    });
}

#[test]
fn a_flush_leaves_nothing_dirty_and_outlasts_everything_before_it() {
    let (mut device, mut latest_ns) = (String::new(), 0);
    on_every_device(|place, model, _, request, done| {
        let of = place.split(", step").next().unwrap_or("");
        if device != of {
            (device, latest_ns) = (of.to_owned(), 0);
        }
        if request.kind == RequestKind::Flush {
            assert_eq!(model.dirty_bytes(), 0, "{place}");
            assert!(done.done_ns >= latest_ns, "{place}: done before a request in front of it");
        }
        latest_ns = latest_ns.max(done.done_ns);
    });
}

#[test]
fn requests_begin_in_the_order_of_their_submission() {
    let (mut device, mut last_ns) = (String::new(), 0);
    on_every_device(|place, _, _, _, done| {
        let of = place.split(", step").next().unwrap_or("");
        if device != of {
            (device, last_ns) = (of.to_owned(), 0);
        }
        assert!(done.start_ns >= last_ns, "{place}");
        last_ns = done.start_ns;
    });
}

#[test]
fn the_same_requests_give_the_same_times() {
    let run = || {
        let mut times = Vec::new();
        on_every_device(|_, _, _, _, done| times.push(done.done_ns));
        times
    };
    assert_eq!(run(), run());
}

#[test]
fn what_left_the_cache_without_a_flush_is_told_once() {
    let description = Description::named("galaxy-s3-emmc").unwrap();
    let mut model = Model::new(&description, CAPACITY);
    let blocks = 200;
    for block in 0..blocks {
        model.submit(0, Request::write(block * BLOCK, BLOCK));
    }
    let left: u64 = model.take_destaged().iter().map(|(_, len_bytes)| len_bytes).sum();
    assert!(left > 0, "the cache of 128 blocks took {blocks}");
    assert_eq!(left + model.dirty_bytes(), blocks * BLOCK);
    assert!(model.take_destaged().is_empty());
}
