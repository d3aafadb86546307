//! The fields of an event by name, for the text formats: numbers as they are, words spelled out.

use crate::trace::event::{Event, EventKind, RequestFlags};
use crate::trace::texts::Texts;

/// A field's value.
pub enum Value<'a> {
    /// A number; 0 is none.
    Number(u64),
    /// A number with a sign; 0 is none.
    Signed(i64),
    /// A word or a name; empty is none.
    Text(&'a str),
    /// Words with `|` between them, or a device; empty is none.
    Made(String),
}

/// How many fields there are.
pub const FIELDS: usize = 18;

/// Their names, in order: those of docs/trace_format.md, without `_code` and `_number` where a word takes its place.
pub const NAMES: [&str; FIELDS] = [
    "time_ns",
    "event_type",
    "device",
    "first_sector",
    "byte_length",
    "operation",
    "request_flags",
    "thread_id",
    "process_id",
    "thread_name",
    "file_device",
    "file_inode",
    "file_generation",
    "file_offset",
    "backing",
    "content",
    "detail_value",
    "text_value",
];

const FLAGS: [(RequestFlags, &str); 7] = [
    (RequestFlags::SYNC, "sync"),
    (RequestFlags::METADATA, "metadata"),
    (RequestFlags::FUA, "fua"),
    (RequestFlags::PREFLUSH, "preflush"),
    (RequestFlags::READ_AHEAD, "read-ahead"),
    (RequestFlags::CONTINUED, "continued"),
    (RequestFlags::CUT_SHORT, "cut-short"),
];

/// The values of an event, in the order of [`NAMES`].
pub fn values<'a>(event: &Event, texts: &'a Texts) -> [Value<'a>; FIELDS] {
    use Value::{Made, Number, Signed, Text};
    let device = |number: crate::trace::event::DeviceNumber| {
        Made(if number.0 == 0 { String::new() } else { number.to_string() })
    };
    let is_request =
        matches!(event.kind, EventKind::Queue | EventKind::Issue | EventKind::Complete | EventKind::Requeue);
    let is_queue = event.kind == EventKind::Queue;
    let flags: Vec<&str> =
        FLAGS.iter().filter(|(flag, _)| event.flags.has(*flag)).map(|(_, word)| *word).collect();
    [
        Number(event.time_ns),
        Text(event.kind.text()),
        device(event.device),
        Number(event.sector),
        Number(event.bytes),
        Text(if is_request { event.operation.text() } else { "" }),
        Made(flags.join("|")),
        Number(event.thread.into()),
        Number(event.process.into()),
        Text(texts.get(event.command)),
        device(event.file.device),
        Number(event.file.inode),
        Number(event.file.generation.into()),
        Number(event.offset),
        Text(if is_queue { event.backing.text() } else { "" }),
        Text(if is_queue { event.content.text() } else { "" }),
        Signed(event.detail),
        Text(texts.get(event.name)),
    ]
}
