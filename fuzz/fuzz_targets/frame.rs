//! Goal: headers read from a disk never panic, and what is read as valid is written back to the same bytes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use waldio::log::frame::{FrameHeader, LogHeader};

fuzz_target!(|bytes: ([u8; 32], [u8; 24])| {
    let (log, frame) = &bytes;
    if let Some(header) = LogHeader::parse(log) {
        let again =
            LogHeader::encode(header.big_endian_checksum, header.page_bytes, header.sequence, header.salts);
        assert_eq!(&again, log);
    }
    assert_eq!(&FrameHeader::parse(frame).encode(), frame);
});
