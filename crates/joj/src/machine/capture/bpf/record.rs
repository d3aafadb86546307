//! The bytes that the eBPF programs hand up (bpf/record.h) become events.

use joj_analysis::trace::event::{
    Backing, Content, DeviceNumber, Event, EventKind, FileKey, Operation, RequestFlags,
};
use joj_analysis::trace::texts::{Text, Texts, name_of};

use crate::machine::capture::bpf::calls;

/// Bytes of a record without the text that may follow.
const RECORD_BYTES: usize = 96;
/// Set in the marks of a path that goes on above the last of its names.
const PATH_CUT: u8 = 128;
/// Set for a directory, whose path ends with a slash.
const PATH_OF_DIRECTORY: u8 = 64;

/// The event that a record holds; `None` where the bytes are no record, which would be a fault of ours.
pub fn event(bytes: &[u8], texts: &mut Texts) -> Option<Event> {
    let (record, rest) = bytes.split_at_checked(RECORD_BYTES)?;
    let kind = EventKind::from_code(record[70])?;
    let (name, offset) = match kind {
        EventKind::Named | EventKind::Unlinked => (path(record, rest, texts), 0),
        _ => (texts.keep(calls::name(record[74])), quad(record, 32)),
    };
    let detail = i64::from_ne_bytes(record[40..48].try_into().ok()?);
    Some(Event {
        time_ns: quad(record, 0),
        kind,
        device: DeviceNumber(long(record, 48)),
        sector: quad(record, 8),
        bytes: quad(record, 16),
        operation: Operation::from_code(record[71])?,
        flags: RequestFlags(u16::from_ne_bytes([record[68], record[69]])),
        thread: long(record, 60),
        process: long(record, 64),
        command: texts.keep(&until_zero(&record[76..92])),
        file: FileKey {
            device: DeviceNumber(long(record, 52)),
            inode: quad(record, 24),
            generation: long(record, 56),
        },
        offset,
        backing: Backing::from_code(record[72])?,
        content: Content::from_code(record[73])?,
        detail: if kind == EventKind::Complete { error_of_status(detail) } else { detail },
        name,
    })
}

/// The bytes of the block that a queued run writes, where the programs were asked for them.
pub fn block(bytes: &[u8]) -> Option<&[u8]> {
    let (record, rest) = bytes.split_at_checked(RECORD_BYTES)?;
    let length = usize::try_from(long(record, 92)).ok().filter(|length| *length > 0)?;
    if record[70] == EventKind::Queue.code() { rest.get(..length) } else { None }
}

fn quad(record: &[u8], at: usize) -> u64 {
    record.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

fn long(record: &[u8], at: usize) -> u32 {
    record.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn until_zero(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    name_of(bytes.split(|byte| *byte == 0).next().unwrap_or_default())
}

/// Names come from the file up to the root, each ended by a zero. Where the path goes on above them, the inode number of the directory
/// that they are in stands for the rest: no two files have the same name then, and the end still tells what a file is for.
fn path(record: &[u8], text: &[u8], texts: &mut Texts) -> Text {
    let length = usize::try_from(long(record, 92)).unwrap_or(usize::MAX);
    let text = &text[..text.len().min(length)];
    let marks = record[75];
    let mut path = String::new();
    if marks & PATH_CUT != 0 {
        path = format!("…(inode {})", quad(record, 32));
    }
    let parts: Vec<_> = text.split_inclusive(|byte| *byte == 0).map(until_zero).collect();
    for part in parts.iter().rev() {
        path.push('/');
        path.push_str(part);
    }
    if marks & PATH_OF_DIRECTORY != 0 || path.is_empty() {
        path.push('/');
    }
    texts.keep(&path)
}

/// The errno, negative, of the block layer's status (`blk_errors` in the kernel's block/blk-core.c); EIO for one we do not know.
fn error_of_status(status: i64) -> i64 {
    let number = match status {
        0 => 0,
        1 => libc::EOPNOTSUPP,
        2 => libc::ETIMEDOUT,
        3 => libc::ENOSPC,
        4 => libc::ENOLINK,
        5 => libc::EREMOTEIO,
        6 => libc::EBADE,
        7 => libc::ENODATA,
        8 => libc::EILSEQ,
        9 => libc::ENOMEM,
        12 => libc::EAGAIN,
        13 => libc::EBUSY,
        16 => libc::ENODEV,
        17 => libc::ETIME,
        19 => libc::EINVAL,
        _ => libc::EIO,
    };
    -i64::from(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: EventKind) -> Vec<u8> {
        let mut bytes = vec![0; RECORD_BYTES];
        bytes[70] = kind.code();
        bytes[76..79].copy_from_slice(b"cat");
        bytes
    }

    #[test]
    fn a_path_is_turned_round_and_a_cut_one_says_in_which_directory() {
        let mut texts = Texts::default();
        let mut bytes = record(EventKind::Named);
        bytes.extend(b"app.db\0data\0");
        bytes[92] = 12;
        let event = event(&bytes, &mut texts).expect("a record");
        assert_eq!((texts.get(event.name), texts.get(event.command)), ("/data/app.db", "cat"));
        bytes[75] = PATH_CUT;
        bytes[32] = 77;
        let event = super::event(&bytes, &mut texts).expect("a record");
        assert_eq!((texts.get(event.name), event.offset), ("…(inode 77)/data/app.db", 0));
        bytes[75] = PATH_OF_DIRECTORY;
        let event = super::event(&bytes, &mut texts).expect("a record");
        assert_eq!(texts.get(event.name), "/data/app.db/");
        let root = super::event(&record(EventKind::Named), &mut texts).expect("a record");
        assert_eq!(texts.get(root.name), "/");
    }

    #[test]
    fn what_is_no_record_is_no_event() {
        let mut texts = Texts::default();
        assert_eq!(event(&[0; 20], &mut texts), None);
        assert_eq!(event(&[0; RECORD_BYTES], &mut texts), None, "no kind has code 0");
    }

    #[test]
    fn a_failed_request_has_its_errno() {
        let mut bytes = record(EventKind::Complete);
        bytes[40] = 10;
        assert_eq!(event(&bytes, &mut Texts::default()).map(|event| event.detail), Some(-5));
    }
}
