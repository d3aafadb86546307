//! Goal: offsets and frames map onto each other, and blocks cover what they should, for every input; growth never
//! shrinks a file nor passes the user's limit.
#![no_main]

use libfuzzer_sys::fuzz_target;
use waldio::log::layout::{BLOCK_BYTES, FrameIndex, block_ceil, block_floor, frame_at, frame_bytes, frame_offset};
use waldio::log::reserve::next_size;

fuzz_target!(|input: (u64, u8, u64, u64, u64)| {
    let (number, page_power, used_bytes, file_bytes, limit_bytes) = input;
    let page_bytes = 512_u32 << (page_power % 8);
    let index = FrameIndex(number % (1 << 40));
    let offset = frame_offset(index, page_bytes);
    assert_eq!(frame_at(offset, page_bytes), Some(index));
    for inside in [1, 23, 24, frame_bytes(page_bytes) - 1] {
        assert_eq!(frame_at(offset + inside, page_bytes), None);
    }
    let (floor, ceil) = (block_floor(offset), block_ceil(offset + 1));
    assert!(floor <= offset && offset < ceil);
    assert!(floor % BLOCK_BYTES == 0 && ceil % BLOCK_BYTES == 0 && ceil - floor == BLOCK_BYTES);
    let (used_bytes, file_bytes) = (used_bytes % (1 << 50), file_bytes % (1 << 50));
    if let Some(size) = next_size(used_bytes, file_bytes, 4 << 20, Some(limit_bytes)) {
        assert!(size > file_bytes && size <= limit_bytes);
    }
});
