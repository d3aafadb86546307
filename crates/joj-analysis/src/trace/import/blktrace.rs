//! blktrace's binary files, one for each processor, as the kernel's relay buffers had them.
//!
//! ```text
//! 0 magic u32 | 4 sequence u32 | 8 time_ns u64 | 16 sector u64 | 24 bytes u32 | 28 action u32
//! 32 pid u32 | 36 device u32 | 40 cpu u32 | 44 error u16 | 46 length u16 | 48 `length` further bytes
//! ```
//!
//! In the byte order of the machine that recorded. Source: include/uapi/linux/blktrace_api.h, a public interface.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::io::{ErrorKind, Read};

use crate::trace::event::{DeviceNumber, Event, EventKind, Operation, RequestFlags};
use crate::trace::header::{Header, Source};
use crate::trace::import::error::{ImportError, RecordProblem, Stopped};
use crate::trace::import::output::{ImportSink, Output};
use crate::trace::texts::Text;

/// The upper three bytes of a record's first word.
const MAGIC: u32 = 0x6561_7400;
/// Its lowest byte: the only layout that was ever in use when this was written.
const VERSION: u32 = 7;
const RECORD_BYTES: usize = 48;

// The lower half of `action`, and in the upper half what kind of request it is.
const QUEUE: u32 = 1;
const REQUEUE: u32 = 6;
const ISSUE: u32 = 7;
const COMPLETE: u32 = 8;
const REMAP: u32 = 15;
/// The further bytes begin with the number of a control group.
const WITH_GROUP: u32 = 1 << 8;
const IS_WRITE: u32 = 1 << 17;
const IS_PREFLUSH: u32 = 1 << 18;
const IS_SYNC: u32 = 1 << 19;
const IS_PASS_THROUGH: u32 = 1 << 25;
const IS_NOTE: u32 = 1 << 26;
const IS_READ_AHEAD: u32 = 1 << 27;
const IS_METADATA: u32 = 1 << 28;
const IS_DISCARD: u32 = 1 << 29;
const IS_FUA: u32 = 1 << 31;
const NOTE_PROCESS: u32 = 0;
const NOTE_TIME: u32 = 1;

/// Imports the files of one recording, each with its name; with several processors' files, all of them: they are read side by
/// side, the earliest record first. A file made by `blkparse -d` is read too.
/// # Errors
/// Names the file, the record and its byte. What the sink got before is part of a trace, not a trace.
pub fn import<R: Read>(files: Vec<(String, R)>, sink: &mut ImportSink) -> Result<Header, ImportError> {
    let mut inputs: Vec<Input<R>> = files.into_iter().map(|(name, bytes)| Input::new(name, bytes)).collect();
    let mut import = BlktraceImport {
        output: Output::new(sink),
        names: HashMap::new(),
        sequences: BTreeMap::new(),
        calendar: None,
    };
    let mut heads = inputs.iter_mut().map(Input::next).collect::<Result<Vec<_>, _>>()?;
    let time_of = |head: &Option<BlktraceRecord>| head.as_ref().map(|record| record.time_ns);
    // Of equal times the file named first goes first.
    let times = heads.iter().enumerate().filter_map(|(index, head)| Some(Reverse((time_of(head)?, index))));
    let mut order: BinaryHeap<_> = times.collect();
    while let Some(Reverse((_, index))) = order.pop() {
        if let Some(record) = heads[index].take() {
            match import.event(&record) {
                Ok(Some(event)) => import.output.push(event)?,
                Ok(None) => {}
                Err(problem) => return Err(inputs[index].error(problem)),
            }
        }
        heads[index] = inputs[index].next()?;
        order.extend(time_of(&heads[index]).map(|time_ns| Reverse((time_ns, index))));
    }
    Ok(import.finish()?)
}

/// One file, and how far it was read.
struct Input<R> {
    name: String,
    bytes: R,
    /// Where the record begins that was read last, and where it ends.
    at: u64,
    next: u64,
    records: u64,
    big_endian: bool,
}

struct BlktraceRecord {
    sequence: u32,
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    pid: u32,
    device: u32,
    cpu: u32,
    error: u16,
    further: Vec<u8>,
    big_endian: bool,
}

impl<R: Read> Input<R> {
    fn new(name: String, bytes: R) -> Self {
        Self { name, bytes, at: 0, next: 0, records: 0, big_endian: false }
    }

    fn error(&self, problem: RecordProblem) -> ImportError {
        ImportError::Record { file: self.name.clone(), number: self.records, at: self.at, problem }
    }

    /// Reads until `room` is full or the file ends.
    fn fill(&mut self, room: &mut [u8]) -> Result<usize, ImportError> {
        let mut filled = 0;
        while filled < room.len() {
            match self.bytes.read(&mut room[filled..]) {
                Ok(0) => break,
                Ok(bytes) => filled += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.error(RecordProblem::Unreadable(error))),
            }
        }
        self.next += filled as u64;
        Ok(filled)
    }

    fn next(&mut self) -> Result<Option<BlktraceRecord>, ImportError> {
        (self.at, self.records) = (self.next, self.records + 1);
        let mut room = [0; RECORD_BYTES];
        let filled = self.fill(&mut room)?;
        if filled == 0 {
            return Ok(None);
        }
        if filled < RECORD_BYTES {
            return Err(self.error(RecordProblem::CutOff));
        }
        let big_endian = self.order(&room)?;
        let word = |at: usize| number32(&room, at, big_endian);
        let long = |at: usize| {
            let (first, second) = (u64::from(word(at)), u64::from(word(at + 4)));
            if big_endian { first << 32 | second } else { second << 32 | first }
        };
        let half = |at: usize| {
            let bytes = [room[at], room[at + 1]];
            if big_endian { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
        };
        let mut further = vec![0; usize::from(half(46))];
        if self.fill(&mut further)? < further.len() {
            return Err(self.error(RecordProblem::CutOff));
        }
        self.big_endian = big_endian;
        Ok(Some(BlktraceRecord {
            sequence: word(4),
            time_ns: long(8),
            sector: long(16),
            bytes: word(24),
            action: word(28),
            pid: word(32),
            device: word(36),
            cpu: word(40),
            error: half(44),
            further,
            big_endian,
        }))
    }

    /// True for big endian. The first record decides; another order behind it is damage.
    fn order(&self, fixed: &[u8; RECORD_BYTES]) -> Result<bool, ImportError> {
        let words = [false, true].map(|big_endian| number32(fixed, 0, big_endian));
        let Some(big_endian) = words.iter().position(|word| word & !0xff == MAGIC).map(|index| index == 1)
        else {
            return Err(self.error(RecordProblem::Magic { found: words[0], wanted: MAGIC | VERSION }));
        };
        let version = words[usize::from(big_endian)] & 0xff;
        if version != VERSION {
            return Err(self.error(RecordProblem::Version { found: version, known: VERSION }));
        }
        if self.at > 0 && big_endian != self.big_endian {
            return Err(self.error(RecordProblem::ByteOrder));
        }
        Ok(big_endian)
    }
}

fn number32(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let Some(bytes) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) else { return 0 };
    if big_endian { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) }
}

/// Records of one processor: how many, and their first and last number.
struct Sequence {
    records: u64,
    first: u32,
    last: u32,
}

struct BlktraceImport<'a, 'b> {
    output: Output<'a, 'b>,
    names: HashMap<u32, Text>,
    sequences: BTreeMap<(u32, u32), Sequence>,
    /// A time of the trace, and the calendar's at the same moment, nanoseconds since 1970.
    calendar: Option<(u64, u64)>,
}

impl BlktraceImport<'_, '_> {
    /// Takes a record; most are an event.
    fn event(&mut self, record: &BlktraceRecord) -> Result<Option<Event>, RecordProblem> {
        if record.action & IS_NOTE != 0 {
            return self.note(record).map(|()| None);
        }
        let key = (record.device, record.cpu);
        let new = Sequence { records: 0, first: record.sequence, last: record.sequence };
        let sequence = self.sequences.entry(key).or_insert(new);
        sequence.records += 1;
        sequence.first = sequence.first.min(record.sequence);
        sequence.last = sequence.last.max(record.sequence);
        let kind = match record.action & 0xff {
            QUEUE => EventKind::Queue,
            REQUEUE => EventKind::Requeue,
            ISSUE => EventKind::Issue,
            COMPLETE => EventKind::Complete,
            REMAP => return self.remap(record).map(|()| None),
            _ => return Ok(None),
        };
        // Commands of SG_IO and the like: what they carry are not sectors.
        let is_other = record.action & IS_PASS_THROUGH != 0;
        let (operation, flags) =
            if is_other { (Operation::Other, RequestFlags::default()) } else { wanted(record) };
        let error = i16::from_ne_bytes(record.error.to_ne_bytes());
        let detail = if kind == EventKind::Complete { -i64::from(error).abs() } else { 0 };
        let is_empty_flush = record.bytes == 0 && record.sector == u64::MAX;
        Ok(Some(Event {
            time_ns: record.time_ns,
            kind,
            device: DeviceNumber(record.device),
            sector: if is_empty_flush { 0 } else { record.sector },
            bytes: record.bytes.into(),
            operation,
            flags,
            thread: record.pid,
            command: self.names.get(&record.pid).copied().unwrap_or_default(),
            detail,
            ..Event::default()
        }))
    }

    fn note(&mut self, record: &BlktraceRecord) -> Result<(), RecordProblem> {
        let further = match record.action & WITH_GROUP {
            0 => record.further.as_slice(),
            _ => record.further.get(8..).ok_or(RecordProblem::GroupCutOff)?,
        };
        match record.action & 0xff {
            NOTE_PROCESS => {
                let name = further.split(|byte| *byte == 0).next().unwrap_or_default();
                let name = self.output.keep(&String::from_utf8_lossy(name));
                self.names.insert(record.pid, name);
            }
            NOTE_TIME if further.len() >= 8 => {
                let [seconds, nanoseconds] =
                    [0, 4].map(|at| u64::from(number32(further, at, record.big_endian)));
                self.calendar.get_or_insert((record.time_ns, seconds * 1_000_000_000 + nanoseconds));
            }
            _ => {}
        }
        Ok(())
    }

    fn remap(&mut self, record: &BlktraceRecord) -> Result<(), RecordProblem> {
        let further = match record.action & WITH_GROUP {
            0 => record.further.as_slice(),
            _ => record.further.get(8..).unwrap_or_default(),
        };
        // Big endian whatever the machine: device from, device to, sector from.
        let from = further.first_chunk::<16>().ok_or(RecordProblem::RemapCutOff)?;
        let [high, low] = [8, 12].map(|at| u64::from(number32(from, at, true)));
        let device = DeviceNumber(number32(from, 0, true));
        self.output.remapped((device, high << 32 | low), (DeviceNumber(record.device), record.sector));
        Ok(())
    }

    fn finish(mut self) -> Result<Header, Stopped> {
        let numbers = self.sequences.values();
        let missing: u64 = numbers
            .map(|numbers| (u64::from(numbers.last - numbers.first) + 1).saturating_sub(numbers.records))
            .sum();
        if missing > 0 {
            self.output.lost(self.output.last_ns(), missing)?;
        }
        let inferred = [
            "Files, sync calls and journal commits are unknown: blktrace records requests only.",
            "The number that blktrace calls pid was taken for the thread; processes are unknown.",
            "Writes without bytes but with PREFLUSH were taken for flushes.",
            "Write-zeroes requests look like writes in blktrace and count as such.",
            "What the kernel dropped while blktrace ran is in blktrace's own output, not in its files; gaps in the records' \
             numbers were counted as lost events.",
        ];
        let calendar = self.calendar;
        let mut header = self.output.finish(Source::Blktrace, inferred.map(str::to_owned).to_vec())?;
        if let Some((time_ns, unix_ns)) = calendar {
            header.started_unix_ns = unix_ns.saturating_add(header.started_ns).saturating_sub(time_ns);
        }
        Ok(header)
    }
}

fn wanted(record: &BlktraceRecord) -> (Operation, RequestFlags) {
    let bits = [
        (IS_PREFLUSH, RequestFlags::PREFLUSH),
        (IS_FUA, RequestFlags::FUA),
        (IS_SYNC, RequestFlags::SYNC),
        (IS_READ_AHEAD, RequestFlags::READ_AHEAD),
        (IS_METADATA, RequestFlags::METADATA),
    ];
    let has = |bit: u32| record.action & bit != 0;
    let flags = bits.iter().filter(|(bit, _)| has(*bit));
    let flags = flags.fold(RequestFlags::default(), |all, (_, flag)| all.with(*flag));
    let operation = match record.bytes {
        _ if has(IS_DISCARD) => Operation::Discard,
        0 if has(IS_PREFLUSH) => Operation::Flush,
        _ if has(IS_WRITE) => Operation::Write,
        _ => Operation::Read,
    };
    (operation, flags)
}
