//! Goal: a log in the `embedded` layout reads back as SQLite wrote it, in pieces of any size and whatever its pages end with; and
//! a file of any bytes is read without a panic and without claiming more than is there.
#![no_main]

use std::path::Path;
use std::sync::Arc;

use blockio::disk::{Disk, DiskFile, OpenOptions};
use blockio::simulated::disk::SimDisk;
use libfuzzer_sys::fuzz_target;
use waldio::log::embedded_file::in_layout;
use waldio::log::frame::{LOG_HEADER_BYTES, Salts};
use waldio::log::layout::Layout;
use waldio::log::recovery::{scan, scan_bytes, synthetic_log};

const FRAME: usize = 24 + 4096;

fn log_on(raw: &[u8]) -> (Box<dyn DiskFile>, Arc<dyn DiskFile>) {
    let (disk, path) = (Arc::new(SimDisk::new()), Path::new("/app.db-wal"));
    let create = OpenOptions { create: true, mode: 0o600, ..OpenOptions::EXISTING };
    let file = disk.open(path, create).expect("an empty disk");
    file.write_at(raw, 0).expect("a sound disk");
    let below = disk.open(path, OpenOptions::EXISTING).expect("it is there");
    (below, in_layout(Layout::Embedded, file, &(disk as Arc<dyn Disk>), path, false))
}

fuzz_target!(|input: (Vec<u8>, Vec<(u8, Vec<u8>)>, Vec<(u16, u16)>)| {
    let (raw, endings, cuts) = input;
    let (below, log) = log_on(&raw);
    let summary = scan(|into, offset| log.read_at(into, offset)).expect("a sound disk");
    let size = log.size().expect("a sound disk");
    assert!(LOG_HEADER_BYTES + summary.frames_valid * FRAME as u64 <= size.max(LOG_HEADER_BYTES));
    assert!(scan(|into, offset| below.read_at(into, offset)).is_ok());

    // A log whose pages end with what the input says, written over it in pieces that the input cuts.
    let mut bytes =
        synthetic_log(4096, Salts([raw.first().copied().unwrap_or(1); 8]), &[&[1, 2], &[3], &[4]]);
    for (frame, ending) in &endings {
        let end = 32 + (usize::from(*frame) % 4 + 1) * FRAME;
        let len_bytes = ending.len().min(40);
        bytes[end - len_bytes..end].copy_from_slice(&ending[..len_bytes]);
    }
    log.write_at(&bytes[..32], 0).expect("a whole header");
    let mut at = 32;
    for (len_bytes, _) in cuts.iter().chain([&(u16::MAX, 0)]) {
        let end = bytes.len().min(at + usize::from(*len_bytes));
        log.write_at(&bytes[at..end], at as u64).expect("page numbers are small");
        at = end;
    }
    for (offset, len_bytes) in cuts.iter().chain([&(0, u16::MAX)]) {
        let (from, to) = (
            usize::from(*offset).min(bytes.len()),
            bytes.len().min(usize::from(*offset) + usize::from(*len_bytes)),
        );
        let mut seen = vec![0; to - from];
        assert_eq!(log.read_at(&mut seen, from as u64).expect("a sound disk"), seen.len());
        assert!(seen == bytes[from..to], "{from} to {to}");
    }
    let through = scan(|into, offset| log.read_at(into, offset)).expect("a sound disk");
    let direct = scan_bytes(&bytes);
    assert_eq!(through.frames_committed.min(4), direct.frames_committed, "no more than was written is valid");
});
