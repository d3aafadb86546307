//! Goal: writes take the buffer's time while it has room, reads see what it holds, and all that is done is durable.
//! Method: a buffer and a device of round numbers, with the expected times written out; random requests against plain data.

use super::*;
use crate::assembly::expected::{refused, us};
use crate::chance::Chance;
use crate::description::CacheCosts;
use crate::description::round::{cache, plain};
use crate::device::EmulatedDevice;
use crate::number::index;
use crate::request::{Request, RequestKind};
use crate::shipped;
use crate::store::Store;

const US: u64 = 1_000;
const BLOCK: u64 = 4096;

/// A device whose commands, transfers of a block, and pages take so many microseconds; in place, one request at a time.
fn device(command_us: u64, transfer_us: u64, read_us: u64, program_us: u64) -> Description {
    let mut description = plain();
    let (bus, flash) = (&mut description.bus, &mut description.flash);
    [bus.read_command_ns, bus.write_command_ns, bus.trim_command_ns] = [command_us * US; 3];
    [bus.read_transfer_ns, bus.write_transfer_ns] = [transfer_us * US; 2];
    [flash.read_ns, flash.program_ns, flash.erase_ns] = [read_us * US, program_us * US, 0];
    description
}

/// A block takes 310 us to write, 160 us to read.
fn slow() -> Description {
    device(100, 10, 50, 200)
}

fn cached(fua: bool) -> Description {
    Description { cache: Some(CacheCosts { fua, ..cache(64, 30) }), ..slow() }
}

/// `blocks` of a buffer in which a block takes 4 us to write, 3 us to read.
fn buffered(blocks: u64, behind: impl Into<Assembly>) -> Assembly {
    let buffer = Box::new(Description { capacity_bytes: blocks * BLOCK, ..device(1, 1, 1, 2) });
    Assembly::Buffered(WriteBuffer { name: "b".to_owned(), buffer, behind: Box::new(behind.into()) })
}

struct Timed(AssembledModel);

impl Timed {
    fn new(assembly: &Assembly) -> Self {
        Timed(AssembledModel::new(assembly, 1 << 30))
    }

    /// Latency in microseconds of `request` at `at_us`.
    fn us(&mut self, at_us: u64, request: Request) -> u64 {
        us(&mut self.0, at_us, request)
    }
}

fn write(block: u64) -> Request {
    Request::write(block * BLOCK, BLOCK)
}

fn read(block: u64) -> Request {
    Request::read(block * BLOCK, BLOCK)
}

#[test]
fn a_write_takes_the_buffers_time_and_a_flush_none() {
    let mut timed = Timed::new(&buffered(16, slow()));
    assert_eq!(timed.us(0, write(0)), 1 + 1 + 2);
    assert_eq!(timed.us(10, Request::write(8 * BLOCK, 2 * BLOCK)), 1 + 2 + 2 * 2);
    assert_eq!(timed.us(20, Request::flush()), 0);
    // An eighth of the transfer; the buffer reads the rest of its block.
    assert_eq!(timed.us(30, Request::write(BLOCK, 512)), 1 + 1 + 2);
}

#[test]
fn a_read_sees_the_buffer_until_the_block_has_left_it() {
    let mut timed = Timed::new(&buffered(16, slow()));
    timed.us(0, write(5));
    // In the buffer at 4 us; it leaves at once, and is behind at 314 us.
    assert_eq!(timed.us(10, read(5)), 1 + 1 + 1);
    assert_eq!(timed.us(313, read(5)), 3);
    assert_eq!(timed.us(314, read(5)), 100 + 10 + 50);
}

#[test]
fn a_read_of_something_else_waits_for_what_leaves() {
    let mut timed = Timed::new(&buffered(16, slow()));
    assert_eq!(timed.us(0, read(7)), 160);
    timed.us(200, write(5));
    // Block 5 leaves from 204 us to 514 us.
    assert_eq!(timed.us(214, read(7)), 300 + 160);
}

#[test]
fn a_read_of_both_takes_the_longer_of_its_parts() {
    let mut timed = Timed::new(&buffered(16, slow()));
    timed.us(0, write(5));
    assert_eq!(
        timed.us(10, Request::read(4 * BLOCK, 3 * BLOCK)),
        304 + 160 + 160,
        "blocks 4 and 6 are two requests"
    );
}

#[test]
fn a_full_buffer_makes_writes_wait_for_the_device_behind() {
    let mut timed = Timed::new(&buffered(16, slow()));
    // Every other block, so that none leaves together with another. One leaves from 4 us to 314 us, and keeps its room until then.
    for number in 0..16 {
        assert_eq!(timed.us(10 * number, write(2 * number)), 4, "write {number}");
    }
    assert_eq!(timed.us(160, write(40)), 314 - 160 + 4, "16 blocks are held or on their way until 314 us");
    assert_eq!(timed.us(318, write(42)), 624 - 318 + 4, "the next one leaves from 314 us to 624 us");
    assert_eq!(timed.us(100_000, write(44)), 4, "in the background all have left");
}

#[test]
fn a_block_that_is_written_again_takes_no_room_and_leaves_once() {
    let mut timed = Timed::new(&buffered(16, slow()));
    timed.us(0, write(0));
    for number in 1..100 {
        assert_eq!(timed.us(5 * number, write(2)), 4, "write {number}");
        if 5 * number > 300 {
            break;
        }
    }
    // Block 0 is behind at 314 us, then block 2 leaves once, until 624 us.
    assert_eq!(timed.us(623, read(2)), 3);
    assert_eq!(timed.us(624, read(2)), 160);
}

#[test]
fn blocks_next_to_each_other_leave_together() {
    let mut timed = Timed::new(&buffered(64, slow()));
    timed.us(0, write(9));
    for (number, block) in [3, 1, 2].into_iter().enumerate() {
        timed.us(10 + 10 * crate::number::size(number), write(block));
    }
    // Block 9 leaves until 314 us, then 1 to 3 as one request: 100 + 3 x 10 + 3 x 200.
    assert_eq!(timed.us(314 + 729, read(1)), 3);
    assert_eq!(timed.us(314 + 730, read(1)), 160);
}

#[test]
fn a_long_write_waits_for_its_own_blocks() {
    let mut timed = Timed::new(&buffered(16, slow()));
    // Four blocks at a time, 1 + 4 + 8 us each; the fifth piece finds no room until the first four have left, which began at 13 us.
    assert_eq!(timed.us(0, Request::write(0, 20 * BLOCK)), 13 + 100 + 4 * 10 + 4 * 200 + 13);
}

#[test]
fn what_leaves_for_a_volatile_cache_is_made_durable_there() {
    for (fua, behind_us) in [(true, 100 + 10 + 200 + 5), (false, 100 + 10 + 200 + 30)] {
        let mut timed = Timed::new(&buffered(16, cached(fua)));
        timed.us(0, write(5));
        assert_eq!(timed.us(4 + behind_us - 1, read(5)), 3, "fua {fua}");
        assert_eq!(timed.us(4 + behind_us, read(5)), 160, "fua {fua}");
    }
}

#[test]
fn a_trimmed_block_does_not_leave() {
    let mut timed = Timed::new(&buffered(16, slow()));
    timed.us(0, write(9));
    timed.us(10, Request::write(2 * BLOCK, BLOCK));
    let trim = Request { kind: RequestKind::Trim, offset_bytes: 2 * BLOCK, len_bytes: BLOCK };
    assert_eq!(timed.us(20, trim), 1);
    // The device behind trims from 314 us to 414 us.
    assert_eq!(timed.us(30, read(2)), 414 - 30 + 160);
    assert_eq!(timed.us(1000, read(2)), 160);
}

#[test]
fn two_striped_devices_take_two_blocks_at_a_time() {
    let members = vec![Assembly::from(slow()), Assembly::from(slow())];
    let raid0 = Raid0 { name: "r".to_owned(), stripe_bytes: BLOCK, members };
    let mut timed = Timed::new(&buffered(16, Assembly::Striped(raid0)));
    timed.us(0, write(0));
    timed.us(4, write(3));
    // Block 0 leaves until 314 us, block 3 on the other member until 318 us.
    assert_eq!(timed.us(318, read(3)), 160);
}

#[test]
fn what_is_done_is_durable_and_is_read_back() {
    let mut chance = Chance::new(21);
    for behind in [slow(), cached(true), cached(false)] {
        let assembly = buffered(16, behind);
        assert!(!assembly.has_volatile_cache() && !assembly.offers_fua());
        let mut device = EmulatedDevice::new(&assembly, 1 << 20, ());
        let (mut plain, mut now_ns) = (Store::new(), 0);
        for step in 0..600u64 {
            let offset_bytes = 512 * chance.below(1900);
            let len_bytes = 512 * (1 + chance.below(100));
            let mut data = vec![step.to_le_bytes()[0]; index(len_bytes)];
            let request = match chance.below(4) {
                0 => Request::read(offset_bytes, len_bytes),
                1 if step % 5 == 0 => Request { kind: RequestKind::Trim, offset_bytes, len_bytes },
                _ => Request::write(offset_bytes, len_bytes),
            };
            now_ns += chance.below(900) * US;
            if request.kind == RequestKind::Trim {
                data.clear();
                plain.zero(offset_bytes, len_bytes, true);
            } else if request.kind != RequestKind::Read {
                plain.write(offset_bytes, &data, true);
            }
            let done = device.submit(now_ns, request, &mut data).unwrap();
            assert_eq!(done.done_ns, now_ns + done.detail.total_ns(), "step {step}");
            assert!(done.start_ns >= now_ns && done.start_ns <= done.done_ns, "step {step}: {done:?}");
            for block in 0..256 {
                assert!(
                    device.store().on_medium(block) == plain.on_medium(block),
                    "step {step}, block {block}"
                );
            }
            if request.kind == RequestKind::Read {
                let mut expected = vec![0; data.len()];
                plain.read(offset_bytes, &mut expected);
                assert!(data == expected, "step {step}: {request:?} read other bytes");
            }
        }
    }
}

#[test]
fn a_name_or_a_file_says_buffer_and_device() {
    let named = |name: &str| match Assembly::named(name).unwrap() {
        Assembly::Buffered(found) => (found.buffer.capacity_bytes, found.behind.name().to_owned()),
        other => panic!("{other:?}"),
    };
    assert_eq!(named("pcm-16mb+kingston"), (16 << 20, "kingston".to_owned()));
    assert_eq!(named("64MiB+2xridata"), (64 << 20, "2xridata".to_owned()));
    let file = |table: &str| {
        let text = format!(
            "format = 'joj-device'\nversion = 1\nname = 'n'\nsummary = 's'\n[write_buffer]\n{table}\n\
             [sources]\n'write_buffer.bytes' = 'chosen: a test'\n"
        );
        Assembly::read("me", &mut |name| match name {
            "me" => Some(text.clone()),
            _ => shipped::text(name).map(str::to_owned),
        })
    };
    let found = file("buffer = 'pcm-16mb'\ndevice = '2xram'\nbytes = 65536").unwrap();
    let Assembly::Buffered(WriteBuffer { buffer, .. }) = found else { panic!() };
    assert_eq!((&*buffer.name, buffer.capacity_bytes), ("pcm-16mb", 65_536));
    for (table, expected) in [
        ("buffer = 'galaxy-s5-emmc'\ndevice = 'ram'\nbytes = 65536", "has a volatile cache"),
        ("buffer = '2xram'\ndevice = 'ram'\nbytes = 65536", "name a single one"),
        ("buffer = 'pcm-16mb'\ndevice = 'ram'\nbytes = 61440", "not in 65536"),
        ("buffer = 'pcm-16mb'\ndevice = 'ram'\nbytes = 65537", "not a multiple"),
        ("buffer = 'pcm-16mb'\nbytes = 65536", "device"),
        (
            "buffer = 'pcm-16mb'\ndevice = 'ram'\nbytes = 65536\n[raid0]\nmembers = ['ram', 'ram']",
            "make two files",
        ),
    ] {
        let error = file(table).unwrap_err().to_string();
        assert!(error.contains(expected), "{table:?} gave {error}");
    }
    for (name, expected) in [
        ("4KiB+ram", "not in 65536"),
        ("galaxy-s3-emmc+ram", "has a volatile cache"),
        ("pcm-16mb+rom", "device description rom"),
        ("2xram+ram", "name a single one"),
    ] {
        refused(name, expected);
    }
}
