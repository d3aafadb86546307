//! Goal: stripes go where RAID-0 has them, members work at the same time, and each keeps its own state.
//! Method: members of round numbers, with the expected times written out; files and names, right and wrong.

use super::*;
use crate::assembly::expected::{refused, us};
use crate::chance::Chance;
use crate::description::round::{cache, plain};
use crate::description::{CacheCosts, FtlKind};
use crate::device::EmulatedDevice;
use crate::request::{Request, RequestKind};
use crate::shipped;
use crate::workload::table_3;

const US: u64 = 1_000;
const BLOCK: u64 = 4096;

/// As `plain`, with a volatile cache; a flush takes so many us beside its programs.
fn cached(flush_us: u64) -> Description {
    Description { cache: Some(cache(64, flush_us)), ..plain() }
}

fn raid0(stripe_bytes: u64, members: impl IntoIterator<Item = Description>) -> Assembly {
    let members = members.into_iter().map(Assembly::from).collect();
    Assembly::Striped(Raid0 { name: "r".to_owned(), stripe_bytes, members })
}

fn model(assembly: &Assembly) -> AssembledModel {
    AssembledModel::new(assembly, 1 << 30)
}

#[test]
fn a_request_of_two_stripes_takes_the_time_of_one() {
    let two = || model(&raid0(BLOCK, [plain(), plain()]));
    assert_eq!(us(&mut two(), 0, Request::write(0, BLOCK)), 100 + 10 + 200);
    assert_eq!(us(&mut two(), 0, Request::write(0, 2 * BLOCK)), 100 + 10 + 200);
    assert_eq!(us(&mut two(), 0, Request::read(BLOCK, 2 * BLOCK)), 100 + 10 + 50);
    // Two stripes on the first member are one request there, and one stripe is on the second.
    assert_eq!(us(&mut two(), 0, Request::write(0, 3 * BLOCK)), 100 + 20 + 2 * 200);
    assert_eq!(us(&mut two(), 0, Request::write(0, 32 * BLOCK)), 100 + 160 + 16 * 200);
    let mut three = model(&raid0(BLOCK, [plain(), plain(), plain()]));
    assert_eq!(us(&mut three, 0, Request::write(0, 6 * BLOCK)), 100 + 20 + 2 * 200);
}

#[test]
fn each_member_has_a_queue_of_its_own() {
    let mut model = model(&raid0(BLOCK, [plain(), plain()]));
    assert_eq!(us(&mut model, 0, Request::write(0, BLOCK)), 310);
    assert_eq!(us(&mut model, 0, Request::write(BLOCK, BLOCK)), 310, "on the other member");
    assert_eq!(us(&mut model, 0, Request::write(2 * BLOCK, BLOCK)), 620, "behind the first");
}

#[test]
fn a_longer_stripe_keeps_a_request_on_one_member() {
    let mut long = model(&raid0(4 * BLOCK, [plain(), plain()]));
    assert_eq!(us(&mut long, 0, Request::write(0, 4 * BLOCK)), 100 + 40 + 4 * 200);
    let mut long = model(&raid0(4 * BLOCK, [plain(), plain()]));
    assert_eq!(us(&mut long, 0, Request::write(2 * BLOCK, 4 * BLOCK)), 100 + 20 + 2 * 200);
}

#[test]
fn a_request_ends_with_its_slowest_member() {
    let mut slow = plain();
    slow.flash.program_ns = 700 * US;
    let mut model = model(&raid0(BLOCK, [plain(), slow]));
    assert_eq!(us(&mut model, 0, Request::write(0, 2 * BLOCK)), 100 + 10 + 700);
    assert_eq!(us(&mut model, 810, Request::write(0, BLOCK)), 100 + 10 + 200);
}

#[test]
fn a_flush_goes_to_all_members() {
    let mut model = model(&raid0(BLOCK, [cached(30), cached(40)]));
    us(&mut model, 0, Request::write(0, 2 * BLOCK));
    assert_eq!(model.dirty_bytes(), 2 * BLOCK);
    assert_eq!(us(&mut model, 1000, Request::flush()), 200 + 40);
    assert_eq!(model.dirty_bytes(), 0);
}

#[test]
fn each_member_merges_its_own_blocks() {
    // Eight pages a data block, one log block: on one device the second write merges the first's block.
    let mut description = plain();
    description.ftl = FtlKind::Bast { block_bytes: 8 * BLOCK, log_blocks: 1, copy_ns: 300 * US };
    let writes = [Request::write(3 * BLOCK, BLOCK), Request::write(8 * BLOCK, BLOCK)];
    let mut one = model(&description.clone().into());
    let merged_us = 100 + 10 + 200 + 8 * 300 + 2 * 2000;
    assert_eq!([us(&mut one, 0, writes[0]), us(&mut one, 310, writes[1])], [310, merged_us]);
    let mut two = model(&raid0(BLOCK, [description.clone(), description]));
    assert_eq!([us(&mut two, 0, writes[0]), us(&mut two, 310, writes[1])], [310, 310]);
    // Blocks 0 to 15 of the device are one data block of each member.
    assert_eq!(us(&mut two, 620, Request::write(14 * BLOCK, BLOCK)), 310);
    assert_eq!(us(&mut two, 930, Request::write(16 * BLOCK, BLOCK)), merged_us);
}

#[test]
fn every_byte_of_a_request_is_on_one_member_once() {
    let mut chance = Chance::new(7);
    for (stripe_bytes, count) in [(BLOCK, 2), (BLOCK, 3), (3 * BLOCK, 2), (4 * BLOCK, 5)] {
        // A write to a device without a latency that is cached: all of it is dirty, in whole blocks, until a flush.
        let members: Vec<Description> = (0..count).map(|_| Description::named("ram").unwrap()).collect();
        let mut mixed = members.clone();
        mixed[0] = cached(0);
        let assembly = raid0(stripe_bytes, mixed);
        let mut device = EmulatedDevice::new(&assembly, 1 << 22, ());
        let mut model = AssembledModel::new(&assembly, 1 << 22);
        let mut now_ns = 0;
        for step in 0..300 {
            let (first, len) = (chance.below(900), 1 + chance.below(100));
            let request = Request::write(first * BLOCK, len * BLOCK);
            now_ns = model.submit(now_ns, request).done_ns;
            device.submit(now_ns, request, &mut vec![1; crate::number::index(len * BLOCK)]).unwrap();
            let durable: u64 = model.take_destaged().iter().map(|(_, len_bytes)| len_bytes).sum();
            let is_cached = |block: u64| (block * BLOCK / stripe_bytes).is_multiple_of(count);
            let on_cached = (first..first + len).filter(|block| is_cached(*block));
            let dirty: Vec<u64> = device.store().cached_blocks().collect();
            for block in first..first + len {
                assert!(
                    is_cached(block) || !dirty.contains(&block),
                    "step {step}: block {block} is not durable"
                );
            }
            assert!(durable >= (len - crate::number::size(on_cached.count())) * BLOCK, "step {step}");
            assert_eq!(crate::number::size(dirty.len()) * BLOCK, model.dirty_bytes(), "step {step}");
        }
    }
}

#[test]
fn flush_and_fua_are_offered_as_the_members_have_them() {
    let without_fua =
        Description { cache: Some(CacheCosts { fua: false, ..cached(30).cache.unwrap() }), ..plain() };
    for (members, promises) in [
        ([plain(), plain()], (false, false)),
        ([plain(), cached(30)], (true, true)),
        ([cached(30), without_fua], (true, false)),
    ] {
        let assembly = raid0(BLOCK, members);
        assert_eq!((assembly.has_volatile_cache(), assembly.offers_fua()), promises, "{assembly:?}");
    }
}

#[test]
fn trimming_reaches_all_members() {
    let mut model = model(&raid0(BLOCK, [cached(30), cached(30)]));
    us(&mut model, 0, Request::write(0, 4 * BLOCK));
    let trim = Request { kind: RequestKind::Trim, offset_bytes: BLOCK, len_bytes: 3 * BLOCK };
    assert_eq!(us(&mut model, 1000, trim), 70);
    assert_eq!(model.dirty_bytes(), BLOCK);
}

#[test]
fn a_name_says_how_many_of_which_and_the_stripe() {
    let two = Assembly::named("2xkingston").unwrap();
    let Assembly::Striped(raid0) = &two else { panic!("{two:?}") };
    assert_eq!((raid0.stripe_bytes, raid0.members.len(), two.name()), (4096, 2, "2xkingston"));
    assert_eq!(two.capacity_bytes(), 2 * 16_000_000_000 / 8192 * 8192);
    let Assembly::Striped(raid0) = Assembly::named("3x16KiB:ridata").unwrap() else { panic!() };
    assert_eq!((raid0.stripe_bytes, raid0.members[2].name()), (16_384, "ridata"));
}

#[test]
fn a_file_names_its_members_and_they_are_looked_up() {
    let text = "format = 'joj-device'\nversion = 1\nname = 'pair'\nsummary = 'a card beside the phone'\n\
                [raid0]\nmembers = ['galaxy-s3-emmc', 'mine.toml']\nstripe_bytes = 8192\n\
                [sources]\n'raid0.stripe_bytes' = 'chosen: a test'\n";
    let mut asked = Vec::new();
    let assembly = Assembly::read("pair.toml", &mut |name| {
        asked.push(name.to_owned());
        match name {
            "pair.toml" => Some(text.to_owned()),
            "mine.toml" => shipped::text("kingston").map(str::to_owned),
            _ => shipped::text(name).map(str::to_owned),
        }
    });
    let Assembly::Striped(raid0) = assembly.unwrap() else { panic!() };
    let names: Vec<&str> = raid0.members.iter().map(Assembly::name).collect();
    assert_eq!((raid0.stripe_bytes, names), (8192, vec!["galaxy-s3-emmc", "kingston"]));
    assert_eq!(asked, ["pair.toml", "galaxy-s3-emmc", "mine.toml"]);
}

#[test]
fn what_cannot_be_put_together_is_refused_with_its_cure() {
    let file = |raid0: &str| {
        format!(
            "format = 'joj-device'\nversion = 1\nname = 'n'\nsummary = 's'\n[raid0]\n{raid0}\n\
             [sources]\n'raid0.stripe_bytes' = 'chosen: a test'\n"
        )
    };
    for (raid0, expected) in [
        ("members = ['ram']\nstripe_bytes = 4096", "`raid0.members` is 1"),
        ("members = ['ram', 'rom']\nstripe_bytes = 4096", "no device of this name"),
        ("members = ['ram', 'ram']\nstripe_bytes = 4097", "round it up"),
        ("members = ['ram', 'ram']\nstripe_bytes = 512", "not in 4096"),
        ("members = ['pcm-16mb', 'ram']\nstripe_bytes = 33554432", "smaller than a stripe"),
        ("members = ['ram', 'ram']\nstripe_bytes = 4096\nmirrored = true", "mirrored"),
        ("members = ['ram', 'me']\nstripe_bytes = 4096", "stand in each other"),
        ("members = ['ram', 'ram']", "names `raid0.stripe_bytes`"),
    ] {
        let error = Assembly::read("me", &mut |name| match name {
            "me" => Some(file(raid0)),
            _ => shipped::text(name).map(str::to_owned),
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{raid0:?} gave {error}");
    }
    for (name, expected) in [
        ("1xram", "`raid0.members` is 1"),
        ("17xram", "not in 2 to 16"),
        ("2xrom", "device description rom"),
        ("2x5KiB:ram", "round it up"),
        ("xram", "no device of this name"),
    ] {
        refused(name, expected);
    }
}

#[test]
fn two_cards_halve_the_range_of_each() {
    // FAST'12, 5.3: behind a log-block FTL the smaller range of each card is worth more than the second card.
    let rate = |name: &str| table_3(&Assembly::named(name).unwrap()).random_write;
    assert!((rate("2xtranscend") / rate("transcend") - 1.0).abs() < 0.01, "one request at a time: no gain");
    assert!(rate("2xkingston") / rate("kingston") > 1.1);
}
