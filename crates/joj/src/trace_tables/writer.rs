//! Writes the rows of a table: memory holds one row group, and the file gets its name when it is whole and on the medium.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::cell::{ColumnKind, TableCell, TableColumn};
use super::error::TableError;
use super::seal::{SEAL_KEY, UNSEALED, seal};
use crate::trace_file::{Checked, Checksum, Checksums};

/// Key of the metadata entry that holds the header as JSON.
pub const HEADER_KEY: &str = "joj_table";
/// Key of the metadata entry that holds the checksums, as in saved traces.
const CHECKSUMS_KEY: &str = "joj_checksums";
/// Rows of a row group: some megabytes of a column are enough for every reader.
const ROWS_PER_GROUP: usize = 128 * 1024;

/// The values of one column that wait for their row group.
#[derive(Debug)]
enum ColumnValues {
    Numbers(Vec<i64>),
    /// The known ones, and for each row whether it is known.
    OptionalNumbers(Vec<i64>, Vec<i16>),
    Text(Vec<ByteArray>),
}

/// Writes a table to a `.part` of its own, which [`TableWriter::finish`] renames to `PATH`.
pub struct TableWriter {
    path: PathBuf,
    part: PathBuf,
    /// `None` once finished.
    file: Option<SerializedFileWriter<Checked<BufWriter<File>>>>,
    waiting: Vec<ColumnValues>,
    rows_waiting: usize,
    rows: u64,
    checksums: Checksums,
    /// Texts of this row group: each is kept once.
    texts: HashMap<Box<str>, ByteArray>,
}

impl TableWriter {
    /// Begins a table.
    /// # Errors
    /// Where no `.part` can be made beside it.
    pub fn create(path: &Path, columns: &[TableColumn]) -> Result<Self, TableError> {
        let (part, file) = create_part(path)?;
        let sink = Checked::new(BufWriter::with_capacity(1 << 18, file));
        let writer = schema(columns)
            .and_then(|schema| SerializedFileWriter::new(sink, schema, Arc::new(properties())))
            .map_err(|error| TableError::Write { path: part.clone(), error })?;
        let waiting = columns.iter().map(|column| match column.kind {
            ColumnKind::Number => ColumnValues::Numbers(Vec::new()),
            ColumnKind::OptionalNumber => ColumnValues::OptionalNumbers(Vec::new(), Vec::new()),
            ColumnKind::Text => ColumnValues::Text(Vec::new()),
        });
        Ok(Self {
            path: path.to_owned(),
            part,
            file: Some(writer),
            waiting: waiting.collect(),
            rows_waiting: 0,
            rows: 0,
            checksums: Checksums::default(),
            texts: HashMap::new(),
        })
    }

    /// Appends a row: a cell for each column, in their order.
    /// # Errors
    /// Where a row group cannot be written. The table is lost then, and its `.part` goes with the writer.
    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = TableCell<'a>>) -> Result<(), TableError> {
        let mut cells = 0;
        for (column, cell) in self.waiting.iter_mut().zip(row) {
            match (column, cell) {
                (ColumnValues::Text(values), TableCell::Text(text)) => {
                    values.push(kept(&mut self.texts, text))
                }
                (ColumnValues::Numbers(values), cell) => values.push(cell.stored().unwrap_or_default()),
                (ColumnValues::OptionalNumbers(values, known), cell) => {
                    known.push(i16::from(cell.stored().is_some()));
                    values.extend(cell.stored());
                }
                (ColumnValues::Text(values), _) => values.push(kept(&mut self.texts, "")),
            }
            cells += 1;
        }
        assert!(cells == self.waiting.len(), "a row of {cells} cells for {} columns", self.waiting.len());
        self.rows_waiting += 1;
        self.rows += 1;
        if self.rows_waiting == ROWS_PER_GROUP { self.write_group() } else { Ok(()) }
    }

    /// How many rows it has.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes what waits; no row may follow. Returns what the rows are known by: the ends of the row groups, and their checksums.
    /// # Errors
    /// As [`TableWriter::push`].
    pub fn end_rows(&mut self) -> Result<&[(u64, u32)], TableError> {
        self.write_group()?;
        Ok(&self.checksums.groups)
    }

    /// Writes the rest and this header, and gives the file its name; `is_synced`: once it is on the medium.
    /// # Errors
    /// Where the file cannot be completed or renamed; it is gone then.
    pub fn finish(mut self, header: &str, is_synced: bool) -> Result<(), TableError> {
        self.write_group()?;
        self.checksums.header = Checksum::of(header.as_bytes());
        let checksums = serde_json::to_string(&self.checksums)?;
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.append_key_value_metadata(KeyValue::new(HEADER_KEY.to_owned(), header.to_owned()));
        file.append_key_value_metadata(KeyValue::new(CHECKSUMS_KEY.to_owned(), checksums));
        file.append_key_value_metadata(KeyValue::new(SEAL_KEY.to_owned(), UNSEALED.to_owned()));
        let sealed = file.finish().and_then(|_| {
            file.inner_mut().flush()?;
            let part = OpenOptions::new().read(true).write(true).open(&self.part)?;
            seal(&part)?;
            // Before the rename: a power cut may leave the old file or none, and not the name of an empty one.
            if is_synced {
                part.sync_all()?;
            }
            Ok(())
        });
        let renamed = match sealed {
            Err(error) => Err(TableError::Write { path: self.part.clone(), error }),
            Ok(()) => std::fs::rename(&self.part, &self.path)
                .map_err(|error| TableError::Rename { path: self.part.clone(), error }),
        };
        // Not whole: it goes with the writer.
        renamed.inspect_err(|_| self.file = Some(file))
    }

    fn write_group(&mut self) -> Result<(), TableError> {
        let Some(file) = self.file.as_mut().filter(|_| self.rows_waiting > 0) else { return Ok(()) };
        let written = write_columns(file, &self.waiting);
        written.map_err(|error| TableError::Write { path: self.part.clone(), error })?;
        let end = u64::try_from(file.bytes_written()).unwrap_or(u64::MAX);
        self.checksums.groups.push((end, file.inner_mut().take()));
        for column in &mut self.waiting {
            match column {
                ColumnValues::Numbers(values) => values.clear(),
                ColumnValues::OptionalNumbers(values, known) => {
                    values.clear();
                    known.clear();
                }
                ColumnValues::Text(values) => values.clear(),
            }
        }
        self.rows_waiting = 0;
        self.texts.clear();
        Ok(())
    }
}

impl Drop for TableWriter {
    /// Without its end nobody can read the file.
    fn drop(&mut self) {
        if self.file.take().is_some() {
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

/// A file of this writer alone: another joj may be exporting the same trace.
fn create_part(path: &Path) -> Result<(PathBuf, File), TableError> {
    let process = std::process::id();
    for number in 0_u32.. {
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{process}-{number}.part"));
        let part = PathBuf::from(part);
        match OpenOptions::new().write(true).create_new(true).open(&part) {
            // Left over by a process of the same number, or that of a container which sees the same directory.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(TableError::Create { path: part, error }),
            Ok(file) => return Ok((part, file)),
        }
    }
    unreachable!("four thousand million parts of one table")
}

fn kept(texts: &mut HashMap<Box<str>, ByteArray>, text: &str) -> ByteArray {
    if let Some(bytes) = texts.get(text) {
        return bytes.clone();
    }
    let bytes = ByteArray::from(text);
    texts.insert(text.into(), bytes.clone());
    bytes
}

fn schema(columns: &[TableColumn]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| column.field().map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
    Ok(Arc::new(Type::group_type_builder(HEADER_KEY).with_fields(fields).build()?))
}

fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by(format!("joj {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        // Readers ask for whole tables: smallest and largest values would only make the end longer.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_max_row_group_row_count(None)
        .build()
}

fn write_columns(
    file: &mut SerializedFileWriter<Checked<BufWriter<File>>>,
    waiting: &[ColumnValues],
) -> Result<(), ParquetError> {
    let mut group = file.next_row_group()?;
    for column in waiting {
        let Some(mut writer) = group.next_column()? else { break };
        match column {
            ColumnValues::Numbers(values) => writer.typed::<Int64Type>().write_batch(values, None, None)?,
            ColumnValues::OptionalNumbers(values, known) => {
                writer.typed::<Int64Type>().write_batch(values, Some(known), None)?
            }
            ColumnValues::Text(values) => writer.typed::<ByteArrayType>().write_batch(values, None, None)?,
        };
        writer.close()?;
    }
    group.close()?;
    Ok(())
}
