//! A log in the `embedded` layout, as a file with SQLite's offsets and bytes.
//!
//! Direct writes alone take blocks as they are in the file (`blocks_of`).

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blockio::aligned::AlignedBuffer;
use blockio::disk::{Disk, DiskFile, Facts, FileId, Fill, OpenOptions};

use crate::log::embedded::{
    BLOCK, FRAME, HEADER, LogStart, PageEnd, block_offset, cut_end, encode, file_end, guard_block,
    header_block, header_of, log_end, look, put_reserved, salts_of, split,
};
use crate::log::frame::{LOG_HEADER_BYTES, Salts};
use crate::log::layout::{BLOCK_BYTES, Layout};
use crate::log::reserved_bytes::{self, ReservedBytes};

/// A log in the `embedded` layout that reads and writes as one in SQLite's own.
#[derive(Debug)]
pub struct EmbeddedFile {
    file: Arc<dyn DiskFile>,
    reserved: ReservedBytes,
}

/// Part of a frame: which, from where, and how much.
struct Piece {
    frame: u64,
    from: usize,
    len_bytes: usize,
}

/// The frames that a range behind the log header touches.
fn pieces(offset: u64, len_bytes: usize) -> impl Iterator<Item = Piece> {
    let mut at = offset - LOG_HEADER_BYTES;
    let end = at + len_bytes as u64;
    std::iter::from_fn(move || {
        let frame = at / FRAME as u64;
        let from = usize::try_from(at % FRAME as u64).unwrap_or(0);
        let left = usize::try_from(end - at).unwrap_or(usize::MAX);
        let len_bytes = left.min(FRAME - from);
        at += len_bytes as u64;
        (len_bytes > 0).then_some(Piece { frame, from, len_bytes })
    })
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Whole frames as blocks for a direct write, and where they go; `None` where they are not whole, or some page's last
/// bytes are elsewhere: they go through the page cache then.
pub fn blocks_of(frames: &[u8], offset: u64, blocks: &mut AlignedBuffer) -> Option<(usize, u64)> {
    let at = offset.checked_sub(LOG_HEADER_BYTES)?;
    if !at.is_multiple_of(FRAME as u64) || !frames.len().is_multiple_of(FRAME) {
        return None;
    }
    let len_bytes = frames.len() / FRAME * BLOCK;
    if blocks.len() < len_bytes {
        *blocks = AlignedBuffer::zeroed(len_bytes.next_power_of_two());
    }
    for (frame, block) in frames.chunks_exact(FRAME).zip(blocks.bytes_mut().chunks_exact_mut(BLOCK)) {
        if encode(frame.try_into().ok()?, block)?.is_some() {
            return None;
        }
    }
    Some((len_bytes, block_offset(at / FRAME as u64)))
}

/// The log in `file`, with SQLite's offsets and bytes whatever its layout.
pub fn in_layout(
    layout: Layout,
    file: Box<dyn DiskFile>,
    disk: &Arc<dyn Disk>,
    log_path: &Path,
    no_sync: bool,
) -> Arc<dyn DiskFile> {
    let file = Arc::from(file);
    match layout {
        Layout::Stock => file,
        Layout::Embedded => {
            let reserved = ReservedBytes::new(Arc::clone(disk), log_path.to_path_buf(), no_sync);
            Arc::new(EmbeddedFile::new(file, reserved))
        }
    }
}

/// Proves that a log that was just opened has the layout that was decided on; the layout counts for this very file. A log
/// without a header may begin the `embedded` one where the caller keeps everybody else out of the database (`begins`).
/// # Errors
/// `InvalidData`: it has another layout, and must not be used in this one. Else it cannot be read, or written.
pub fn prove(file: &dyn DiskFile, layout: Layout, begins: bool) -> io::Result<()> {
    match (layout, look_at(file)?) {
        (Layout::Embedded, LogStart::Embedded) | (Layout::Stock, LogStart::Stock | LogStart::Nothing) => {
            Ok(())
        }
        (Layout::Embedded, LogStart::Nothing) if begins => {
            file.write_at(&guard_block(), 0).inspect_err(|_| {
                // Half a guard would keep SQLite out. There is nothing in it that counts.
                let _ = file.truncate(0);
            })
        }
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the log has another layout")),
    }
}

/// Zeros the header of a log, durably, whose frames are all in the database.
///
/// The header's 32 bytes and no more: they lie in one sector, so a power cut leaves the old log or none. Zeroing
/// whole blocks can persist in part and leave a *shorter* valid log, whose older pages would override newer ones in
/// the database (found by `crash/sides`, page size 1024).
/// # Errors
/// It is as before, or zeros.
pub fn clear_at(disk: &dyn Disk, log_path: &Path, no_sync: bool) -> io::Result<()> {
    let log = disk.open(log_path, OpenOptions::EXISTING)?;
    log.write_at(&[0; 32], 0)?;
    if no_sync { Ok(()) } else { log.sync_data() }
}

/// Makes a log of this layout an empty one of SQLite's, without taking the file away from those who have it open. All its
/// frames are in the database and on the medium, nobody who knows the layout has it open, and `header` is its header as
/// SQLite has it.
///
/// Step by step: a header that says that there are no frames, on the medium before they go (a part of them must not be left as a
/// log); the frames; the header. SQLite is kept out until that last write, and may have written behind it when it
/// returns: nothing is written after it.
/// # Errors
/// The log keeps SQLite out as before; or it is empty, and keeps SQLite out again after a power cut.
pub fn empty_in_place(disk: &dyn Disk, log_path: &Path, header: &[u8; 32], no_sync: bool) -> io::Result<()> {
    let log = disk.open(log_path, OpenOptions::EXISTING)?;
    let mut start = [0; 32];
    log.read_at(&mut start, 0)?;
    if look(&start) != LogStart::Embedded || header_of(&start) != *header {
        return Err(invalid("another log stands in its place"));
    }
    let sync = || if no_sync { Ok(()) } else { log.sync_data() };
    log.write_at(&guard_block()[..start.len()], 0)?;
    sync()?;
    reserved_bytes::remove(disk, log_path);
    log.truncate(BLOCK_BYTES)?;
    log.write_at(&[0; 32], 0)?;
    sync()
}

/// How often a header that is none and not zeros is looked at, and the pause.
const LOOKS: (u32, Duration) = (5, Duration::from_millis(1));

/// What the first bytes of a log tell. A header that is just being written may be seen in part, and is looked at again.
/// # Errors
/// It cannot be read: nothing is known.
pub fn look_at(file: &dyn DiskFile) -> io::Result<LogStart> {
    for _ in 0..LOOKS.0 {
        let mut start = [0; 32];
        let read = file.read_at(&mut start, 0)?;
        let found = look(&start[..read]);
        if found != LogStart::Nothing || start == [0; 32] {
            return Ok(found);
        }
        std::thread::sleep(LOOKS.1);
    }
    Ok(LogStart::Nothing)
}

impl EmbeddedFile {
    /// The log in `file`.
    pub fn new(file: Arc<dyn DiskFile>, reserved: ReservedBytes) -> EmbeddedFile {
        EmbeddedFile { file, reserved }
    }

    /// Reads a frame's block and takes it apart into header and page; `None` where the file ends before it does.
    fn block(&self, frame: u64, block: &mut [u8]) -> io::Result<Option<[u8; HEADER]>> {
        if self.file.read_at(block, block_offset(frame))? < BLOCK {
            return Ok(None);
        }
        let (header, has_reserved) = split(block);
        if has_reserved {
            put_reserved(block, self.reserved.get(frame, salts_of(&header))?);
        }
        Ok(Some(header))
    }

    fn header(&self) -> io::Result<Option<[u8; 32]>> {
        let mut start = [0; 32];
        Ok((self.file.read_at(&mut start, 0)? == start.len()).then(|| header_of(&start)))
    }

    /// The present bytes of a frame that is written in part.
    fn frame(&self, frame: u64) -> io::Result<[u8; FRAME]> {
        let mut bytes = [0; FRAME];
        if let Some(header) = self.block(frame, &mut bytes[HEADER..])? {
            bytes[..HEADER].copy_from_slice(&header);
        } else {
            bytes.fill(0);
        }
        Ok(bytes)
    }

    /// The blocks of bytes of the log, and where the first of them is; what the pages give room for is kept.
    fn encoded(&self, data: &[u8], offset: u64) -> io::Result<(Vec<u8>, u64)> {
        let mut blocks = Vec::with_capacity(data.len() + BLOCK);
        let mut reserved: Vec<(u64, Salts, PageEnd)> = Vec::new();
        let mut frames = (offset, data);
        if offset < LOG_HEADER_BYTES {
            let whole = || data.split_first_chunk::<32>().filter(|_| offset == 0);
            let (header, rest) = whole().ok_or_else(|| invalid("part of a log header"))?;
            blocks.extend_from_slice(&header_block(header));
            frames = (LOG_HEADER_BYTES, rest);
        }
        let (mut base, mut rest) = (0, frames.1);
        for piece in pieces(frames.0, rest.len()) {
            if blocks.is_empty() {
                base = block_offset(piece.frame);
            }
            let (bytes, behind) = rest.split_at(piece.len_bytes);
            rest = behind;
            let mut part;
            let frame: &[u8; FRAME] = if let Ok(whole) = bytes.try_into() {
                whole
            } else {
                part = self.frame(piece.frame)?;
                part[piece.from..piece.from + piece.len_bytes].copy_from_slice(bytes);
                &part
            };
            let at = blocks.len();
            blocks.resize(at + BLOCK, 0);
            let used = encode(frame, &mut blocks[at..]);
            let used =
                used.ok_or_else(|| invalid("a page number above 2147483647 in the embedded layout"))?;
            reserved.extend(used.map(|used| (piece.frame, salts_of(frame), used)));
        }
        if !reserved.is_empty() {
            self.reserved.keep(&reserved)?;
        }
        Ok((blocks, base))
    }
}

impl DiskFile for EmbeddedFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        let header_bytes =
            usize::try_from(LOG_HEADER_BYTES.saturating_sub(offset)).unwrap_or(0).min(into.len());
        if header_bytes > 0 {
            let Some(header) = self.header()? else { return Ok(0) };
            let from = usize::try_from(offset).unwrap_or(0);
            into[..header_bytes].copy_from_slice(&header[from..from + header_bytes]);
            done = header_bytes;
        }
        if done == into.len() {
            return Ok(done);
        }
        for piece in pieces(offset + done as u64, into.len() - done) {
            let to = &mut into[done..done + piece.len_bytes];
            if (piece.from, to.len()) == (HEADER, BLOCK) {
                // A page, as readers want it: no copy.
                if self.block(piece.frame, to)?.is_none() {
                    return Ok(done);
                }
            } else {
                let mut bytes = [0; FRAME];
                let Some(header) = self.block(piece.frame, &mut bytes[HEADER..])? else { return Ok(done) };
                bytes[..HEADER].copy_from_slice(&header);
                to.copy_from_slice(&bytes[piece.from..piece.from + piece.len_bytes]);
            }
            done += piece.len_bytes;
        }
        Ok(done)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let (blocks, base) = self.encoded(data, offset)?;
        if blocks.is_empty() { Ok(()) } else { self.file.write_at(&blocks, base) }
    }

    fn write_what_is_missing(&self, end: u64) -> io::Result<bool> {
        self.file.write_what_is_missing(file_end(end))
    }

    fn forget_cached(&self, offset: u64) {
        self.file.forget_cached(file_end(offset));
    }

    fn write_direct(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_direct(data, offset)
    }

    fn write_durable(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_durable(data, offset)
    }

    fn extend(&self, end: u64, fill: Fill) -> io::Result<u64> {
        self.file.extend(file_end(end), fill).map(log_end)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn sync_filesystem(&self) -> io::Result<()> {
        self.file.sync_filesystem()
    }

    fn identity(&self) -> io::Result<FileId> {
        self.file.identity()
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size().map(log_end)
    }

    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        if size_bytes == 0 {
            self.file.write_at(&guard_block(), 0)?;
            return self.file.truncate(BLOCK_BYTES);
        }
        self.file.truncate(cut_end(size_bytes))
    }

    fn read_ahead(&self, offset: u64, len_bytes: u64) {
        self.file.read_ahead(file_end(offset), len_bytes);
    }

    fn free_bytes(&self) -> u64 {
        self.file.free_bytes()
    }

    fn facts(&self) -> Facts {
        self.file.facts()
    }

    fn describe(&self) -> Vec<(&'static str, String, String)> {
        self.file.describe()
    }
}

#[cfg(test)]
#[path = "tests/embedded_file.rs"]
mod tests;
