//! Goal: what was written is read, and what was not written whole or was changed since is refused with a remedy.
//! Method: generated traces; every kind of damage at many places, none of which may panic or give other events.

use std::path::{Path, PathBuf};

use joj_analysis::trace::event::Event;
use joj_analysis::trace::generate;
use joj_analysis::trace::header::{EVENTS_VERSION, Ending, Header};
use joj_analysis::trace::texts::Texts;

use super::checksum::Checksum;
use super::{TraceReadError, TraceReader, TraceWriter};

/// A directory that is gone at the end of the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("joj-trace-file-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

type Row = (Event, String, String);

/// An event with its texts beside it: their numbers are another reader's.
fn row(event: &Event, texts: &Texts) -> Row {
    let without = Event { command: Default::default(), name: Default::default(), ..*event };
    (without, texts.get(event.command).to_owned(), texts.get(event.name).to_owned())
}

fn write(path: &Path, events: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut writer = TraceWriter::create(path).unwrap();
    generate::generate(events, &mut |event, texts| {
        rows.push(row(event, texts));
        writer.push(event, texts)
    })
    .unwrap();
    assert_eq!(writer.finish(&generate::header()).unwrap(), events);
    rows
}

/// The trace, or what is said of it.
fn read(path: &Path) -> Result<(Header, Vec<Row>), String> {
    let read = || -> Result<_, TraceReadError> {
        let mut reader = TraceReader::open(path)?;
        let mut rows = Vec::new();
        reader.for_each(&mut |event, texts| rows.push(row(event, texts)))?;
        Ok((reader.header().clone(), rows))
    };
    read().map_err(|error| error.to_string())
}

#[test]
fn a_trace_of_several_row_groups_comes_back() {
    let scratch = Scratch::new("whole");
    let path = scratch.file("a.parquet");
    for events in [0, 1, 300_000] {
        let written = write(&path, events);
        let (header, rows) = read(&path).unwrap();
        assert!(rows == written, "{events} events came back as others");
        let ending = Some(Ending { events, ..Ending::default() });
        assert_eq!(header, Header { version: EVENTS_VERSION, ending, ..generate::header() });
    }
}

#[test]
fn the_file_has_its_name_only_when_it_is_whole() {
    let scratch = Scratch::new("part");
    let (path, part) = (scratch.file("a.parquet"), scratch.file("a.parquet.part"));
    let writer = TraceWriter::create(&path).unwrap();
    assert_eq!((path.exists(), part.exists()), (false, true));
    let error = read(&part).unwrap_err();
    assert!(error.contains("still running or was interrupted"), "{error}");
    drop(writer);
    assert_eq!((path.exists(), part.exists()), (false, false));
    let refused = TraceWriter::create(&scratch.0).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("no regular file"), "{refused}");
}

#[test]
fn a_file_that_was_cut_off_is_never_read_as_a_whole() {
    let scratch = Scratch::new("cut");
    let path = scratch.file("a.parquet");
    write(&path, 3_000);
    let bytes = std::fs::read(&path).unwrap();
    for length in (0..64).chain((64..bytes.len()).step_by(997)).chain(bytes.len() - 64..bytes.len()) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = read(&path).unwrap_err();
        let told = if length < 4 { "is no recording or trace" } else { "was cut off" };
        assert!(error.contains(told), "{length} bytes: {error}");
    }
}

#[test]
fn a_flipped_bit_is_an_error_or_changes_nothing() {
    let scratch = Scratch::new("flip");
    let path = scratch.file("a.parquet");
    write(&path, 2_000);
    let whole = read(&path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let footer = bytes.len() - 6_000.min(bytes.len());
    for place in (0..footer).step_by(211).chain((footer..bytes.len()).step_by(13)) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << (place % 8);
        std::fs::write(&path, &damaged).unwrap();
        if let Ok(read) = read(&path) {
            assert!(read == whole, "byte {place}: other events");
        }
    }
}

/// Damage that somebody made on purpose: the checksums are right again.
#[test]
fn damage_behind_right_checksums_is_no_panic() {
    let scratch = Scratch::new("forged");
    let path = scratch.file("a.parquet");
    write(&path, 2_000);
    let bytes = std::fs::read(&path).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let list = text.rfind("\"groups\":[[").map(|_| find(&bytes, b"\"groups\":[[")).unwrap();
    let end_at = list + b"\"groups\":[[".len();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let end: usize = std::str::from_utf8(&bytes[end_at..end_at + digits(end_at)]).unwrap().parse().unwrap();
    let sum_at = end_at + digits(end_at) + 1;
    let sum_digits = digits(sum_at);
    assert_eq!(Checksum::of(&bytes[..end]).to_string().as_bytes(), &bytes[sum_at..sum_at + sum_digits]);
    let mut tried = 0;
    for place in (4..end).step_by(11) {
        let mut forged = bytes.clone();
        forged[place] ^= 1 << (place % 8);
        let sum = Checksum::of(&forged[..end]).to_string();
        if sum.len() == sum_digits {
            forged[sum_at..sum_at + sum_digits].copy_from_slice(sum.as_bytes());
            std::fs::write(&path, &forged).unwrap();
            tried += 1;
            if let Err(error) = read(&path) {
                assert!(error.contains("is damaged") && !error.contains("checksum"), "byte {place}: {error}");
            }
        }
    }
    assert!(tried > 100, "only {tried} forgeries");
}

fn find(bytes: &[u8], wanted: &[u8]) -> usize {
    bytes.windows(wanted.len()).rposition(|window| window == wanted).unwrap()
}

#[test]
fn a_row_group_behind_the_end_of_the_file_takes_no_memory() {
    let scratch = Scratch::new("huge");
    let path = scratch.file("a.parquet");
    write(&path, 2_000);
    let mut bytes = std::fs::read(&path).unwrap();
    // `[[1234,567..]]` becomes `[[9999,567..]]`: there is nothing at that byte.
    let end = find(&bytes, b"\"groups\":[[") + b"\"groups\":[[".len();
    let digits = bytes[end..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes[end..end + digits].fill(b'9');
    std::fs::write(&path, &bytes).unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.contains("behind the file's end"), "{error}");
}

#[test]
fn what_is_no_trace_is_told_from_what_is_newer() {
    let scratch = Scratch::new("other");
    let path = scratch.file("a.parquet");
    std::fs::write(&path, "CSV,is,no,parquet\n").unwrap();
    assert!(read(&path).unwrap_err().contains("is no recording or trace"));
    write(&path, 10);
    let mut bytes = std::fs::read(&path).unwrap();
    let written = format!("{{\"version\":{EVENTS_VERSION},");
    let version = find(&bytes, written.as_bytes()) + b"{\"version\":".len();
    bytes[version] = b'9';
    std::fs::write(&path, &bytes).unwrap();
    let error = read(&path).unwrap_err();
    assert!(error.contains("newer joj (format 9;") && error.contains("upgrade"), "{error}");
    assert!(read(&scratch.file("none")).unwrap_err().contains("cannot open"));
}

/// (number, word) of each row of a table of the document, below its heading.
fn documented(heading: &str) -> Vec<(u64, String)> {
    let document = include_str!("../../../../docs/trace_format.md");
    let (_, table) = document.split_once(&format!("\n### `{heading}`\n")).unwrap();
    let rows = table.split("\n#").next().unwrap().lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| ")?.split(" | ");
        Some((cells.next()?.parse().ok()?, cells.next()?.trim_matches('`').to_owned()))
    });
    rows.collect()
}

#[test]
fn the_document_has_every_word_and_every_column() {
    macro_rules! words {
        ($($heading:literal $words:ty),*) => {$(
            let words: Vec<_> =
                <$words>::ALL.iter().map(|word| (u64::from(word.code()), word.text().to_owned())).collect();
            assert_eq!(documented($heading), words);
        )*};
    }
    use joj_analysis::recording::call::CallKind;
    use joj_analysis::trace::event::{Backing, Content, EventKind, Operation};
    words!("call_code" CallKind, "event_type" EventKind, "operation_code" Operation, "backing_code" Backing, "content_code" Content);
    let bits: Vec<u64> = documented("request_flags").iter().map(|(bit, _)| *bit).collect();
    assert_eq!(bits, [1, 2, 4, 8, 16, 32, 64]);
    let document = include_str!("../../../../docs/trace_format.md");
    let (_, table) = document.split_once("\n## Columns\n").unwrap();
    let columns: Vec<String> = table
        .split("\n#")
        .next()
        .unwrap()
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split(" | ").take(2).collect::<Vec<_>>().join(" ")))
        .collect();
    let wanted = super::schema::COLUMNS.iter().map(|column| {
        let kind = match (column.place, column.unsigned_bits) {
            (super::schema::ColumnPlace::Text(_), _) => "text".to_owned(),
            (_, 0) => "INT64".to_owned(),
            (_, bits) => format!("UINT{bits}"),
        };
        format!("{}` {kind}", column.name)
    });
    assert_eq!(columns, wanted.collect::<Vec<_>>());
}
