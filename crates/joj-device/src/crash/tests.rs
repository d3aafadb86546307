//! Goal: no image lacks what was promised, and every image that may be is reached.
//! Method: small histories by hand, random ones against the promise; a failure prints seed, cut and pick.

use std::collections::BTreeSet;

use super::*;
use crate::assembly::Assembly;
use crate::device::EmulatedDevice;
use crate::log_writes::{LogReader, LogWrites};
use crate::model::{Completion, Detail};
use crate::request::{Request, RequestKind};
use crate::request_log::{LoggedRequest, RequestSink};
use crate::store::ZEROS;

const BLOCK: u64 = 4096;

fn write(block: u64, byte: u8) -> LogEntry {
    LogEntry::Write { offset_bytes: block * BLOCK, data: vec![byte; 4096], preflush: false, fua: false }
}

fn fua(block: u64, byte: u8) -> LogEntry {
    LogEntry::Write { offset_bytes: block * BLOCK, data: vec![byte; 4096], preflush: false, fua: true }
}

const fn done(completed: usize) -> Cut {
    Cut { completed, in_flight: 0 }
}

/// First bytes of the first `blocks` blocks.
fn bytes(image: &Image, blocks: u64) -> Vec<u8> {
    (0..blocks).map(|number| image.block(number, &ZEROS)[0]).collect()
}

/// All images of a cut as first bytes.
fn reached(history: &History, cut: Cut, blocks: u64) -> BTreeSet<Vec<u8>> {
    CrashStates::new(history, cut).images(200, 1, false).map(|(_, image)| bytes(&image, blocks)).collect()
}

#[test]
fn what_a_flush_covers_is_in_every_image() {
    let history = History::from(vec![write(0, 1), write(1, 2), LogEntry::Flush, write(0, 3)]);
    assert_eq!(reached(&history, done(3), 2), BTreeSet::from([vec![1, 2]]));
    assert_eq!(reached(&history, done(4), 2), BTreeSet::from([vec![1, 2], vec![3, 2]]));
}

#[test]
fn without_a_flush_every_subset_is_reached() {
    let history = History::from(vec![write(0, 1), write(1, 2), write(2, 3)]);
    assert_eq!(reached(&history, done(3), 3).len(), 8);
}

#[test]
fn a_device_that_lies_keeps_nothing_for_sure() {
    let honest = History::from(vec![write(0, 1), LogEntry::Flush, fua(1, 2)]);
    assert_eq!(reached(&honest, done(3), 2), BTreeSet::from([vec![1, 2]]));
    let expected = [[0, 0], [0, 2], [1, 0], [1, 2]].map(Vec::from);
    assert_eq!(reached(&honest.without_promises(), done(3), 2), BTreeSet::from(expected));
}

#[test]
fn a_log_in_two_parts_gives_the_images_of_the_whole() {
    let entries = vec![
        write(0, 1),
        write(1, 2),
        LogEntry::Discard { offset_bytes: 0, len_bytes: 512, fua: false },
        LogEntry::Flush,
        write(1, 3),
        fua(2, 4),
    ];
    let whole = History::from(entries);
    let base = whole.store(4);
    let tail = whole.clone().behind(4);
    for pick in [Pick::None, Pick::All, Pick::Sectors(5)] {
        let expected = CrashStates::new(&whole, done(6)).image(pick);
        let states = CrashStates::new(&tail, done(2));
        let (mut store, mut without) = (base.clone(), base.clone());
        states.put_on(&mut store, pick);
        states.put_without(&mut without, &states.missing(pick));
        for number in 0..3 {
            let expected = expected.block(number, &ZEROS);
            let put = [&store, &without].map(|store| *store.on_medium(number));
            assert_eq!(put, [expected; 2], "{pick:?}, block {number}");
        }
    }
}

#[test]
fn each_version_of_a_block_may_be_the_one() {
    let history = History::from(vec![write(0, 1), write(0, 2), write(0, 3)]);
    let expected: BTreeSet<Vec<u8>> = (0..4).map(|byte| vec![byte]).collect();
    assert_eq!(reached(&history, done(3), 1), expected);
}

#[test]
fn a_fua_write_is_there_and_tells_nothing_of_others() {
    let history = History::from(vec![write(0, 1), write(1, 1), fua(1, 2), write(1, 3)]);
    let expected = [[0, 2], [0, 3], [1, 2], [1, 3]].map(Vec::from);
    assert_eq!(reached(&history, done(4), 2), BTreeSet::from(expected));
}

#[test]
fn a_fua_write_of_a_sector_outlasts_a_lost_write_of_its_block() {
    let sector = LogEntry::Write { offset_bytes: 512, data: vec![2; 512], preflush: false, fua: true };
    let history = History::from(vec![write(0, 1), sector]);
    let block = CrashStates::new(&history, done(2)).image(Pick::None).block(0, &ZEROS);
    assert_eq!([block[0], block[512], block[1024]], [0, 2, 0]);
}

#[test]
fn of_two_devices_in_one_log_a_flush_covers_its_own() {
    let second = 2 * BLOCK;
    let flush = |offset_bytes| Request { offset_bytes, ..Request::flush() };
    let logged = |request, submitted_ns| {
        let completion =
            Completion { start_ns: submitted_ns, done_ns: submitted_ns + 1, detail: Detail::default() };
        LoggedRequest { request, submitted_ns, completion }
    };
    // The second device was later to the log than the first one's flush, with an earlier write.
    let mut requests = vec![
        logged(Request::write(0, BLOCK), 10),
        logged(flush(second), 30),
        logged(Request::write(second, BLOCK), 20),
        logged(flush(0), 40),
    ];
    let entries = vec![write(0, 1), LogEntry::Flush, write(2, 3), LogEntry::Flush];
    let history = History::from(entries).of_two(&mut requests, second);
    assert!(requests.is_sorted_by_key(|request| request.submitted_ns));
    let both = |bytes: [[u8; 3]; 4]| BTreeSet::from(bytes.map(Vec::from));
    assert_eq!(reached(&history, done(2), 3), both([[0, 0, 0], [1, 0, 0], [0, 0, 3], [1, 0, 3]]));
    assert_eq!(reached(&history, done(3), 3), BTreeSet::from([vec![0, 0, 3], vec![1, 0, 3]]));
    assert_eq!(reached(&history, done(4), 3), BTreeSet::from([vec![1, 0, 3]]));
    assert_eq!(reached(&history.without_promises(), done(4), 3).len(), 4);
}

#[test]
fn what_is_under_way_promises_nothing() {
    let history = History::from(vec![write(0, 1), LogEntry::Flush, fua(0, 2)]);
    let cut = |completed, in_flight| reached(&history, Cut { completed, in_flight }, 1);
    assert_eq!(cut(1, 1), BTreeSet::from([vec![0], vec![1]]), "the flush was not done");
    assert_eq!(cut(2, 1), BTreeSet::from([vec![1], vec![2]]), "the FUA write was not done");
    assert_eq!(cut(3, 0), BTreeSet::from([vec![2]]));
}

#[test]
fn a_cut_at_a_time_tells_what_was_done_from_what_was_under_way() {
    let logged = |request, submitted_ns, done_ns| {
        let completion = Completion { start_ns: submitted_ns, done_ns, detail: Detail::default() };
        LoggedRequest { request, submitted_ns, completion }
    };
    let log = [
        logged(Request::write(0, 512), 0, 10),
        logged(Request::read(0, 512), 10, 20),
        logged(Request::flush(), 20, 30),
        logged(Request::write(0, 512), 40, 50),
    ];
    let cuts = [5, 10, 25, 30, 40, 99].map(|at_ns| Cut::at(&log, at_ns));
    let expected = [(0, 1), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0)];
    assert_eq!(cuts, expected.map(|(completed, in_flight)| Cut { completed, in_flight }));
}

#[test]
fn prefixes_keep_the_order_of_submission() {
    let history = History::from(vec![write(2, 9), LogEntry::Flush, write(1, 1), write(0, 2), write(1, 3)]);
    let states = CrashStates::new(&history, done(5));
    assert_eq!((states.volatile_blocks(), states.volatile_writes()), (2, 3));
    let prefixes: Vec<Vec<u8>> = (0..4).map(|n| bytes(&states.image(Pick::Prefix(n)), 3)).collect();
    assert_eq!(prefixes, [[0, 0, 9], [0, 1, 9], [2, 1, 9], [2, 3, 9]].map(Vec::from));
}

#[test]
fn torn_blocks_mix_sectors_of_old_and_new() {
    let history = History::from(vec![write(0, 1), LogEntry::Flush, write(0, 2)]);
    let states = CrashStates::new(&history, done(3));
    let block = states.image(Pick::Sectors(5)).block(0, &ZEROS);
    let sectors: BTreeSet<u8> = block.chunks(512).map(|sector| sector[0]).collect();
    assert_eq!(sectors, BTreeSet::from([1, 2]));
    assert!(
        block.chunks(512).all(|sector| sector.iter().all(|byte| *byte == sector[0])),
        "torn inside a sector"
    );
    assert_eq!(block, states.image(Pick::Sectors(5)).block(0, &ZEROS), "the seed decides");
}

#[test]
fn a_discard_is_zeros_and_costs_no_memory_for_them() {
    let discard = LogEntry::Discard { offset_bytes: 512, len_bytes: 1024, fua: false };
    let history = History::from(vec![write(0, 1), LogEntry::Flush, discard, LogEntry::Flush]);
    let image = CrashStates::new(&history, done(4)).image(Pick::None);
    let block = image.block(0, &ZEROS);
    assert_eq!([block[511], block[512], block[1535], block[1536]], [1, 0, 0, 1]);
}

#[test]
fn applied_and_written_images_are_the_same() {
    let part = LogEntry::Write { offset_bytes: 512, data: vec![5; 1024], preflush: false, fua: false };
    let history = History::from(vec![part, write(2, 6)]);
    let image = CrashStates::new(&history, done(2)).image(Pick::All);
    let mut written = Vec::new();
    image.write_to(&mut written, 3 * BLOCK).unwrap();
    let (mut applied, mut pieces) = (vec![0; written.len()], Vec::new());
    image
        .apply(|offset_bytes, bytes| {
            pieces.push((offset_bytes, bytes.len()));
            applied[index(offset_bytes)..index(offset_bytes) + bytes.len()].copy_from_slice(bytes);
            Ok(())
        })
        .unwrap();
    assert_eq!(pieces, [(512, 1024), (8192, 4096)]);
    assert!(applied == written, "different bytes");
}

/// A log as that of a device without a volatile cache is kept.
struct DurableLog(Vec<LoggedRequest>, LogWrites<std::io::Cursor<Vec<u8>>>);

impl RequestSink for DurableLog {
    fn record(&mut self, logged: &LoggedRequest, data: &[u8]) -> std::io::Result<()> {
        self.0.push(logged.durable());
        self.1.record(&logged.durable(), data)
    }
}

#[test]
fn a_cut_keeps_what_a_persistent_write_buffer_acknowledged() {
    // The buffer of 16 blocks is full most of the time, in front of a device that a cut takes a cache of.
    let assembly = Assembly::named("64KiB+galaxy-s5-emmc").unwrap();
    let log = DurableLog(Vec::new(), LogWrites::new(std::io::Cursor::new(Vec::new())).unwrap());
    let mut device = EmulatedDevice::new(&assembly, 1 << 20, log);
    let (mut chance, mut now_ns) = (Chance::new(5), 0);
    for byte in 1..=100u8 {
        now_ns += chance.below(1_000_000);
        let request = match chance.below(6) {
            0 => {
                Request { kind: RequestKind::Trim, offset_bytes: chance.below(40) * BLOCK, len_bytes: BLOCK }
            }
            _ => Request::write(chance.below(40) * BLOCK, BLOCK),
        };
        let mut data = vec![byte; if request.kind == RequestKind::Trim { 0 } else { 4096 }];
        device.submit(now_ns, request, &mut data).unwrap();
    }
    let (store, DurableLog(logged, data)) = device.into_parts();
    let data = data.finish().unwrap().into_inner();
    let history = History::read(LogReader::new(&data[..]).unwrap()).unwrap();
    let mut seen = 0;
    for at_ns in (0..now_ns).step_by(300_000) {
        let cut = Cut::at(&logged, at_ns);
        let promised = history.store(cut.completed);
        let states = CrashStates::new(&history, cut);
        for (pick, image) in states.images(8, at_ns, true) {
            let under_way = &logged[cut.completed..cut.completed + cut.in_flight];
            for number in 0..40 {
                let is_under_way =
                    under_way.iter().any(|logged| logged.request.offset_bytes == number * BLOCK);
                let is_kept = image.block(number, &ZEROS) == *promised.on_medium(number);
                assert!(is_kept || is_under_way, "{cut:?}, {pick:?}, block {number}");
                seen += usize::from(!is_kept);
            }
        }
    }
    assert!(seen > 0, "no cut took anything: this test could not fail");
    for number in 0..40 {
        assert_eq!(*history.store(100).on_medium(number), *store.on_medium(number), "block {number}");
    }
}

#[test]
fn no_image_of_random_histories_breaks_the_promise() {
    for seed in 0..40 {
        let mut chance = Chance::new(seed);
        let entries = (1..60u8).map(|byte| match chance.below(8) {
            0 => LogEntry::Flush,
            1 => fua(chance.below(6), byte),
            _ => write(chance.below(6), byte),
        });
        let history = History::from(entries.collect::<Vec<_>>());
        let completed = index(chance.below(60));
        for (pick, image) in CrashStates::new(&history, done(completed)).images(30, seed, true) {
            // Bytes grow with time: a sector is at least as new as the newest durable write, at most the newest of all.
            for number in 0..6 {
                let (floor, newest) = promised(&history.entries()[..completed], number);
                for sector in image.block(number, &ZEROS).chunks(512) {
                    let byte = sector[0];
                    assert!(
                        floor <= byte && byte <= newest,
                        "seed {seed}, {completed} done, {pick:?}, block {number}"
                    );
                }
            }
        }
    }
}

/// Oldest and newest byte that a block may have.
fn promised(entries: &[LogEntry], number: u64) -> (u8, u8) {
    let (mut floor, mut newest) = (0, 0);
    for entry in entries {
        match entry {
            LogEntry::Flush => floor = newest,
            LogEntry::Write { offset_bytes, data, fua, .. } if *offset_bytes == number * BLOCK => {
                newest = data[0];
                floor = if *fua { newest } else { floor };
            }
            _ => {}
        }
    }
    (floor, newest)
}
