//! Goal: other programs' traces become the events beside them in fixtures/import, and damage names its place.
//! Method: recorded files. The text of ftrace is a kernel's (Linux 6.18, ext4 on a loop device, SQLite creating a table in DELETE mode);
//! the binary files hold the same requests in blktrace's layout, and the blkparse text is what blkparse 1.2.0 printed of them.

#![allow(clippy::unwrap_used, reason = "clippy exempts test functions, not the helpers they share")]

use std::io::Cursor;
use std::ops::ControlFlow;

use joj_analysis::trace::attribution::attribute::Attributor;
use joj_analysis::trace::event::{DeviceNumber, Event, EventKind, Operation, RequestFlags};
use joj_analysis::trace::export::json_lines::JsonLines;
use joj_analysis::trace::export::{Exporter, blkparse as to_blkparse};
use joj_analysis::trace::file_type::FileTypes;
use joj_analysis::trace::header::Header;
use joj_analysis::trace::import::{ImportError, ImportSink, blkparse, blktrace, ftrace};
use joj_analysis::trace::summary::Summariser;
use joj_analysis::trace::summary::counts::Counts;
use joj_analysis::trace::texts::Texts;

const FTRACE: &[u8] = include_bytes!("../../../fixtures/import/ext4_sqlite.ftrace");
const BLKPARSE: &[u8] = include_bytes!("../../../fixtures/import/loop1.blkparse");
const BLKTRACE: [&[u8]; 2] = [
    include_bytes!("../../../fixtures/import/loop1.blktrace.0"),
    include_bytes!("../../../fixtures/import/loop1.blktrace.1"),
];

type Import = fn(&[u8], &mut ImportSink) -> Result<Header, ImportError>;

fn from_ftrace(text: &[u8], sink: &mut ImportSink) -> Result<Header, ImportError> {
    ftrace::import(Cursor::new(text), sink)
}

fn from_blkparse(text: &[u8], sink: &mut ImportSink) -> Result<Header, ImportError> {
    blkparse::import(text, sink)
}

/// The header as one line of JSON, then the events.
fn told(import: impl FnOnce(&mut ImportSink) -> Result<Header, ImportError>) -> Result<String, String> {
    let mut lines = Vec::new();
    let mut sink = |event: &Event, texts: &Texts| {
        JsonLines.event(event, texts, &mut lines).unwrap();
        ControlFlow::Continue(())
    };
    let header = import(&mut sink).map_err(|error| error.to_string())?;
    let lines = String::from_utf8(lines).unwrap();
    let ending = header.ending.as_ref().unwrap();
    assert_eq!(ending.events, lines.lines().count() as u64);
    Ok(format!("{}\n{lines}", serde_json::to_string(&header).unwrap()))
}

fn files<'a>(bytes: &[&'a [u8]]) -> Vec<(String, &'a [u8])> {
    ["loop1.blktrace.0", "loop1.blktrace.1"]
        .map(str::to_owned)
        .into_iter()
        .zip(bytes.iter().copied())
        .collect()
}

/// With JOJ_WRITE_FIXTURES set, writes what must be read by a human before it is committed.
fn compare(told: Result<String, String>, name: &str) {
    let path = format!("{}/../../fixtures/import/{name}", env!("CARGO_MANIFEST_DIR"));
    let told = told.unwrap();
    if std::env::var_os("JOJ_WRITE_FIXTURES").is_some() {
        std::fs::write(&path, &told).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap();
    for (number, (told, wanted)) in told.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(told, wanted, "line {} of {name}", number + 1);
    }
    assert_eq!(told.lines().count(), wanted.lines().count(), "{name}");
}

#[test]
fn ftraces_text_becomes_the_events_beside_it() {
    compare(told(|sink| ftrace::import(Cursor::new(FTRACE), sink)), "ext4_sqlite.events");
}

#[test]
fn blktraces_files_become_the_events_beside_them() {
    compare(told(|sink| blktrace::import(files(&BLKTRACE), sink)), "loop1.blktrace.events");
}

#[test]
fn blkparses_text_becomes_the_events_beside_it() {
    compare(told(|sink| blkparse::import(BLKPARSE, sink)), "loop1.blkparse.events");
}

/// Turns the numbers of a file's records around.
fn other_order(bytes: &[u8]) -> Vec<u8> {
    let mut turned = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut at = 0;
        for width in [4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2] {
            turned.extend(rest[at..at + width].iter().rev());
            at += width;
        }
        let further = usize::from(u16::from_le_bytes([rest[46], rest[47]]));
        // The calendar time is two numbers in the recorder's order; names and remaps are the same everywhere.
        let action = u32::from_le_bytes([rest[28], rest[29], rest[30], rest[31]]);
        let mut more = rest[48..48 + further].to_vec();
        if action == 1 << 26 | 1 {
            more[..4].reverse();
            more[4..].reverse();
        }
        turned.extend(more);
        rest = &rest[48 + further..];
    }
    turned
}

#[test]
fn the_byte_order_of_the_recorder_makes_no_difference() {
    let turned = BLKTRACE.map(other_order);
    let both: Vec<&[u8]> = turned.iter().map(Vec::as_slice).collect();
    let as_recorded = told(|sink| blktrace::import(files(&BLKTRACE), sink));
    assert_eq!(told(|sink| blktrace::import(files(&both), sink)), as_recorded);
    let mixed = [both[0], BLKTRACE[0]].concat();
    let error = told(|sink| blktrace::import(vec![("a".to_owned(), mixed.as_slice())], sink)).unwrap_err();
    assert!(error.contains(&format!("at byte {}", both[0].len())) && error.contains("byte order"), "{error}");
}

#[test]
fn blkparse_text_that_we_export_is_read_back() {
    let mut text = Vec::new();
    let mut exporter = to_blkparse::Blkparse::new(0);
    let without_number = |event: &Event, texts: &Texts| {
        (Event { command: Default::default(), ..*event }, texts.get(event.command).to_owned())
    };
    let mut first = Vec::new();
    blkparse::import(BLKPARSE, &mut |event, texts| {
        first.push(without_number(event, texts));
        exporter.event(event, texts, &mut text).unwrap();
        ControlFlow::Continue(())
    })
    .unwrap();
    let mut second = Vec::new();
    blkparse::import(text.as_slice(), &mut |event, texts| {
        second.push(without_number(event, texts));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(first, second);
}

/// Requests of every kind and length, from the queue to their end; every third one fails.
fn of_every_kind() -> Vec<Event> {
    let flags = [RequestFlags::default(), RequestFlags::SYNC, RequestFlags::FUA.with(RequestFlags::SYNC)];
    let mut events = Vec::new();
    for &operation in Operation::ALL {
        for (part, flags) in (0u64..).zip(flags) {
            let at = 1000 * (events.len() as u64 + 1);
            let (sector, bytes) = if operation == Operation::Flush { (0, 0) } else { (at, 4096 << part) };
            let device = DeviceNumber::new(8, 0).unwrap();
            let event = Event { device, sector, bytes, operation, flags, ..Event::default() };
            let detail = if part == 2 { -5 } else { 0 };
            events.push(Event { kind: EventKind::Queue, time_ns: at, ..event });
            events.push(Event { kind: EventKind::Issue, time_ns: at + 1, ..event });
            events.push(Event { kind: EventKind::Complete, time_ns: at + 2, detail, ..event });
        }
    }
    events
}

fn counted(events: &[Event]) -> Counts {
    let (header, texts) = (Header::default(), Texts::default());
    let mut attributor = Attributor::new(&header, FileTypes::default());
    let mut summariser = Summariser::of(&header);
    for event in events {
        summariser.event(event);
        attributor.event(event, &texts, &mut |outcome, texts| summariser.outcome(&outcome, texts));
    }
    attributor.finish(&texts, &mut |outcome, texts| summariser.outcome(&outcome, texts));
    summariser.finish(&header, &texts).counts
}

#[test]
fn an_export_as_blkparses_text_has_the_same_sums_read_back() {
    let events = of_every_kind();
    let (mut text, mut exporter) = (Vec::new(), to_blkparse::Blkparse::new(0));
    for event in &events {
        exporter.event(event, &Texts::default(), &mut text).unwrap();
    }
    let mut back = Vec::new();
    blkparse::import(text.as_slice(), &mut |event, _| {
        back.push(*event);
        ControlFlow::Continue(())
    })
    .unwrap();
    let (whole, back) = (counted(&events), counted(&back));
    let requests = (whole.writes.requests, whole.reads.requests, whole.discards.requests, whole.flushes);
    assert_eq!((requests, whole.errors), ((3, 3, 6, 3), Operation::ALL.len() as u64));
    assert_eq!(back, whole, "{}", String::from_utf8_lossy(&text));
}

#[test]
fn a_file_cut_off_anywhere_but_between_records_is_an_error() {
    let whole = BLKTRACE[0];
    let mut ends = vec![0];
    while let Some(at) = ends.last().copied().filter(|at| *at < whole.len()) {
        ends.push(at + 48 + usize::from(u16::from_le_bytes([whole[at + 46], whole[at + 47]])));
    }
    for length in 0..whole.len() {
        let result = told(|sink| blktrace::import(vec![("a".to_owned(), &whole[..length])], sink));
        match ends.binary_search(&length) {
            Ok(_) => assert!(result.is_ok(), "{length} bytes: {result:?}"),
            Err(place) => {
                let error = result.unwrap_err();
                let begin = format!("a: record {place} at byte {}: ", ends[place - 1]);
                assert!(error.starts_with(&begin), "{error}");
            }
        }
    }
    for (text, import) in [(FTRACE, from_ftrace as Import), (BLKPARSE, from_blkparse)] {
        for length in (1..text.len()).filter(|length| text[length - 1] != b'\n').step_by(7) {
            let error = told(|sink| import(&text[..length], sink)).unwrap_err();
            assert!(
                error.contains("cut off in the middle") && error.starts_with("line "),
                "{length}: {error}"
            );
        }
    }
}

#[test]
fn a_line_of_blkparse_that_cannot_be_read_is_named_with_its_byte() {
    let good = "  8,0 0 1 0.1 7 Q R 1 + 8 [a]\n";
    for (line, told_of) in [
        ("8,0 0 2 0.2 7 Q R x + 8 [a]", "`x` is no number of a sector"),
        ("8.0", "`8.0` is no device"),
        ("8,0 0 2 0.2 7 Q R 1 + 8 a", "no name or error in brackets"),
        ("8,0 0 2 0.2 7 C R 1 + 8 [a]", "`a` is no error"),
        ("8,0 0 2 0.2 7 Q X 1 + 8 [a]", "`X` is no kind of request"),
        ("8,0 0 2 0.2 7 q R 1 + 8 [a]", "`q` is no action"),
        ("8,0 0 2 0.2 7 Q R 1 + 36028797018963968 [a]", "too many"),
        ("8,0 0 2 0.2 7 A R 1 + 8", "no remap"),
    ] {
        let error = told(|sink| blkparse::import(format!("{good}{line}\n").as_bytes(), sink)).unwrap_err();
        let begin = format!("line 2 at byte {}: ", good.len());
        assert!(error.starts_with(&begin) && error.contains(told_of), "{error}");
    }
}

#[test]
fn a_line_of_ftrace_that_cannot_be_read_is_named_with_its_byte() {
    let good = "a-1 [0] ..... 1.5: block_rq_issue: 8,0 W 512 () 1 + 1 [a]\n";
    for (said, told_of) in [
        ("block_rq_issue: 8,0 W 512 ()", "no `sector + sectors`"),
        ("block_rq_issue: 8 W 512 () 1 + 1 [a]", "no device"),
        ("block_rq_complete: 8,0 W () 1 + 1 [a]", "no error in brackets"),
        ("jbd2_start_commit: dev 8,1 sync 0", "no transaction"),
        ("ext4_sync_file_enter: dev 8,1 parent 2", "no inode"),
        ("block_bio_remap: 8,0 W 1 + 8", "no remap"),
    ] {
        let text = format!("{good}a-1 [0] ..... 1.6: {said}\n");
        let error = told(|sink| ftrace::import(Cursor::new(&text), sink)).unwrap_err();
        let begin = format!("line 2 at byte {}: ", good.len());
        assert!(error.starts_with(&begin) && error.contains(told_of), "{error}");
    }
}

#[test]
fn what_is_no_file_of_blktrace_or_a_newer_one_is_told_so() {
    let import = |bytes: &[u8]| {
        told(|sink| blktrace::import(vec![("x.blktrace.0".to_owned(), bytes)], sink)).unwrap_err()
    };
    let error = import(&[b'x'; 48]);
    assert!(error.starts_with("x.blktrace.0: record 1 at byte 0: "), "{error}");
    assert!(error.contains("no binary file of blktrace"), "{error}");
    let mut newer = BLKTRACE[0].to_vec();
    newer[0] = 8;
    assert!(import(&newer).contains("format 8"));
}

#[test]
fn an_import_that_its_sink_ends_blames_no_line() {
    let mut stop = |_: &Event, _: &Texts| ControlFlow::Break(());
    let ended = [
        from_ftrace(FTRACE, &mut stop),
        from_blkparse(BLKPARSE, &mut stop),
        blktrace::import(files(&BLKTRACE), &mut stop),
    ];
    for (number, result) in ended.into_iter().enumerate() {
        assert!(matches!(result, Err(ImportError::Stopped)), "{number}: {result:?}");
    }
}

#[test]
fn sync_calls_are_read_where_no_filesystem_tells_them() {
    let text = "a-7 [0] ..... 1.5: sys_fdatasync(fd: 3)\na-7 [0] ..... 1.6: sys_fdatasync -> 0x0\n\
                a-7 [0] ..... 1.7: sys_enter_fsync: fd: 0x3\na-7 [0] ..... 1.8: sys_exit_fsync: 0xfffffffffffffffb\n";
    let lines = told(|sink| ftrace::import(Cursor::new(&text), sink)).unwrap();
    let said: Vec<&str> =
        lines.lines().skip(1).map(|line| line.split_once("event_type").unwrap().1).collect();
    assert_eq!(said[0], r#"":"sync-begin","thread_id":7,"thread_name":"a","text_value":"fdatasync"}"#);
    assert_eq!(
        said[3],
        r#"":"sync-end","thread_id":7,"thread_name":"a","detail_value":-5,"text_value":"fsync"}"#
    );
}

/// The fuzz targets in short: bytes changed, doubled, taken out or exchanged with others of the same file.
#[test]
fn damaged_inputs_are_errors_or_events_in_order() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        usize::try_from(seed >> 33).unwrap() % below.max(1)
    };
    for round in 0..rounds() {
        for (whole, which) in [(FTRACE, 0), (BLKPARSE, 1), (BLKTRACE[0], 2), (BLKTRACE[1], 2)] {
            let mut bytes = whole.to_vec();
            for _ in 0..=random(4) {
                let (at, from, length) = (random(bytes.len()), random(bytes.len()), random(24));
                match random(4) {
                    0 => bytes[at] ^= 1 << random(8),
                    1 => drop(bytes.drain(at..(at + length).min(bytes.len()))),
                    2 => {
                        let taken = bytes[from..(from + length).min(bytes.len())].to_vec();
                        drop(bytes.splice(at..at, taken));
                    }
                    _ => bytes[at] = u8::try_from(random(256)).unwrap(),
                }
            }
            let mut last_ns = 0;
            let mut sink = |event: &Event, _: &Texts| {
                assert!(event.time_ns >= last_ns, "round {round} of input {which}");
                last_ns = event.time_ns;
                ControlFlow::Continue(())
            };
            let result = match which {
                0 => ftrace::import(Cursor::new(&bytes), &mut sink),
                1 => blkparse::import(bytes.as_slice(), &mut sink),
                _ => blktrace::import(vec![("a".to_owned(), bytes.as_slice())], &mut sink),
            };
            if let Err(error) = result {
                let error = error.to_string();
                assert!(error.contains(" at byte "), "round {round} of input {which}: {error}");
            }
        }
    }
}

/// JOJ_ROUNDS, or as many as take a second.
fn rounds() -> u32 {
    std::env::var("JOJ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(300)
}
