//! Goal: each term of the model's equations alone, and their sum.
//! Method: a device of round numbers with one term switched on; the expected latency is written out.

use super::*;
use crate::description::round::{cache, plain};

const US: u64 = 1_000;
const BLOCK: u64 = 4096;

/// As `plain`, with a volatile cache of `blocks`; a flush takes 30 us beside its programs.
fn cached(blocks: u64) -> Description {
    Description { cache: Some(cache(blocks, 30)), ..plain() }
}

/// Latency in microseconds of the last of `requests`, each submitted when the one before is done.
fn last_us(description: &Description, requests: &[Request]) -> u64 {
    let mut model = Model::new(description, 1 << 30);
    let mut now_ns = 0;
    let mut latency_ns = 0;
    for request in requests {
        let done = model.submit(now_ns, *request);
        latency_ns = done.done_ns - now_ns;
        now_ns = done.done_ns;
    }
    latency_ns / US
}

#[test]
fn a_read_is_command_and_transfer_and_page_reads() {
    assert_eq!(last_us(&plain(), &[Request::read(0, BLOCK)]), 100 + 10 + 50);
    assert_eq!(last_us(&plain(), &[Request::read(0, 8 * BLOCK)]), 100 + 80 + 8 * 50);
}

#[test]
fn a_write_without_a_cache_is_command_and_transfer_and_programs() {
    assert_eq!(last_us(&plain(), &[Request::write(0, 3 * BLOCK)]), 100 + 30 + 3 * 200);
    assert_eq!(last_us(&plain(), &[Request::write(0, BLOCK), Request::flush()]), 0);
}

#[test]
fn a_part_of_a_unit_costs_reading_its_rest() {
    assert_eq!(last_us(&plain(), &[Request::write(512, 512)]), 100 + 1 + 50 + 200);
    // Both ends, in different units.
    assert_eq!(last_us(&plain(), &[Request::write(2048, 4096)]), 100 + 10 + 2 * 50 + 2 * 200);
}

#[test]
fn parallel_units_share_the_pages_of_a_request() {
    let mut description = plain();
    description.flash.parallel_units = 4;
    assert_eq!(last_us(&description, &[Request::write(0, 4 * BLOCK)]), 100 + 40 + 200);
    assert_eq!(last_us(&description, &[Request::write(0, 5 * BLOCK)]), 100 + 50 + 2 * 200);
    assert_eq!(last_us(&description, &[Request::read(0, 5 * BLOCK)]), 100 + 50 + 2 * 50);
}

#[test]
fn units_smaller_than_a_page_are_packed_into_one_program() {
    let mut description = plain();
    description.flash.page_bytes = 4 * BLOCK;
    assert_eq!(last_us(&description, &[Request::write(0, 4 * BLOCK)]), 100 + 40 + 200);
    assert_eq!(last_us(&description, &[Request::write(0, 5 * BLOCK)]), 100 + 50 + 2 * 200);
}

#[test]
fn a_cached_write_leaves_its_program_to_the_flush() {
    assert_eq!(last_us(&cached(64), &[Request::write(0, 2 * BLOCK)]), 100 + 20);
    assert_eq!(last_us(&cached(64), &[Request::write(0, 2 * BLOCK), Request::flush()]), 2 * 200 + 30);
    assert_eq!(last_us(&cached(64), &[Request::flush()]), 30);
}

#[test]
fn a_cached_block_is_read_without_the_medium_and_coalesces_its_writes() {
    let write = Request::write(0, BLOCK);
    assert_eq!(last_us(&cached(64), &[write, Request::read(0, BLOCK)]), 100 + 10);
    assert_eq!(last_us(&cached(64), &[write, write, write, Request::flush()]), 200 + 30);
}

#[test]
fn a_fua_write_is_programmed_before_it_is_done_and_leaves_nothing_to_flush() {
    assert_eq!(last_us(&cached(64), &[Request::write_fua(0, BLOCK)]), 100 + 10 + 200 + 5);
    let over = [Request::write(0, BLOCK), Request::write_fua(0, BLOCK), Request::flush()];
    assert_eq!(last_us(&cached(64), &over), 30);
}

#[test]
fn a_full_cache_writes_at_the_speed_of_the_medium() {
    let writes: Vec<Request> = (0..500).map(|block| Request::write(block * BLOCK, BLOCK)).collect();
    assert_eq!(last_us(&cached(8), &writes), 200, "programs hide command and transfer");
    assert_eq!(last_us(&cached(8), &writes[..4]), 110, "half of the cache is dirty before it drains");
}

#[test]
fn at_rest_half_of_the_cache_is_dirty_at_most() {
    let mut model = Model::new(&cached(8), 1 << 30);
    for block in 0..20 {
        model.submit(block * 1000 * US, Request::write(block * BLOCK, BLOCK));
        assert_eq!(model.dirty_bytes(), (block + 1).min(4) * BLOCK, "after write {block}");
    }
}

#[test]
fn a_flush_waits_for_what_is_leaving_the_cache_already() {
    // The second write makes the first leave, from 220 us on; the trim takes the second, which ends at 290 us.
    let trim = Request { kind: RequestKind::Trim, offset_bytes: BLOCK, len_bytes: BLOCK };
    let requests = [Request::write(0, BLOCK), Request::write(BLOCK, BLOCK), trim, Request::flush()];
    assert_eq!(last_us(&cached(2), &requests), 220 + 200 - 290 + 30);
}

#[test]
fn one_request_at_a_time_waits_for_the_one_before() {
    let mut model = Model::new(&plain(), 1 << 30);
    let first = model.submit(0, Request::write(0, BLOCK));
    let second = model.submit(50 * US, Request::write(BLOCK, BLOCK));
    assert_eq!((first.done_ns, second.start_ns), (310 * US, 310 * US));
    assert_eq!(second.detail.queue_ns, 260 * US);
}

#[test]
fn a_queue_overlaps_programs_but_not_transfers() {
    let mut description = plain();
    (description.bus.queue_depth, description.flash.parallel_units) = (2, 4);
    let mut model = Model::new(&description, 1 << 30);
    let done: Vec<u64> =
        (0..3).map(|block| model.submit(0, Request::write(block * BLOCK, BLOCK)).done_ns / US).collect();
    assert_eq!(done, [310, 420, 310 + 310], "the third waits for a place in the queue");
}

#[test]
fn waiting_writes_share_a_command() {
    let mut description = cached(64);
    description.bus.packed_writes_max = 3;
    let mut model = Model::new(&description, 1 << 30);
    let commands: Vec<u64> = (0..6)
        .map(|block| model.submit(0, Request::write(block * BLOCK, BLOCK)).detail.command_ns / US)
        .collect();
    assert_eq!(commands, [100, 0, 0, 100, 0, 0]);
    assert_eq!(model.submit(0, Request::write_fua(0, BLOCK)).detail.command_ns, 100 * US);
    let after_ns = model.submit(0, Request::flush()).done_ns;
    assert_eq!(model.submit(after_ns, Request::write(0, BLOCK)).detail.command_ns, 100 * US);
}

#[test]
fn a_merge_costs_its_copies_and_erasures() {
    let mut description = plain();
    description.ftl =
        crate::description::FtlKind::Bast { block_bytes: 8 * BLOCK, log_blocks: 1, copy_ns: 300 * US };
    let writes = [Request::write(3 * BLOCK, BLOCK), Request::write(8 * BLOCK, BLOCK)];
    assert_eq!(last_us(&description, &writes), 100 + 10 + 200 + 8 * 300 + 2 * 2000);
    let in_order = [Request::write(0, 8 * BLOCK)];
    assert_eq!(last_us(&description, &in_order), 100 + 80 + 8 * 200 + 2000);
}

#[test]
fn a_piece_of_the_map_that_is_not_held_costs_a_miss() {
    let mut description = plain();
    let level = crate::description::MapLevel { entries: 2, covers_bytes: 8 * BLOCK, miss_ns: 40 * US };
    description.map_cache.insert("near".to_owned(), level);
    let write = |block: u64| Request::write(block * BLOCK, BLOCK);
    assert_eq!(last_us(&description, &[write(0)]), 310 + 40);
    assert_eq!(last_us(&description, &[write(0), write(8), write(1)]), 310, "two pieces are held");
    assert_eq!(last_us(&description, &[write(0), write(8), write(16), write(9)]), 310);
    assert_eq!(last_us(&description, &[write(0), write(8), write(16), write(1)]), 310 + 40);
}

#[test]
fn trimming_transfers_nothing_and_cleans_the_cache() {
    let trim = Request { kind: RequestKind::Trim, offset_bytes: 0, len_bytes: 4 * BLOCK };
    assert_eq!(last_us(&cached(64), &[Request::write(0, BLOCK), trim]), 70);
    assert_eq!(last_us(&cached(64), &[Request::write(0, BLOCK), trim, Request::flush()]), 30);
}
