//! Writes the rows of a table: memory holds one row group, and the file gets its name when it is whole.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::BufWriter;
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
use crate::trace_file::{Checked, Checksum, Checksums};

/// Key of the metadata entry that holds the header as JSON.
const HEADER_KEY: &str = "joj_table";
/// Key of the metadata entry that holds the checksums, as in saved traces.
const CHECKSUMS_KEY: &str = "joj_checksums";
/// Rows of a row group: some megabytes of a column are enough for every reader.
const ROWS_PER_GROUP: usize = 128 * 1024;

/// The values of one column that wait for their row group.
#[derive(Debug)]
enum ColumnValues {
    Numbers(Vec<i64>),
    /// The known ones, and for each row whether it is known.
    Perhaps(Vec<i64>, Vec<i16>),
    Words(Vec<ByteArray>),
}

/// Writes a table to `PATH.part`, which [`TableWriter::finish`] renames to `PATH`.
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
    /// Where `PATH.part` cannot be made.
    pub fn create(path: &Path, columns: &[TableColumn]) -> Result<Self, TableError> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(&part);
        let file = opened.map_err(|error| TableError::Create { path: part.clone(), error })?;
        let sink = Checked::new(BufWriter::with_capacity(1 << 18, file));
        let writer = schema(columns)
            .and_then(|schema| SerializedFileWriter::new(sink, schema, Arc::new(properties())))
            .map_err(|error| TableError::Write { path: part.clone(), error })?;
        let waiting = columns.iter().map(|column| match column.kind {
            ColumnKind::Number => ColumnValues::Numbers(Vec::new()),
            ColumnKind::Perhaps => ColumnValues::Perhaps(Vec::new(), Vec::new()),
            ColumnKind::Words => ColumnValues::Words(Vec::new()),
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
                (ColumnValues::Words(values), TableCell::Text(text)) => {
                    values.push(kept(&mut self.texts, text))
                }
                (ColumnValues::Numbers(values), cell) => values.push(cell.stored().unwrap_or_default()),
                (ColumnValues::Perhaps(values, known), cell) => {
                    known.push(i16::from(cell.stored().is_some()));
                    values.extend(cell.stored());
                }
                (ColumnValues::Words(values), _) => values.push(kept(&mut self.texts, "")),
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

    /// Writes the rest and this header, and gives the file its name.
    /// # Errors
    /// Where the file cannot be completed or renamed; it is gone then.
    pub fn finish(mut self, header: &str) -> Result<(), TableError> {
        self.write_group()?;
        self.checksums.header = Checksum::of(header.as_bytes());
        let checksums = serde_json::to_string(&self.checksums)?;
        let Some(mut file) = self.file.take() else { return Ok(()) };
        file.append_key_value_metadata(KeyValue::new(HEADER_KEY.to_owned(), header.to_owned()));
        file.append_key_value_metadata(KeyValue::new(CHECKSUMS_KEY.to_owned(), checksums));
        let renamed = match file.finish() {
            Err(error) => Err(TableError::Write { path: self.part.clone(), error }),
            Ok(_) => std::fs::rename(&self.part, &self.path)
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
                ColumnValues::Perhaps(values, known) => {
                    values.clear();
                    known.clear();
                }
                ColumnValues::Words(values) => values.clear(),
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
        // No checksum covers the end of a file: a flipped bit of a smallest value would hide rows from a reader.
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
            ColumnValues::Perhaps(values, known) => {
                writer.typed::<Int64Type>().write_batch(values, Some(known), None)?
            }
            ColumnValues::Words(values) => writer.typed::<ByteArrayType>().write_batch(values, None, None)?,
        };
        writer.close()?;
    }
    group.close()?;
    Ok(())
}
