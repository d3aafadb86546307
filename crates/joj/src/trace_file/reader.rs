//! Reads a saved trace row group by row group: memory holds one of them.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use joj_analysis::recording::call::RecordedCall;
use joj_analysis::trace::event::{Event, EventKind};
use joj_analysis::trace::header::{EVENTS_VERSION, FORMAT_VERSION, Header};
use joj_analysis::trace::texts::{Text, Texts};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use serde::Deserialize;

use super::checksum::Checksum;
use super::error::{ColumnProblem, Damage, HeadProblem, TraceReadError};
use super::library::caught;
use super::names::NumberCache;
use super::pages::GroupBytes;
use super::schema::{self, ColumnPlace, Columns, TEXTS};
use super::writer::{Checksums, ROWS_PER_GROUP};

/// Rows that are decoded at a time: what they take fits into a processor's second cache.
const ROWS_PER_BATCH: usize = 4096;

/// Texts of a trace without calls.
const EVENT_TEXTS: usize = 2;

/// What becomes of a decoded row. `Err` names the column whose number this version does not know, with the number.
type RowSink<'a> = dyn FnMut(&Columns, usize, [Text; TEXTS]) -> Result<(), (&'static str, i32)> + 'a;

/// A saved trace that is being read.
pub struct TraceReader {
    path: String,
    file: File,
    metadata: ParquetMetaData,
    checksums: Checksums,
    header: Header,
    texts: Texts,
    caches: [NumberCache; TEXTS],
    group: usize,
    /// Columns of the row group before `group`, and how many of its rows are still to come.
    open: Option<(Vec<ColumnReader>, usize)>,
    columns: Columns,
    strings: [Vec<ByteArray>; TEXTS],
}

/// As much of the header as every version has.
#[derive(Deserialize)]
struct Versioned {
    version: u32,
}

impl TraceReader {
    /// Opens a trace and reads its header.
    /// # Errors
    /// Where the file cannot be read, is no trace, was cut off, is damaged, or was written by a newer joj.
    pub fn open(path: &Path) -> Result<Self, TraceReadError> {
        let path_text = path.display().to_string();
        // Else a pipe keeps whoever opens it until another process writes to it (fifo(7)).
        let opened = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let error = match opened.and_then(|file| Ok((file.metadata()?.file_type(), file))) {
            Ok((kind, file)) if kind.is_file() => return Self::new(path_text, file),
            Ok((kind, _)) if kind.is_dir() => io::ErrorKind::IsADirectory.into(),
            Ok(_) => io::Error::other("it is a pipe, a socket or a device: give a file"),
            Err(error) => error,
        };
        Err(TraceReadError::Open { path: path_text, error })
    }

    /// The same for an open file, with the name that messages have for it.
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn new(path: String, file: File) -> Result<Self, TraceReadError> {
        let metadata = caught(|| Ok(ParquetMetaDataReader::new().parse_and_finish(&file)?))
            .map_err(|damage| not_whole(&path, &file, damage))?;
        let (header, checksums) =
            heads(&metadata).map_err(|problem| TraceReadError::Head { path: path.clone(), problem })?;
        check_rows(&metadata, &header, &checksums)
            .map_err(|damage| TraceReadError::Damaged { path: path.clone(), damage })?;
        Ok(Self {
            path,
            file,
            metadata,
            checksums,
            header,
            texts: Texts::default(),
            caches: Default::default(),
            group: 0,
            open: None,
            columns: Columns::default(),
            strings: Default::default(),
        })
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The names of the events read so far.
    pub fn texts(&self) -> &Texts {
        &self.texts
    }

    /// Events in the whole file, by its own count.
    pub fn rows(&self) -> u64 {
        u64::try_from(self.metadata.file_metadata().num_rows()).unwrap_or(0)
    }

    /// Hands every event that was not read yet to `sink`, in the file's order.
    /// # Errors
    /// At the first damaged row group; the events before it were handed on.
    pub fn for_each(&mut self, sink: &mut dyn FnMut(&Event, &Texts)) -> Result<(), TraceReadError> {
        let mut events = Vec::with_capacity(ROWS_PER_BATCH);
        while self.next_batch(&mut events)? {
            for event in &events {
                sink(event, &self.texts);
            }
        }
        Ok(())
    }

    /// Replaces `events` by the next ones, some thousands; false and none at the end. Calls are passed over.
    /// # Errors
    /// Where the row group is damaged.
    pub fn next_batch(&mut self, events: &mut Vec<Event>) -> Result<bool, TraceReadError> {
        events.clear();
        self.next_rows(&mut |columns, row, texts| {
            if !columns.is_call(row) {
                events.push(columns.event(row, texts[0], texts[1])?);
            }
            Ok(())
        })
    }

    /// The same for calls; events are passed over. A file of an older version has none.
    /// # Errors
    /// Where the row group is damaged.
    pub fn next_calls(&mut self, calls: &mut Vec<RecordedCall>) -> Result<bool, TraceReadError> {
        calls.clear();
        self.next_rows(&mut |columns, row, texts| {
            if columns.is_call(row) {
                calls.push(columns.call(row, texts[1], texts[2])?);
            }
            Ok(())
        })
    }

    fn next_rows(&mut self, sink: &mut RowSink<'_>) -> Result<bool, TraceReadError> {
        // What is done with the rows is ours: a panic there is no damage.
        let handed_on = caught(|| self.decode()).and_then(|rows| self.hand_on(rows, sink).map(|()| rows > 0));
        handed_on.map_err(|damage| TraceReadError::Damaged {
            path: self.path.clone(),
            damage: Damage::Group { group: self.group, damage: Box::new(damage) },
        })
    }

    /// Decodes the next rows into `columns` and `strings`, and says how many; 0 at the end.
    fn decode(&mut self) -> Result<usize, Damage> {
        while self.open.as_ref().is_none_or(|(_, rows)| *rows == 0) {
            if self.group == self.metadata.num_row_groups() {
                return Ok(0);
            }
            self.open_group()?;
        }
        let Some((columns, rows_left)) = &mut self.open else { return Ok(0) };
        let rows = ROWS_PER_BATCH.min(*rows_left);
        self.columns.clear();
        for (column, reader) in schema::columns(self.header.version).iter().zip(columns) {
            let read = match (column.place, reader) {
                (ColumnPlace::Int(index), ColumnReader::Int32ColumnReader(reader)) => {
                    read_rows(reader, rows, &mut self.columns.ints[index])
                }
                (ColumnPlace::Long(index), ColumnReader::Int64ColumnReader(reader)) => {
                    read_rows(reader, rows, &mut self.columns.longs[index])
                }
                (ColumnPlace::Text(index), ColumnReader::ByteArrayColumnReader(reader)) => {
                    self.strings[index].clear();
                    read_rows(reader, rows, &mut self.strings[index])
                }
                _ => Err(ColumnProblem::Type),
            };
            read.map_err(|problem| Damage::Column { column: column.name, problem })?;
        }
        *rows_left -= rows;
        Ok(rows)
    }

    fn hand_on(&mut self, rows: usize, sink: &mut RowSink<'_>) -> Result<(), Damage> {
        let has_calls = self.header.version > EVENTS_VERSION;
        let texts = if has_calls { TEXTS } else { EVENT_TEXTS };
        for row in 0..rows {
            let mut numbers = [Text::NONE; TEXTS];
            for (number, (cache, strings)) in
                numbers.iter_mut().zip(self.caches.iter_mut().zip(&self.strings)).take(texts)
            {
                *number = cache.number(&strings[row], &mut self.texts).ok_or(Damage::Name)?;
            }
            let unknown =
                |(column, number)| Damage::Column { column, problem: ColumnProblem::Number(number) };
            if self.columns.is_call(row) && !has_calls {
                return Err(unknown(("event_type", i32::from(EventKind::Call.code()))));
            }
            sink(&self.columns, row, numbers).map_err(unknown)?;
        }
        Ok(())
    }

    fn open_group(&mut self) -> Result<(), Damage> {
        let group = self.metadata.row_group(self.group);
        let start = self.group.checked_sub(1).map_or(0, |before| self.checksums.groups[before].0);
        let (end, checksum) = self.checksums.groups[self.group];
        self.group += 1;
        // Before memory is reserved for it: the numbers may be forged.
        if end > self.file.metadata()?.len() {
            return Err(Damage::BehindEnd(end));
        }
        let length = usize::try_from(end - start)?;
        let bytes = GroupBytes::read(&self.file, start, length, checksum)?;
        let columns = bytes.columns(group)?;
        self.caches.iter_mut().for_each(NumberCache::clear);
        self.open = Some((columns, usize::try_from(group.num_rows())?));
        Ok(())
    }
}

fn read_rows<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    values: &mut Vec<T::T>,
) -> Result<(), ColumnProblem> {
    let (_, found, _) = reader.read_records(rows, None, None, values)?;
    if found == rows { Ok(()) } else { Err(ColumnProblem::Short { found, rows }) }
}

/// The header and the checksums, from the metadata entries.
fn heads(metadata: &ParquetMetaData) -> Result<(Header, Checksums), HeadProblem> {
    let entries = metadata.file_metadata().key_value_metadata();
    let entry = |key: &str| {
        let found = entries.into_iter().flatten().find(|entry| entry.key == key);
        found.and_then(|entry| entry.value.as_deref())
    };
    let header = entry(schema::HEADER_KEY).ok_or(HeadProblem::NoHeader)?;
    let Versioned { version } = serde_json::from_str(header)?;
    if version > FORMAT_VERSION {
        return Err(HeadProblem::Newer(version));
    }
    let checksums = entry(schema::CHECKSUMS_KEY).ok_or(HeadProblem::NoChecksums)?;
    let checksums: Checksums = serde_json::from_str(checksums)?;
    if Checksum::of(header.as_bytes()) != checksums.header {
        return Err(HeadProblem::Checksum);
    }
    Ok((serde_json::from_str(header)?, checksums))
}

/// Compares what the file says of its rows in three places.
fn check_rows(metadata: &ParquetMetaData, header: &Header, checksums: &Checksums) -> Result<(), Damage> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let wanted = schema::message_type(header.version)?;
    for (index, field) in wanted.get_fields().iter().enumerate() {
        if columns.get(index).map(|column| column.self_type()) != Some(field) {
            return Err(Damage::Order { number: index + 1, name: field.name().to_owned() });
        }
    }
    let groups = metadata.row_groups();
    let in_order = checksums.groups.is_sorted_by(|before, after| before.0 < after.0);
    if columns.len() != schema::columns(header.version).len()
        || groups.len() != checksums.groups.len()
        || !in_order
    {
        return Err(Damage::Parts);
    }
    let rows_max = i64::try_from(ROWS_PER_GROUP).unwrap_or(i64::MAX);
    let plausible = groups.iter().all(|group| (1..=rows_max).contains(&group.num_rows()));
    let rows: i64 = if plausible { groups.iter().map(|group| group.num_rows()).sum() } else { -1 };
    let events = header.ending.as_ref().map(|ending| ending.events);
    if u64::try_from(rows).ok() != events {
        return Err(Damage::Events);
    }
    Ok(())
}

/// Why a file has no end that can be read.
fn not_whole(path: &str, file: &File, damage: Damage) -> TraceReadError {
    let mut magic = [0; 4];
    let begins = std::os::unix::fs::FileExt::read_exact_at(file, &mut magic, 0).is_ok() && &magic == b"PAR1";
    let path = path.to_owned();
    if path.ends_with(".part") {
        TraceReadError::Unfinished { path }
    } else if begins {
        TraceReadError::CutOff { path, damage }
    } else {
        TraceReadError::NoParquet { path }
    }
}
