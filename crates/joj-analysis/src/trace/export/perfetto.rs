//! Requests and sync calls for ui.perfetto.dev: a track for each file, and for each class of bytes that belong to none; on it a
//! slice for each run of bytes from issue to completion. Sync calls have a track for each thread, and arrows to their requests.
//!
//! Only fields of Perfetto's public protos are written, by number: trace_packet, track_descriptor, track_event, debug_annotation.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::filesystem::class::{Class, Part};
use crate::trace::attribution::attribute::Outcome;
use crate::trace::attribution::request::{Request, Sync};
use crate::trace::event::{DeviceNumber, Operation, RequestFlags};
use crate::trace::export::Exporter;
use crate::trace::export::protobuf::Message;
use crate::trace::texts::Texts;

/// Bytes of one file or one use, in one request.
#[derive(Debug, Clone, Copy)]
pub struct AttributedRun<'a> {
    /// When the driver got the request.
    pub issued_ns: u64,
    /// When it was completed.
    pub completed_ns: u64,
    pub device: DeviceNumber,
    /// First sector on the whole disk.
    pub sector: u64,
    /// Length of the run.
    pub bytes: u64,
    /// What the request does.
    pub operation: Operation,
    /// What it wanted besides.
    pub flags: RequestFlags,
    /// What the bytes are for.
    pub class: Class,
    /// Which part of its class the run is.
    pub part: Part,
    /// The file that they belong to; empty where there is none or nobody knows.
    pub file_name: &'a str,
    /// Byte of the file at which they begin.
    pub file_offset: u64,
    /// The name of the thread that issued the request.
    pub thread_name: &'a str,
    /// The number of the sync call that made it happen; 0 for none.
    pub sync_call: u64,
}

/// A call that makes something durable.
#[derive(Debug, Clone, Copy)]
pub struct SyncSlice<'a> {
    /// Its number, not 0: [`AttributedRun::sync_call`].
    pub number: u64,
    pub begin_ns: u64,
    pub end_ns: u64,
    /// `fsync`, `fdatasync` ..
    pub call: &'a str,
    /// What it was called for.
    pub file_name: &'a str,
    /// The thread that called.
    pub thread: u32,
    pub thread_name: &'a str,
}

// Field numbers: packet of Trace; then those of TracePacket, TrackDescriptor, TrackEvent, DebugAnnotation.
const TRACE_PACKET: u32 = 1;
const PACKET_TIME: u32 = 8;
const PACKET_SEQUENCE: u32 = 10;
const PACKET_EVENT: u32 = 11;
const PACKET_SEQUENCE_FLAGS: u32 = 13;
const PACKET_TRACK: u32 = 60;
const TRACK_UUID: u32 = 1;
const TRACK_NAME: u32 = 2;
const TRACK_PARENT: u32 = 5;
const EVENT_ANNOTATION: u32 = 4;
const EVENT_TYPE: u32 = 9;
const EVENT_TRACK: u32 = 11;
const EVENT_CATEGORY: u32 = 22;
const EVENT_NAME: u32 = 23;
const EVENT_FLOW: u32 = 47;
const ANNOTATION_NUMBER: u32 = 3;
const ANNOTATION_TEXT: u32 = 6;
const ANNOTATION_NAME: u32 = 10;

const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
/// Everything comes from one writer.
const SEQUENCE: u64 = 1;
const SEQUENCE_STARTS: u64 = 1;

/// The two groups of tracks.
const FILES: u64 = 1;
const CALLS: u64 = 2;

/// Writes Perfetto's binary trace. It remembers the tracks, not the slices.
#[derive(Debug)]
pub struct Perfetto {
    /// By group and name: the tracks of that name, each with the time at which its last slice ends. Slices of one track must not overlap,
    /// and the user interface shows tracks of one name as one.
    tracks: BTreeMap<(u64, String), Vec<(u64, u64)>>,
    next_track: u64,
}

impl Perfetto {
    /// Begins a trace.
    /// # Errors
    /// Those of `out`.
    pub fn new(out: &mut dyn Write) -> io::Result<Self> {
        for (uuid, name) in [(FILES, "requests by file"), (CALLS, "sync calls by thread")] {
            let track = Message::default().number(TRACK_UUID, uuid).text(TRACK_NAME, name);
            let flags = if uuid == FILES { SEQUENCE_STARTS } else { 0 };
            packet(
                out,
                Message::default().number(PACKET_SEQUENCE_FLAGS, flags).message(PACKET_TRACK, &track),
            )?;
        }
        Ok(Self { tracks: BTreeMap::new(), next_track: CALLS + 1 })
    }

    /// Writes a run. They may come in any order; in order of their issue the tracks are fewest.
    /// # Errors
    /// Those of `out`.
    pub fn run(&mut self, run: &AttributedRun, out: &mut dyn Write) -> io::Result<()> {
        let place = if run.file_name.is_empty() { run.class.text() } else { run.file_name };
        let times = (run.issued_ns, run.completed_ns.max(run.issued_ns));
        let track = self.track(FILES, place, times, out)?;
        let mut name = format!("{} {}", run.operation.text(), amount(run.bytes));
        if run.part != Part::Plain {
            name = format!("{name}, {}", run.part.text());
        }
        let flags = [
            (RequestFlags::SYNC, "sync"),
            (RequestFlags::METADATA, "metadata"),
            (RequestFlags::PREFLUSH, "preflush"),
            (RequestFlags::FUA, "fua"),
        ];
        let flags: Vec<&str> =
            flags.iter().filter(|(flag, _)| run.flags.has(*flag)).map(|(_, word)| *word).collect();
        let event = Message::default()
            .text(EVENT_CATEGORY, run.class.text())
            .text(EVENT_NAME, &name)
            .message(EVENT_ANNOTATION, &number("sector", run.sector))
            .message(EVENT_ANNOTATION, &number("bytes", run.bytes))
            .message(EVENT_ANNOTATION, &number("file_offset", run.file_offset))
            .message(EVENT_ANNOTATION, &text("class", run.class.text()))
            .message(EVENT_ANNOTATION, &text("device", &run.device.to_string()))
            .message(EVENT_ANNOTATION, &text("flags", &flags.join(" ")))
            .message(EVENT_ANNOTATION, &text("issued_by", run.thread_name));
        slice(out, track, times, with_flow(event, run.sync_call))
    }

    /// Writes a sync call.
    /// # Errors
    /// Those of `out`.
    pub fn sync_call(&mut self, call: &SyncSlice, out: &mut dyn Write) -> io::Result<()> {
        let times = (call.begin_ns, call.end_ns.max(call.begin_ns));
        let track = self.track(CALLS, &format!("{} {}", call.thread_name, call.thread), times, out)?;
        let event = Message::default()
            .text(EVENT_CATEGORY, "sync")
            .text(EVENT_NAME, &format!("{} {}", call.call, call.file_name));
        slice(out, track, times, with_flow(event, call.number))
    }

    /// The first track of the name on which nothing happens at these times, or a new one.
    fn track(&mut self, group: u64, name: &str, times: (u64, u64), out: &mut dyn Write) -> io::Result<u64> {
        let tracks = self.tracks.entry((group, name.to_owned())).or_default();
        if let Some((track, busy_until)) = tracks.iter_mut().find(|(_, busy_until)| *busy_until <= times.0) {
            *busy_until = times.1;
            return Ok(*track);
        }
        let track = self.next_track;
        self.next_track += 1;
        tracks.push((track, times.1));
        let described =
            Message::default().number(TRACK_UUID, track).text(TRACK_NAME, name).number(TRACK_PARENT, group);
        packet(out, Message::default().message(PACKET_TRACK, &described))?;
        Ok(track)
    }
}

fn packet(out: &mut dyn Write, content: Message) -> io::Result<()> {
    let packet = content.number(PACKET_SEQUENCE, SEQUENCE);
    out.write_all(Message::default().message(TRACE_PACKET, &packet).encoded())
}

fn slice(out: &mut dyn Write, track: u64, times: (u64, u64), event: Message) -> io::Result<()> {
    let end = Message::default();
    for (time_ns, kind, event) in [(times.0, SLICE_BEGIN, event), (times.1, SLICE_END, end)] {
        let event = event.number(EVENT_TYPE, kind).number(EVENT_TRACK, track);
        packet(out, Message::default().number(PACKET_TIME, time_ns).message(PACKET_EVENT, &event))?;
    }
    Ok(())
}

/// Slices with the same flow are joined by arrows.
fn with_flow(event: Message, sync_call: u64) -> Message {
    if sync_call == 0 { event } else { event.fixed(EVENT_FLOW, sync_call) }
}

fn number(name: &str, value: u64) -> Message {
    Message::default().text(ANNOTATION_NAME, name).number(ANNOTATION_NUMBER, value)
}

fn text(name: &str, value: &str) -> Message {
    Message::default().text(ANNOTATION_NAME, name).text(ANNOTATION_TEXT, value)
}

/// `4 KiB`, `512 B`.
fn amount(bytes: u64) -> String {
    if bytes > 0 && bytes.is_multiple_of(1024) {
        format!("{} KiB", bytes / 1024)
    } else {
        format!("{bytes} B")
    }
}
impl Exporter for Perfetto {
    fn outcome(&mut self, outcome: &Outcome<'_>, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
        match outcome {
            Outcome::Request(request) => slices(self, request, texts, out),
            Outcome::Sync(sync) => call(self, sync, texts, out),
            Outcome::Transaction(_) | Outcome::Note(..) => Ok(()),
        }
    }
}

fn slices(perfetto: &mut Perfetto, request: &Request, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    let slice = |at: usize| {
        let run = request.runs.get(at);
        AttributedRun {
            issued_ns: request.issued_ns,
            completed_ns: request.completed_ns.unwrap_or(request.issued_ns),
            device: request.disk,
            sector: run.map_or(request.sector, |run| run.sector),
            bytes: run.map_or(request.bytes, |run| run.bytes),
            operation: request.operation,
            flags: run.map_or(request.issued, |run| run.intended),
            class: run.map_or_else(Default::default, |run| run.class),
            part: run.map_or_else(Default::default, |run| run.part),
            file_name: run.map_or("", |run| texts.get(run.name)),
            file_offset: run.map_or(0, |run| run.offset),
            thread_name: texts.get(request.command),
            sync_call: run.and_then(|run| run.cause).map_or(0, |sync| sync.0 + 1),
        }
    };
    // A flush without a known cause has no run, and is a slice all the same.
    (0..request.runs.len().max(usize::from(request.operation == Operation::Flush)))
        .try_for_each(|at| perfetto.run(&slice(at), out))
}

fn call(perfetto: &mut Perfetto, sync: &Sync, texts: &Texts, out: &mut dyn Write) -> io::Result<()> {
    let call = SyncSlice {
        number: sync.id.0 + 1,
        begin_ns: sync.begun_ns,
        end_ns: sync.ended_ns.unwrap_or(sync.begun_ns),
        call: texts.get(sync.call),
        file_name: texts.get(sync.name),
        thread: sync.thread,
        thread_name: "thread",
    };
    perfetto.sync_call(&call, out)
}
