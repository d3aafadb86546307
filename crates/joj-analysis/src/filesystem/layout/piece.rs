//! A piece of a disk whose content is not trusted.

use super::ReadAt;
use super::error::LayoutError;

/// Reading once more may help where the kernel was just changing what it keeps of a mounted filesystem.
const READS_MAX: u32 = 5;

/// Bytes with their place and name, for errors.
#[derive(Debug)]
pub struct Piece {
    bytes: Vec<u8>,
    at: u64,
    structure: &'static str,
}

impl Piece {
    /// Reads `bytes` bytes from byte `at` on.
    /// # Errors
    /// They cannot be read, or not all of them.
    pub fn read(
        read: &mut ReadAt<'_>,
        at: u64,
        bytes: usize,
        structure: &'static str,
    ) -> Result<Self, LayoutError> {
        let found = read(at, bytes).map_err(|error| LayoutError::Unreadable { structure, at, error })?;
        if found.len() != bytes {
            return Err(LayoutError::CutOff { structure, at, found: found.len(), bytes });
        }
        Ok(Self { bytes: found, at, structure })
    }

    /// Reads until `check` accepts the bytes.
    /// # Errors
    /// As [`Piece::read`], and the last answer of `check`.
    pub fn read_checked(
        read: &mut ReadAt<'_>,
        at: u64,
        bytes: usize,
        structure: &'static str,
        check: impl Fn(&Self) -> Result<(), LayoutError>,
    ) -> Result<Self, LayoutError> {
        let mut reads = 0;
        loop {
            let piece = Self::read(read, at, bytes, structure)?;
            reads += 1;
            match check(&piece) {
                Ok(()) => return Ok(piece),
                Err(error) if reads == READS_MAX => return Err(error),
                Err(_) => {}
            }
        }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its place and what is wrong there.
    pub fn wrong<T>(&self, problem: impl std::fmt::Display) -> Result<T, LayoutError> {
        Err(LayoutError::Content { structure: self.structure, at: self.at, problem: problem.to_string() })
    }

    /// Error unless `good`.
    /// # Errors
    /// `problem`, with the place.
    pub fn need(&self, good: bool, problem: impl std::fmt::Display) -> Result<(), LayoutError> {
        if good { Ok(()) } else { self.wrong(problem) }
    }

    /// `N` bytes from `offset` on.
    /// # Errors
    /// The piece ends before.
    pub fn array<const N: usize>(&self, offset: usize) -> Result<[u8; N], LayoutError> {
        let found = offset.checked_add(N).and_then(|end| self.bytes.get(offset..end));
        match found.and_then(|found| found.try_into().ok()) {
            Some(array) => Ok(array),
            None => self.wrong(format_args!("it ends before byte {offset} of it")),
        }
    }

    /// One byte.
    /// # Errors
    /// The piece ends before.
    pub fn byte(&self, offset: usize) -> Result<u8, LayoutError> {
        self.array::<1>(offset).map(|[byte]| byte)
    }

    /// Two bytes, little endian.
    /// # Errors
    /// The piece ends before.
    pub fn le16(&self, offset: usize) -> Result<u16, LayoutError> {
        self.array(offset).map(u16::from_le_bytes)
    }

    /// Four bytes, little endian.
    /// # Errors
    /// The piece ends before.
    pub fn le32(&self, offset: usize) -> Result<u32, LayoutError> {
        self.array(offset).map(u32::from_le_bytes)
    }

    /// Eight bytes, little endian.
    /// # Errors
    /// The piece ends before.
    pub fn le64(&self, offset: usize) -> Result<u64, LayoutError> {
        self.array(offset).map(u64::from_le_bytes)
    }

    /// Two bytes, big endian.
    /// # Errors
    /// The piece ends before.
    pub fn be16(&self, offset: usize) -> Result<u16, LayoutError> {
        self.array(offset).map(u16::from_be_bytes)
    }

    /// Four bytes, big endian.
    /// # Errors
    /// The piece ends before.
    pub fn be32(&self, offset: usize) -> Result<u32, LayoutError> {
        self.array(offset).map(u32::from_be_bytes)
    }

    /// Eight bytes, big endian.
    /// # Errors
    /// The piece ends before.
    pub fn be64(&self, offset: usize) -> Result<u64, LayoutError> {
        self.array(offset).map(u64::from_be_bytes)
    }
}
