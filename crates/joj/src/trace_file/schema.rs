//! The columns of a saved trace: what they are called, how they are stored, which field of an event or call each holds.
//!
//! No column has a name that SQL or a dataframe library uses for something of its own.

use std::sync::Arc;

use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::trace::event::{
    Backing, Content, DeviceNumber, Event, EventKind, FileKey, Operation, RequestFlags,
};
use joj_analysis::trace::header::EVENTS_VERSION;
use joj_analysis::trace::texts::Text;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

/// Key of the metadata entry that holds the trace's header as JSON.
pub const HEADER_KEY: &str = "joj_trace";
/// Key of the metadata entry that holds the checksums.
pub const CHECKSUMS_KEY: &str = "joj_checksums";

/// Where a column's values are while they are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnPlace {
    /// Its values stand in `Columns::ints`, in this place.
    Int(usize),
    /// Its values stand in `Columns::longs`, in this place.
    Long(usize),
    /// In the writer's and reader's own lists of texts.
    Text(usize),
}

/// How many columns have 32 bits, 64 bits, and text.
pub const INTS: usize = 14;
pub const LONGS: usize = 7;
pub const TEXTS: usize = 3;

/// Columns of a trace without calls, which are the first ones.
const EVENT_COLUMNS: usize = 18;
/// Those of them with 32 and with 64 bits.
const EVENT_INTS: usize = 10;
const EVENT_LONGS: usize = 6;

/// A column of the file: its name, type and encoding.
#[derive(Debug)]
pub struct Column {
    /// Its name in the file.
    pub name: &'static str,
    /// Where its values stand in [`Columns`].
    pub place: ColumnPlace,
    /// Bits of an unsigned number; 0 for a signed one of 64 bits, and for text.
    pub unsigned_bits: i8,
    /// Numbers that mostly differ from row to row are stored as differences, the others through a dictionary.
    pub differences: bool,
}

const fn column(name: &'static str, place: ColumnPlace, unsigned_bits: i8) -> Column {
    Column { name, place, unsigned_bits, differences: false }
}

const fn differences(name: &'static str, place: ColumnPlace, unsigned_bits: i8) -> Column {
    Column { name, place, unsigned_bits, differences: true }
}

/// Every column, in the file's order.
pub const COLUMNS: [Column; INTS + LONGS + TEXTS] = [
    // Signed, although a time is never negative: everybody subtracts times, and unsigned ones would wrap.
    differences("time_ns", ColumnPlace::Long(0), 0),
    column("event_type", ColumnPlace::Int(0), 8),
    column("device_number", ColumnPlace::Int(1), 32),
    column("first_sector", ColumnPlace::Long(1), 64),
    column("byte_length", ColumnPlace::Long(2), 64),
    column("operation_code", ColumnPlace::Int(2), 8),
    column("request_flags", ColumnPlace::Int(3), 16),
    column("thread_id", ColumnPlace::Int(4), 32),
    column("process_id", ColumnPlace::Int(5), 32),
    column("thread_name", ColumnPlace::Text(0), 0),
    column("file_device", ColumnPlace::Int(6), 32),
    column("file_inode", ColumnPlace::Long(3), 64),
    column("file_generation", ColumnPlace::Int(7), 32),
    column("file_offset", ColumnPlace::Long(4), 64),
    column("backing_code", ColumnPlace::Int(8), 8),
    column("content_code", ColumnPlace::Int(9), 8),
    column("detail_value", ColumnPlace::Long(5), 0),
    column("text_value", ColumnPlace::Text(1), 0),
    column("call_code", ColumnPlace::Int(10), 8),
    differences("duration_ns", ColumnPlace::Long(6), 64),
    column("description_id", ColumnPlace::Int(11), 32),
    column("descriptor_number", ColumnPlace::Int(12), 32),
    column("call_flags", ColumnPlace::Int(13), 32),
    column("second_path", ColumnPlace::Text(2), 0),
];

/// The columns of a file of this version.
pub fn columns(version: u32) -> &'static [Column] {
    if version > EVENTS_VERSION { &COLUMNS } else { &COLUMNS[..EVENT_COLUMNS] }
}

/// The schema as a file of this version has it.
pub fn message_type(version: u32) -> Result<TypePtr, ParquetError> {
    let fields = columns(version).iter().map(|column| {
        let physical = match column.place {
            ColumnPlace::Int(_) => Physical::INT32,
            ColumnPlace::Long(_) => Physical::INT64,
            ColumnPlace::Text(_) => Physical::BYTE_ARRAY,
        };
        let logical = match (column.place, column.unsigned_bits) {
            (ColumnPlace::Text(_), _) => Some(LogicalType::String),
            (_, 0) => None,
            (_, bits) => Some(LogicalType::integer(bits, false)),
        };
        Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    });
    let fields = fields.collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder("joj_trace").with_fields(fields).build()?))
}

/// How the columns are encoded.
pub fn properties() -> WriterProperties {
    let mut builder = WriterProperties::builder()
        .set_created_by(format!("joj {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None);
    // Nobody looks for the smallest name of a row group, and to find it takes a quarter of the writing.
    for column in COLUMNS.iter().filter(|column| matches!(column.place, ColumnPlace::Text(_))) {
        builder =
            builder.set_column_statistics_enabled(ColumnPath::from(column.name), EnabledStatistics::None);
    }
    for column in COLUMNS.iter().filter(|column| column.differences) {
        let path = ColumnPath::from(column.name);
        builder = builder
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

/// The numbers of some rows, column by column. Where there are no calls the columns that only these have stay empty.
#[derive(Debug, Default)]
pub struct Columns {
    /// Columns of 32 bits; unsigned numbers keep their bits.
    pub ints: [Vec<i32>; INTS],
    /// Columns of 64 bits.
    pub longs: [Vec<i64>; LONGS],
}

impl Columns {
    /// Forgets the values and keeps the memory.
    pub fn clear(&mut self) {
        self.ints.iter_mut().for_each(Vec::clear);
        self.longs.iter_mut().for_each(Vec::clear);
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.ints[0].len()
    }

    /// Appends an event's numbers.
    pub fn push(&mut self, event: &Event) {
        let ints = [
            i32::from(event.kind.code()),
            event.device.0.cast_signed(),
            i32::from(event.operation.code()),
            i32::from(event.flags.0),
            event.thread.cast_signed(),
            event.process.cast_signed(),
            event.file.device.0.cast_signed(),
            event.file.generation.cast_signed(),
            i32::from(event.backing.code()),
            i32::from(event.content.code()),
        ];
        let longs = [
            event.time_ns.cast_signed(),
            event.sector.cast_signed(),
            event.bytes.cast_signed(),
            event.file.inode.cast_signed(),
            event.offset.cast_signed(),
            event.detail,
        ];
        // As many as an event has: the others are a call's.
        for (column, value) in self.ints.iter_mut().zip(ints) {
            column.push(value);
        }
        for (column, value) in self.longs.iter_mut().zip(longs) {
            column.push(value);
        }
    }

    /// Appends a call's numbers.
    pub fn push_call(&mut self, call: &RecordedCall) {
        self.push(&Event {
            time_ns: call.begin_ns,
            kind: EventKind::Call,
            bytes: call.bytes,
            thread: call.thread,
            process: call.process,
            offset: call.offset,
            detail: call.result,
            ..Event::default()
        });
        let ints = [
            i32::from(call.kind.code()),
            call.description.cast_signed(),
            call.descriptor,
            call.flags.cast_signed(),
        ];
        for (column, value) in self.ints[EVENT_INTS..].iter_mut().zip(ints) {
            column.push(value);
        }
        self.longs[EVENT_LONGS].push(call.duration_ns.cast_signed());
    }

    /// True where the row is a call.
    pub fn is_call(&self, row: usize) -> bool {
        self.ints[0][row] == i32::from(EventKind::Call.code())
    }

    /// The call of a row. `Err` as for [`Columns::event`].
    pub fn call(
        &self,
        row: usize,
        path: Text,
        second_path: Text,
    ) -> Result<RecordedCall, (&'static str, i32)> {
        let int = |index: usize| self.ints[index][row];
        let long = |index: usize| self.longs[index][row].cast_unsigned();
        let kind = u8::try_from(int(10)).ok().and_then(CallKind::from_code);
        Ok(RecordedCall {
            begin_ns: long(0),
            duration_ns: long(EVENT_LONGS),
            kind: kind.ok_or_else(|| (int_name(10), int(10)))?,
            process: int(5).cast_unsigned(),
            thread: int(4).cast_unsigned(),
            description: int(11).cast_unsigned(),
            descriptor: int(12),
            result: self.longs[5][row],
            offset: long(4),
            bytes: long(2),
            flags: int(13).cast_unsigned(),
            path,
            second_path,
        })
    }

    /// The event of a row. `Err` names the column whose number this version does not know, with the number.
    pub fn event(&self, row: usize, command: Text, name: Text) -> Result<Event, (&'static str, i32)> {
        let int = |index: usize| self.ints[index][row];
        let long = |index: usize| self.longs[index][row];
        let code = |index: usize| u8::try_from(int(index)).ok();
        let unknown = |index: usize| (int_name(index), int(index));
        Ok(Event {
            time_ns: long(0).cast_unsigned(),
            kind: code(0).and_then(EventKind::from_code).ok_or_else(|| unknown(0))?,
            device: DeviceNumber(int(1).cast_unsigned()),
            sector: long(1).cast_unsigned(),
            bytes: long(2).cast_unsigned(),
            operation: code(2).and_then(Operation::from_code).ok_or_else(|| unknown(2))?,
            flags: RequestFlags(u16::try_from(int(3)).map_err(|_| unknown(3))?),
            thread: int(4).cast_unsigned(),
            process: int(5).cast_unsigned(),
            command,
            file: FileKey {
                device: DeviceNumber(int(6).cast_unsigned()),
                inode: long(3).cast_unsigned(),
                generation: int(7).cast_unsigned(),
            },
            offset: long(4).cast_unsigned(),
            backing: code(8).and_then(Backing::from_code).ok_or_else(|| unknown(8))?,
            content: code(9).and_then(Content::from_code).ok_or_else(|| unknown(9))?,
            detail: long(5),
            name,
        })
    }
}

fn int_name(index: usize) -> &'static str {
    COLUMNS.iter().find(|column| column.place == ColumnPlace::Int(index)).map_or("", |column| column.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_belongs_to_one_column() {
        let mut places: Vec<String> = COLUMNS.iter().map(|column| format!("{:?}", column.place)).collect();
        places.sort();
        places.dedup();
        assert_eq!(places.len(), COLUMNS.len());
    }

    #[test]
    fn an_event_comes_back_from_its_numbers() {
        let event = Event {
            time_ns: u64::MAX,
            kind: EventKind::DurableWrite,
            device: DeviceNumber(u32::MAX),
            sector: u64::MAX - 1,
            bytes: 3,
            operation: Operation::Other,
            flags: RequestFlags(u16::MAX),
            thread: u32::MAX,
            process: 7,
            command: Text(1),
            file: FileKey { device: DeviceNumber(9), inode: u64::MAX, generation: u32::MAX },
            offset: 1 << 63,
            backing: Backing::Inner,
            content: Content::Other,
            detail: i64::MIN,
            name: Text(2),
        };
        let mut columns = Columns::default();
        columns.push(&event);
        assert_eq!((columns.rows(), columns.event(0, Text(1), Text(2))), (1, Ok(event)));
        columns.ints[8][0] = 256;
        assert_eq!(columns.event(0, Text(1), Text(2)), Err(("backing_code", 256)));
    }

    #[test]
    fn a_call_comes_back_from_its_numbers() {
        let call = RecordedCall {
            begin_ns: 1 << 62,
            duration_ns: u64::MAX,
            kind: CallKind::Held,
            process: u32::MAX,
            thread: 7,
            description: u32::MAX - 1,
            descriptor: -1,
            result: -28,
            offset: u64::MAX,
            bytes: 1 << 63,
            flags: u32::MAX,
            path: Text(1),
            second_path: Text(2),
        };
        let mut columns = Columns::default();
        columns.push_call(&call);
        assert_eq!((columns.rows(), columns.is_call(0)), (1, true));
        assert_eq!(columns.call(0, Text(1), Text(2)), Ok(call));
        columns.ints[10][0] = 99;
        assert_eq!(columns.call(0, Text(1), Text(2)), Err(("call_code", 99)));
    }
}
