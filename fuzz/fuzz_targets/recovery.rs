//! Goal: a log of any bytes is read without a panic and without claiming more than is there; a good log, broken at
//! any place, keeps exactly the frames in front of the break.
#![no_main]

use libfuzzer_sys::fuzz_target;
use waldio::log::frame::Salts;
use waldio::log::layout::{FrameIndex, frame_offset};
use waldio::log::recovery::{scan_bytes, synthetic_log};

const PAGE_BYTES: u32 = 512;

fuzz_target!(|input: (Vec<u8>, Vec<Vec<u8>>, u32, u8)| {
    let (raw, transactions, at, change) = input;
    let summary = scan_bytes(&raw);
    assert!(summary.frames_committed <= summary.frames_valid && summary.commits <= summary.frames_committed);
    assert!(
        summary.page_bytes == 0
            || frame_offset(FrameIndex(summary.frames_valid), summary.page_bytes) <= raw.len() as u64
    );

    let transactions: Vec<Vec<u32>> = transactions
        .iter()
        .take(8)
        .filter(|pages| !pages.is_empty())
        .map(|pages| pages.iter().take(4).map(|page| u32::from(*page) + 1).collect())
        .collect();
    let borrowed: Vec<&[u32]> = transactions.iter().map(Vec::as_slice).collect();
    let mut log = synthetic_log(PAGE_BYTES, Salts([change; 8]), &borrowed);
    let whole = scan_bytes(&log);
    assert_eq!(whole.commits, borrowed.len() as u64);
    let at = at as usize % log.len();
    log[at] ^= change;
    let broken = scan_bytes(&log);
    if change == 0 {
        assert_eq!(broken, whole);
    } else if at < 32 {
        assert_eq!(broken.frames_valid, 0);
    } else {
        assert_eq!(broken.frames_valid, (at as u64 - 32) / u64::from(24 + PAGE_BYTES));
    }
});
