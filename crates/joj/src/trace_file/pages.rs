//! One row group's bytes, checked before they are decoded, in pages that claim no more than they have.

use std::fs::File;
use std::io::Cursor;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use bytes::Bytes;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::checksum::Checksum;
use super::error::Damage;

/// The bytes of a row group. What lies outside them cannot be asked for.
pub struct GroupBytes {
    start: u64,
    bytes: Bytes,
}

impl GroupBytes {
    /// Reads a row group and compares it with its checksum.
    pub fn read(file: &File, start: u64, length: usize, checksum: u32) -> Result<Arc<Self>, Damage> {
        let mut bytes = vec![0; length];
        file.read_exact_at(&mut bytes, start)?;
        if Checksum::of(&bytes) != checksum {
            return Err(Damage::Checksum { from: start, to: start.saturating_add(length as u64) });
        }
        Ok(Arc::new(Self { start, bytes: bytes.into() }))
    }

    /// The row group's columns, in the file's order.
    pub fn columns(self: &Arc<Self>, group: &RowGroupMetaData) -> Result<Vec<ColumnReader>, ParquetError> {
        let rows = usize::try_from(group.num_rows()).unwrap_or(usize::MAX);
        let columns = group.columns().iter().map(|column| {
            let pages = SerializedPageReader::new(Arc::clone(self), column, rows, None)?;
            Ok(get_column_reader(column.column_descr_ptr(), Box::new(Pages { pages, rows })))
        });
        columns.collect()
    }

    fn part(&self, start: u64, length: Option<usize>) -> Result<Bytes, ParquetError> {
        let from = start.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let to =
            from.and_then(|from| length.map_or(Some(self.bytes.len()), |length| from.checked_add(length)));
        match (from, to) {
            (Some(from), Some(to)) if from <= to && to <= self.bytes.len() => Ok(self.bytes.slice(from..to)),
            _ => Err(ParquetError::General(format!(
                "a column begins or ends outside its row group, at byte {start}"
            ))),
        }
    }
}

impl Length for GroupBytes {
    fn len(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

impl ChunkReader for GroupBytes {
    type T = Cursor<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(Cursor::new(self.part(start, None)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.part(start, Some(length))
    }
}

/// Refuses a page that claims more values than there can be: the decoder would reserve memory for them.
struct Pages {
    pages: SerializedPageReader<GroupBytes>,
    rows: usize,
}

impl Pages {
    fn check(&self, page: &Page) -> Result<(), ParquetError> {
        // An entry of a dictionary has a byte at least, and there are no more entries than rows.
        let fits = match page {
            Page::DictionaryPage { buf, .. } => page.num_values() as usize <= buf.len().min(self.rows),
            _ => page.num_values() as usize <= self.rows,
        };
        let message = || ParquetError::General(format!("a page claims {} values", page.num_values()));
        if fits { Ok(()) } else { Err(message()) }
    }
}

impl Iterator for Pages {
    type Item = Result<Page, ParquetError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>, ParquetError> {
        let page = self.pages.get_next_page()?;
        page.iter().try_for_each(|page| self.check(page))?;
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>, ParquetError> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<(), ParquetError> {
        self.pages.skip_next_page()
    }
}
