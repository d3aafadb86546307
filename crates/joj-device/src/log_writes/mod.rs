//! Requests with their data in the form of Linux's dm-log-writes target, written and read as a stream.
//!
//!   | super: magic, version, entries, sector size | entry | data ... | entry | data ... |
//! Each box is a whole number of sectors, padded with zeros; numbers are little-endian. Invariants: 1. an entry with
//! FLUSH stands behind everything that its flush covers. 2. DISCARD has a length and no data; here it means zeros. 3. reads are not logged.
//! Source: Linux, drivers/md/dm-log-writes.c and Documentation/admin-guide/device-mapper/log-writes.rst.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::number::{index, size};
use crate::request::{RequestKind, SECTOR_BYTES};
use crate::request_log::{LoggedRequest, RequestSink};

const MAGIC: u64 = 0x006a_7366_7773_6872;
const VERSION: u64 = 1;
const FLUSH: u64 = 1;
const FUA: u64 = 1 << 1;
const DISCARD: u64 = 1 << 2;
const MARK: u64 = 1 << 3;
const METADATA: u64 = 1 << 4;
/// Larger than any request: a longer entry is damage, and is not allocated for.
const ENTRY_BYTES_MAX: u64 = 1 << 30;

/// What an entry of the log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEntry {
    /// Data at a place of the device.
    Write {
        /// First byte on the device.
        offset_bytes: u64,
        /// What was written.
        data: Vec<u8>,
        /// A flush of everything before it came first.
        preflush: bool,
        /// Durable when it was done.
        fua: bool,
    },
    /// Zeros from trim or write-zeroes.
    Discard {
        /// First byte on the device.
        offset_bytes: u64,
        /// Bytes from there.
        len_bytes: u64,
        /// Durable when it was done.
        fua: bool,
    },
    /// Everything before it is durable.
    Flush,
    /// Everything before it in this part of the log's bytes is durable: of two devices in one log, one was flushed. The form itself has no
    /// such entry ([`History::of_two`](crate::crash::History::of_two)).
    FlushWithin {
        /// The first byte.
        begin_bytes: u64,
        /// The byte behind the last one.
        end_bytes: u64,
    },
    /// A name for a position.
    Mark(String),
}

/// Writes a log. Without [`finish`](LogWrites::finish) its superblock counts no entry.
#[derive(Debug)]
pub struct LogWrites<W: Write + Seek> {
    out: W,
    entries: u64,
}

impl<W: Write + Seek> LogWrites<W> {
    /// Begins a log at the position of `out`, which must be its beginning.
    ///
    /// # Errors
    /// The file's.
    pub fn new(mut out: W) -> io::Result<Self> {
        out.write_all(&superblock(0))?;
        Ok(LogWrites { out, entries: 0 })
    }

    /// Names the position behind everything recorded, as `dmsetup message ... mark` does.
    ///
    /// # Errors
    /// A name that does not fit beside the entry, or the file's error.
    pub fn mark(&mut self, name: &str) -> io::Result<()> {
        if size(name.len()) > SECTOR_BYTES - 32 {
            let message = format!("a mark of {} bytes: its name has room for 480", name.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut sector = entry(0, 0, MARK, size(name.len()));
        sector[32..32 + name.len()].copy_from_slice(name.as_bytes());
        self.out.write_all(&sector)?;
        self.entries += 1;
        Ok(())
    }

    /// Counts the entries in the superblock and gives the file back.
    ///
    /// # Errors
    /// The file's; the log reads as empty then.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.seek(SeekFrom::Start(0))?;
        self.out.write_all(&superblock(self.entries))?;
        self.out.seek(SeekFrom::End(0))?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn put(&mut self, offset_bytes: u64, len_bytes: u64, flags: u64, data: &[u8]) -> io::Result<()> {
        let (first, sectors) = (offset_bytes / SECTOR_BYTES, len_bytes / SECTOR_BYTES);
        self.out.write_all(&entry(first, sectors, flags, 0))?;
        self.out.write_all(data)?;
        self.entries += 1;
        Ok(())
    }
}

impl<W: Write + Seek> RequestSink for LogWrites<W> {
    fn record(&mut self, logged: &LoggedRequest, data: &[u8]) -> io::Result<()> {
        let request = logged.request;
        let when = |fua: bool| if fua { FUA } else { 0 };
        let (offset_bytes, len_bytes) = (request.offset_bytes, request.len_bytes);
        match request.kind {
            RequestKind::Read => Ok(()),
            RequestKind::Write { fua } => {
                assert_eq!(size(data.len()), len_bytes, "a write comes with its data");
                self.put(offset_bytes, len_bytes, when(fua), data)
            }
            RequestKind::Flush => self.put(0, 0, FLUSH, &[]),
            RequestKind::Trim => self.put(offset_bytes, len_bytes, DISCARD, &[]),
            RequestKind::WriteZeroes { fua } => self.put(offset_bytes, len_bytes, DISCARD | when(fua), &[]),
        }
    }
}

/// Reads a log entry by entry; memory for one entry.
#[derive(Debug)]
pub struct LogReader<R: Read> {
    input: R,
    sector_bytes: u64,
    entries: u64,
    read: u64,
}

impl<R: Read> LogReader<R> {
    /// Reads the superblock.
    ///
    /// # Errors
    /// The file's, or `InvalidData` with what is wrong: no such log, another version, a sector size that cannot be.
    pub fn new(mut input: R) -> io::Result<Self> {
        let mut head = [0; 28];
        fill(&mut input, &mut head, "the superblock")?;
        let (magic, version, entries) = (number(&head, 0), number(&head, 8), number(&head, 16));
        if magic != MAGIC {
            return Err(damaged(format!(
                "no dm-log-writes log: it begins with {magic:#018x}, not {MAGIC:#018x}"
            )));
        }
        if version != VERSION {
            return Err(damaged(format!("version {version} of dm-log-writes, this joj reads {VERSION}")));
        }
        let sector_bytes = u64::from(u32::from_le_bytes([head[24], head[25], head[26], head[27]]));
        if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
            return Err(damaged(format!("sectors of {sector_bytes} bytes: the superblock is damaged")));
        }
        let mut reader = LogReader { input, sector_bytes, entries, read: 0 };
        reader.pass_over(sector_bytes - 28, "the superblock")?;
        Ok(reader)
    }

    /// Entries that the superblock counts.
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    fn pass_over(&mut self, count: u64, what: &str) -> io::Result<()> {
        let mut padding = vec![0; index(count)];
        fill(&mut self.input, &mut padding, what)
    }

    fn next_entry(&mut self) -> io::Result<LogEntry> {
        let place = format!("entry {} of {}", self.read + 1, self.entries);
        let mut sector = vec![0; index(self.sector_bytes)];
        fill(&mut self.input, &mut sector, &place)?;
        let (first, sectors) = (number(&sector, 0), number(&sector, 8));
        let (flags, data_len) = (number(&sector, 16), number(&sector, 24));
        if flags & !(FLUSH | FUA | DISCARD | MARK | METADATA) != 0 {
            return Err(damaged(format!(
                "{place} has flags {flags:#x}, which no kernel writes: the log is damaged"
            )));
        }
        if flags & MARK != 0 {
            let name =
                usize::try_from(data_len).ok().and_then(|len| sector.get(32..32usize.checked_add(len)?));
            let name = name.and_then(|name| std::str::from_utf8(name).ok());
            let name = name.ok_or_else(|| damaged(format!("{place} is a mark with a damaged name")))?;
            return Ok(LogEntry::Mark(name.to_owned()));
        }
        let offset_bytes = first.checked_mul(self.sector_bytes);
        let len_bytes = sectors
            .checked_mul(self.sector_bytes)
            .filter(|len| *len <= ENTRY_BYTES_MAX || flags & DISCARD != 0);
        let (Some(offset_bytes), Some(len_bytes)) = (offset_bytes, len_bytes) else {
            return Err(damaged(format!("{place} has {sectors} sectors at {first}: the log is damaged")));
        };
        if offset_bytes.checked_add(len_bytes).is_none() {
            return Err(damaged(format!("{place} ends past 2^64 bytes: the log is damaged")));
        }
        let fua = flags & FUA != 0;
        if flags & DISCARD != 0 {
            return Ok(LogEntry::Discard { offset_bytes, len_bytes, fua });
        }
        if sectors == 0 {
            let flush = flags & FLUSH != 0;
            return flush.then_some(LogEntry::Flush).ok_or_else(|| damaged(format!("{place} is empty")));
        }
        let mut data = vec![0; index(len_bytes)];
        fill(&mut self.input, &mut data, &place)?;
        Ok(LogEntry::Write { offset_bytes, data, preflush: flags & FLUSH != 0, fua })
    }
}

impl<R: Read> Iterator for LogReader<R> {
    type Item = io::Result<LogEntry>;

    /// The next entry; behind an error there is none.
    fn next(&mut self) -> Option<Self::Item> {
        if self.read >= self.entries {
            return None;
        }
        let entry = self.next_entry();
        self.read = if entry.is_ok() { self.read + 1 } else { self.entries };
        Some(entry)
    }
}

fn superblock(entries: u64) -> Vec<u8> {
    let mut sector = vec![0; index(SECTOR_BYTES)];
    for (field, value) in [MAGIC, VERSION, entries].into_iter().enumerate() {
        sector[8 * field..8 * field + 8].copy_from_slice(&value.to_le_bytes());
    }
    sector[24..28].copy_from_slice(&512u32.to_le_bytes());
    sector
}

fn entry(first: u64, sectors: u64, flags: u64, data_len: u64) -> Vec<u8> {
    let mut sector = vec![0; index(SECTOR_BYTES)];
    for (field, value) in [first, sectors, flags, data_len].into_iter().enumerate() {
        sector[8 * field..8 * field + 8].copy_from_slice(&value.to_le_bytes());
    }
    sector
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(eight)
}

fn fill(input: &mut impl Read, bytes: &mut [u8], what: &str) -> io::Result<()> {
    input.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged(format!("the log is cut off in {what}")),
        _ => error,
    })
}

fn damaged(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests;
