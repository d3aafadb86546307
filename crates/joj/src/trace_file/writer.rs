//! Writes a trace as it comes: memory holds one row group, and the file gets its name when it is whole.

use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use joj_analysis::recording::Recording;
use joj_analysis::recording::call::{CallKind, RecordedCall};
use joj_analysis::trace::event::Event;
use joj_analysis::trace::header::{CALLS_VERSION, EVENTS_VERSION, Ending, FORMAT_VERSION, Header};
use joj_analysis::trace::texts::{Text, Texts};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use serde::{Deserialize, Serialize};

use super::checksum::{Checked, Checksum};
use super::error::TraceWriteError;
use super::names::BytesCache;
use super::schema::{self, Column, ColumnPlace, Columns, TEXTS};

/// Events of a row group. Twice as many make the file 1 % smaller and the memory twice as large.
pub const ROWS_PER_GROUP: usize = 128 * 1024;

/// The checksums of a file, behind its rows.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Checksums {
    /// CRC-32 of the header's JSON.
    pub header: u32,
    /// Each row group: the byte behind it, and the CRC-32 of all from the end of the one before, or the file's begin.
    pub groups: Vec<(u64, u32)>,
}

/// Writes a trace to `PATH.part`, which [`TraceWriter::finish`] renames to `PATH`.
pub struct TraceWriter {
    path: PathBuf,
    part: PathBuf,
    /// [`version_for`] its calls, without any [`EVENTS_VERSION`], which older versions of joj read.
    version: u32,
    /// `None` once finished.
    file: Option<SerializedFileWriter<Checked<BufWriter<File>>>>,
    checksums: Checksums,
    columns: Columns,
    texts: [Vec<ByteArray>; TEXTS],
    names: BytesCache,
    events: u64,
}

impl TraceWriter {
    /// Begins a trace.
    /// # Errors
    /// Where `PATH.part` cannot be made, or `path` is there and no regular file. Nothing is left behind.
    pub fn create(path: &Path) -> Result<Self, TraceWriteError> {
        Self::with_version(path, EVENTS_VERSION)
    }

    /// Begins a recording of calls.
    /// # Errors
    /// As [`TraceWriter::create`].
    pub fn create_recording(path: &Path) -> Result<Self, TraceWriteError> {
        Self::with_version(path, CALLS_VERSION)
    }

    /// Writes a whole recording of calls.
    /// # Errors
    /// Where it cannot be written; no file is left behind then.
    pub fn write_recording(mut self, recording: &Recording) -> Result<(), TraceWriteError> {
        for call in &recording.calls {
            self.version = self.version.max(version_for(call));
            self.columns.push_call(call);
            let texts = [Text::NONE, call.path, call.second_path];
            for (column, text) in self.texts.iter_mut().zip(texts) {
                column.push(self.names.bytes(text, &recording.texts));
            }
            self.events += 1;
            if self.columns.rows() == ROWS_PER_GROUP {
                self.write_group()?;
            }
        }
        self.finish(&recording.header).map(|_| ())
    }

    fn with_version(path: &Path, version: u32) -> Result<Self, TraceWriteError> {
        if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
            return Err(TraceWriteError::NoRegularFile(path.to_owned()));
        }
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&part);
        let file = opened.map_err(|error| TraceWriteError::Create { path: part.clone(), error })?;
        let sink = Checked::new(BufWriter::with_capacity(1 << 20, file));
        let writer = schema::message_type(version)
            .and_then(|schema| SerializedFileWriter::new(sink, schema, Arc::new(schema::properties())));
        Ok(Self {
            file: Some(writer.map_err(|error| TraceWriteError::Write { path: part.clone(), error })?),
            path: path.to_owned(),
            part,
            version,
            checksums: Checksums::default(),
            columns: Columns::default(),
            texts: Default::default(),
            names: BytesCache::default(),
            events: 0,
        })
    }

    /// Appends an event; its texts are those of `texts`.
    /// # Errors
    /// Where a row group cannot be written: the disk is full. The trace is lost then, and its `.part` goes with the writer.
    pub fn push(&mut self, event: &Event, texts: &Texts) -> Result<(), TraceWriteError> {
        self.columns.push(event);
        self.texts[0].push(self.names.bytes(event.command, texts));
        self.texts[1].push(self.names.bytes(event.name, texts));
        self.events += 1;
        if self.columns.rows() == ROWS_PER_GROUP { self.write_group() } else { Ok(()) }
    }

    /// Writes the rest and this head, and gives the file its name. Returns how many events there are; its ending gets the same number.
    /// # Errors
    /// Where the file cannot be completed or renamed; it is gone then.
    pub fn finish(mut self, header: &Header) -> Result<u64, TraceWriteError> {
        self.write_group()?;
        let ending = Ending { events: self.events, ..header.ending.clone().unwrap_or_default() };
        let header = Header { version: self.version, ending: Some(ending), ..header.clone() };
        let header = serde_json::to_string(&header)?;
        self.checksums.header = Checksum::of(header.as_bytes());
        let checksums = serde_json::to_string(&self.checksums)?;
        if let Some(mut file) = self.file.take() {
            file.append_key_value_metadata(KeyValue::new(schema::HEADER_KEY.to_owned(), header));
            file.append_key_value_metadata(KeyValue::new(schema::CHECKSUMS_KEY.to_owned(), checksums));
            file.finish()
                .map_err(|error| TraceWriteError::Write { path: self.part.clone(), error })
                .and_then(|_| {
                    std::fs::rename(&self.part, &self.path)
                        .map_err(|error| TraceWriteError::Rename { path: self.part.clone(), error })
                })
                .inspect_err(|_| self.file = Some(file))?;
        }
        Ok(self.events)
    }

    fn write_group(&mut self) -> Result<(), TraceWriteError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        if self.columns.rows() > 0 {
            let written = write_columns(file, schema::columns(self.version), &self.columns, &self.texts);
            written.map_err(|error| TraceWriteError::Write { path: self.part.clone(), error })?;
            let end = u64::try_from(file.bytes_written()).unwrap_or(u64::MAX);
            self.checksums.groups.push((end, file.inner_mut().take()));
        }
        self.columns.clear();
        self.texts.iter_mut().for_each(Vec::clear);
        self.names.clear();
        Ok(())
    }
}

impl Drop for TraceWriter {
    /// Without its end nobody can read the file.
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

/// The version of which readers have to be that understand this call.
fn version_for(call: &RecordedCall) -> u32 {
    match call.kind {
        CallKind::Ended => FORMAT_VERSION,
        CallKind::Woken if call.bytes > 0 => FORMAT_VERSION,
        // Older versions would make two files of it.
        CallKind::Present if call.second_path != Text::NONE => FORMAT_VERSION,
        _ => CALLS_VERSION,
    }
}

fn write_columns<W: std::io::Write + Send>(
    file: &mut SerializedFileWriter<W>,
    order: &[Column],
    columns: &Columns,
    texts: &[Vec<ByteArray>; TEXTS],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    let mut order = order.iter();
    while let (Some(column), Some(mut writer)) = (order.next(), group.next_column()?) {
        match column.place {
            ColumnPlace::Int(index) => {
                writer.typed::<Int32Type>().write_batch(&columns.ints[index], None, None)?
            }
            ColumnPlace::Long(index) => {
                writer.typed::<Int64Type>().write_batch(&columns.longs[index], None, None)?
            }
            ColumnPlace::Text(index) => {
                writer.typed::<ByteArrayType>().write_batch(&texts[index], None, None)?
            }
        };
        writer.close()?;
    }
    group.close()?;
    Ok(())
}
