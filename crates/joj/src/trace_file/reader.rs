//! Reads a saved trace row group by row group: memory holds one of them.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use joj_analysis::trace::event::Event;
use joj_analysis::trace::header::{FORMAT_VERSION, Header};
use joj_analysis::trace::texts::{Text, Texts};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use serde::Deserialize;

use super::checksum::Checksum;
use super::names::NumberCache;
use super::pages::GroupBytes;
use super::schema::{self, COLUMNS, ColumnPlace, Columns, TEXTS};
use super::writer::{Checksums, ROWS_PER_GROUP};

/// Rows that are decoded at a time: what they take fits into a processor's second cache.
const ROWS_PER_BATCH: usize = 4096;

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
    pub fn open(path: &Path) -> Result<Self, String> {
        let path_text = path.display().to_string();
        let file = File::open(path).map_err(|error| format!("cannot open {path_text}: {error}"))?;
        Self::new(path_text, file)
    }

    /// The same for an open file, with the name that messages have for it.
    /// # Errors
    /// As [`TraceReader::open`].
    pub fn new(path_text: String, file: File) -> Result<Self, String> {
        let metadata =
            caught(|| ParquetMetaDataReader::new().parse_and_finish(&file).map_err(|e| e.to_string()))
                .map_err(|error| not_whole(&path_text, &file, &error))?;
        let (header, checksums) = heads(&metadata).map_err(|error| format!("{path_text}: {error}"))?;
        check_rows(&metadata, &header, &checksums).map_err(|error| damaged(&path_text, &error))?;
        Ok(Self {
            path: path_text,
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
    pub fn for_each(&mut self, sink: &mut dyn FnMut(&Event, &Texts)) -> Result<(), String> {
        let mut events = Vec::with_capacity(ROWS_PER_BATCH);
        while self.next_batch(&mut events)? {
            for event in &events {
                sink(event, &self.texts);
            }
        }
        Ok(())
    }

    /// Replaces `events` by the next ones, some thousands; false and none at the end.
    /// # Errors
    /// Where the row group is damaged.
    pub fn next_batch(&mut self, events: &mut Vec<Event>) -> Result<bool, String> {
        events.clear();
        let decoded = caught(|| self.decode(events));
        decoded.map_err(|error| damaged(&self.path, &format!("row group {}: {error}", self.group)))
    }

    fn decode(&mut self, events: &mut Vec<Event>) -> Result<bool, String> {
        while self.open.as_ref().is_none_or(|(_, rows)| *rows == 0) {
            if self.group == self.metadata.num_row_groups() {
                return Ok(false);
            }
            self.open_group()?;
        }
        let Some((columns, rows_left)) = &mut self.open else { return Ok(false) };
        let rows = ROWS_PER_BATCH.min(*rows_left);
        self.columns.clear();
        for (column, reader) in COLUMNS.iter().zip(columns) {
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
                _ => Err("it has another type".to_owned()),
            };
            read.map_err(|error| format!("column {}: {error}", column.name))?;
        }
        *rows_left -= rows;
        for row in 0..rows {
            let mut numbers = [Text::NONE; TEXTS];
            for (number, (cache, strings)) in
                numbers.iter_mut().zip(self.caches.iter_mut().zip(&self.strings))
            {
                *number = cache.number(&strings[row], &mut self.texts).ok_or("a name is no UTF-8")?;
            }
            let event = self.columns.event(row, numbers[0], numbers[1]);
            events.push(
                event.map_err(|(column, number)| {
                    format!("column {column}: nothing has the number {number}")
                })?,
            );
        }
        Ok(true)
    }

    fn open_group(&mut self) -> Result<(), String> {
        let group = self.metadata.row_group(self.group);
        let start = self.group.checked_sub(1).map_or(0, |before| self.checksums.groups[before].0);
        let (end, checksum) = self.checksums.groups[self.group];
        self.group += 1;
        // Before memory is reserved for it: the numbers may be forged.
        if end > self.file.metadata().map_err(|error| error.to_string())?.len() {
            return Err(format!("it ends at byte {end}, behind the file's end"));
        }
        let length = usize::try_from(end - start).map_err(|error| error.to_string())?;
        let bytes = GroupBytes::read(&self.file, start, length, checksum)?;
        let columns = bytes.columns(group).map_err(|error| error.to_string())?;
        self.caches.iter_mut().for_each(NumberCache::clear);
        self.open = Some((columns, usize::try_from(group.num_rows()).map_err(|error| error.to_string())?));
        Ok(())
    }
}

fn read_rows<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    values: &mut Vec<T::T>,
) -> Result<(), String> {
    let (_, read, _) = reader.read_records(rows, None, None, values).map_err(|error| error.to_string())?;
    if read == rows { Ok(()) } else { Err(format!("{read} values where {rows} should be")) }
}

/// The header and the checksums, from the metadata entries.
fn heads(metadata: &ParquetMetaData) -> Result<(Header, Checksums), String> {
    let entries = metadata.file_metadata().key_value_metadata();
    let entry = |key: &str| {
        let found = entries.into_iter().flatten().find(|entry| entry.key == key);
        found.and_then(|entry| entry.value.as_deref())
    };
    let header = entry(schema::HEADER_KEY).ok_or(
        "this Parquet file is no trace of joj: it lacks the metadata entry joj_trace, which a program that rewrites \
         a trace must copy (docs/trace_format.md)",
    )?;
    let unreadable = |error: serde_json::Error| format!("its metadata cannot be read: {error}");
    let Versioned { version } = serde_json::from_str(header).map_err(unreadable)?;
    if version > FORMAT_VERSION {
        return Err(format!(
            "written by a newer joj (format {version}; this joj, {}, reads up to {FORMAT_VERSION}): read it with that one, \
             or upgrade this one",
            env!("CARGO_PKG_VERSION")
        ));
    }
    let checksums = entry(schema::CHECKSUMS_KEY).ok_or("it lacks the metadata entry joj_checksums")?;
    let checksums: Checksums = serde_json::from_str(checksums).map_err(unreadable)?;
    if Checksum::of(header.as_bytes()) != checksums.header {
        return Err("it is damaged: joj_trace does not have its checksum".to_owned());
    }
    Ok((serde_json::from_str(header).map_err(unreadable)?, checksums))
}

/// Compares what the file says of its rows in three places.
fn check_rows(metadata: &ParquetMetaData, header: &Header, checksums: &Checksums) -> Result<(), String> {
    let columns = metadata.file_metadata().schema_descr().columns();
    let wanted = schema::message_type().map_err(|error| error.to_string())?;
    for (index, field) in wanted.get_fields().iter().enumerate() {
        if columns.get(index).map(|column| column.self_type()) != Some(field) {
            return Err(format!("column {} is not {}", index + 1, field.name()));
        }
    }
    let groups = metadata.row_groups();
    let in_order = checksums.groups.is_sorted_by(|before, after| before.0 < after.0);
    if columns.len() != COLUMNS.len() || groups.len() != checksums.groups.len() || !in_order {
        return Err("its columns or row groups are not those that were written".to_owned());
    }
    let rows_max = i64::try_from(ROWS_PER_GROUP).unwrap_or(i64::MAX);
    let plausible = groups.iter().all(|group| (1..=rows_max).contains(&group.num_rows()));
    let rows: i64 = if plausible { groups.iter().map(|group| group.num_rows()).sum() } else { -1 };
    let events = header.ending.as_ref().map(|ending| ending.events);
    if u64::try_from(rows).ok() != events {
        return Err("its row groups do not hold as many events as were written".to_owned());
    }
    Ok(())
}

/// Runs decoding: the library has been seen to panic at what no writer writes.
fn caught<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let result = catch_unwind(AssertUnwindSafe(decode));
    result.unwrap_or_else(|_| Err("the Parquet library gave up".to_owned()))
}

fn damaged(path: &str, error: &str) -> String {
    format!("{path} is damaged: {error}; take another copy of the file, or capture again")
}

/// Why a file has no end that can be read.
fn not_whole(path: &str, file: &File, error: &str) -> String {
    let mut magic = [0; 4];
    let begins = std::os::unix::fs::FileExt::read_exact_at(file, &mut magic, 0).is_ok() && &magic == b"PAR1";
    if path.ends_with(".part") {
        return format!(
            "{path} is a capture that is still running or was interrupted: it cannot be read. Its name loses `.part` \
             when it is whole; if nothing writes it any more, delete it and capture again"
        );
    }
    if begins {
        return format!("{path} was cut off or is damaged: {error}; copy it again, or capture again");
    }
    format!(
        "{path} is no saved trace: a Parquet file begins with PAR1. `joj trace --read` takes other programs' traces under any other ending"
    )
}
