//! Goal: what was recorded is read back, and a damaged log is refused with a reason.
//! Method: a log of each kind of entry; cut at every length, and each byte of its headers changed.

use std::io::Cursor;

use super::*;
use crate::model::{Completion, Detail};
use crate::request::Request;

fn record(log: &mut LogWrites<Cursor<Vec<u8>>>, request: Request, data: &[u8]) {
    let completion = Completion { start_ns: 0, done_ns: 0, detail: Detail::default() };
    log.record(&LoggedRequest { request, submitted_ns: 0, completion }, data).unwrap();
}

fn sample() -> Vec<u8> {
    let mut log = LogWrites::new(Cursor::new(Vec::new())).unwrap();
    record(&mut log, Request::write(4096, 1024), &[1; 1024]);
    record(&mut log, Request::read(0, 512), &[]);
    record(&mut log, Request::flush(), &[]);
    record(&mut log, Request::write_fua(512, 512), &[2; 512]);
    record(&mut log, Request { kind: RequestKind::Trim, offset_bytes: 8192, len_bytes: 4096 }, &[]);
    record(
        &mut log,
        Request { kind: RequestKind::WriteZeroes { fua: true }, offset_bytes: 0, len_bytes: 512 },
        &[],
    );
    log.mark("end").unwrap();
    log.finish().unwrap().into_inner()
}

fn read(bytes: &[u8]) -> io::Result<Vec<LogEntry>> {
    LogReader::new(bytes)?.collect()
}

#[test]
fn what_was_recorded_is_read_back() {
    let write =
        |offset_bytes, data: Vec<u8>, fua| LogEntry::Write { offset_bytes, data, preflush: false, fua };
    let expected = [
        write(4096, vec![1; 1024], false),
        LogEntry::Flush,
        write(512, vec![2; 512], true),
        LogEntry::Discard { offset_bytes: 8192, len_bytes: 4096, fua: false },
        LogEntry::Discard { offset_bytes: 0, len_bytes: 512, fua: true },
        LogEntry::Mark("end".to_owned()),
    ];
    assert_eq!(read(&sample()).unwrap(), expected);
}

#[test]
fn the_bytes_are_those_of_the_kernel() {
    let bytes = sample();
    assert_eq!(
        bytes[..8],
        [0x72, 0x68, 0x73, 0x77, 0x66, 0x73, 0x6a, 0],
        "hrswfsj: the magic, little-endian"
    );
    assert_eq!((bytes[8], bytes[16], bytes[24..28].to_vec()), (1, 6, vec![0, 2, 0, 0]));
    // Sector 8, two sectors, no flag; its data in the next sectors; then the flush.
    assert_eq!((bytes[512], bytes[520], bytes[528]), (8, 2, 0));
    assert_eq!((bytes[1024], bytes[2047], bytes[2048 + 16]), (1, 1, 1));
    assert_eq!(bytes.len() % 512, 0);
}

#[test]
fn a_log_cut_anywhere_is_refused_and_says_where() {
    let bytes = sample();
    for len in 0..bytes.len() {
        let error = read(&bytes[..len]).expect_err("a part was read as the whole");
        assert!(error.to_string().contains("cut off in"), "at {len}: {error}");
    }
}

#[test]
fn a_damaged_log_never_panics_and_foreign_files_are_refused() {
    let bytes = sample();
    for at in (0..28).chain(512..544).chain(2048..2080) {
        for flip in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= flip;
            let _ = read(&damaged);
        }
    }
    let with = |at: usize, value: u8| {
        let mut bytes = sample();
        bytes[at] = value;
        read(&bytes).unwrap_err().to_string()
    };
    assert!(with(0, 0).contains("no dm-log-writes log"));
    assert!(with(8, 2).contains("version 2"));
    assert!(with(24, 3).contains("sectors of 515 bytes"));
    assert!(with(512 + 17, 0xff).contains("flags"));
    assert!(with(512 + 15, 0xff).contains("entry 1 of 6"));
}

#[test]
fn a_mark_with_a_long_name_is_refused() {
    let mut log = LogWrites::new(Cursor::new(Vec::new())).unwrap();
    assert!(log.mark(&"x".repeat(481)).unwrap_err().to_string().contains("480"));
}
