//! A piece of a disk whose content is not trusted.

use super::ReadAt;

/// Reading once more may help where the kernel was just changing what it keeps of a mounted filesystem.
const READS_MAX: u32 = 5;

/// Bytes with their place and name, for errors.
#[derive(Debug)]
pub struct Piece {
    bytes: Vec<u8>,
    at: u64,
    what: &'static str,
}

impl Piece {
    /// Reads `bytes` bytes from byte `at` on.
    /// # Errors
    /// They cannot be read, or not all of them.
    pub fn read(read: &mut ReadAt<'_>, at: u64, bytes: usize, what: &'static str) -> Result<Self, String> {
        let found = read(at, bytes).map_err(|error| format!("{what} at byte {at}: {error}"))?;
        if found.len() != bytes {
            let text = format!("{what} at byte {at}: cut off, {} of {bytes} bytes are there", found.len());
            return Err(text);
        }
        Ok(Self { bytes: found, at, what })
    }

    /// Reads until `check` accepts the bytes.
    /// # Errors
    /// As [`Piece::read`], and the last answer of `check`.
    pub fn read_checked(
        read: &mut ReadAt<'_>,
        (at, bytes): (u64, usize),
        what: &'static str,
        check: impl Fn(&Self) -> Result<(), String>,
    ) -> Result<Self, String> {
        let mut answer = Err(String::new());
        for _ in 0..READS_MAX {
            let piece = Self::read(read, at, bytes, what)?;
            match check(&piece) {
                Ok(()) => return Ok(piece),
                Err(error) => answer = Err(error),
            }
        }
        answer
    }

    /// All of them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its place and what is wrong there.
    pub fn wrong<T>(&self, problem: impl std::fmt::Display) -> Result<T, String> {
        Err(format!("{} at byte {}: {problem}", self.what, self.at))
    }

    /// Error unless `good`.
    /// # Errors
    /// `problem`, with the place.
    pub fn need(&self, good: bool, problem: impl std::fmt::Display) -> Result<(), String> {
        if good { Ok(()) } else { self.wrong(problem) }
    }

    /// `N` bytes from `offset` on.
    /// # Errors
    /// The piece ends before.
    pub fn array<const N: usize>(&self, offset: usize) -> Result<[u8; N], String> {
        let found = offset.checked_add(N).and_then(|end| self.bytes.get(offset..end));
        match found.and_then(|found| found.try_into().ok()) {
            Some(array) => Ok(array),
            None => self.wrong(format_args!("it ends before byte {offset} of it")),
        }
    }

    /// One byte.
    /// # Errors
    /// The piece ends before.
    pub fn byte(&self, offset: usize) -> Result<u8, String> {
        self.array::<1>(offset).map(|[byte]| byte)
    }

    /// Two bytes, little endian.
    /// # Errors
    /// The piece ends before.
    pub fn le16(&self, offset: usize) -> Result<u16, String> {
        self.array(offset).map(u16::from_le_bytes)
    }

    /// Four bytes, little endian.
    /// # Errors
    /// The piece ends before.
    pub fn le32(&self, offset: usize) -> Result<u32, String> {
        self.array(offset).map(u32::from_le_bytes)
    }

    /// Eight bytes, little endian.
    /// # Errors
    /// The piece ends before.
    pub fn le64(&self, offset: usize) -> Result<u64, String> {
        self.array(offset).map(u64::from_le_bytes)
    }

    /// Two bytes, big endian.
    /// # Errors
    /// The piece ends before.
    pub fn be16(&self, offset: usize) -> Result<u16, String> {
        self.array(offset).map(u16::from_be_bytes)
    }

    /// Four bytes, big endian.
    /// # Errors
    /// The piece ends before.
    pub fn be32(&self, offset: usize) -> Result<u32, String> {
        self.array(offset).map(u32::from_be_bytes)
    }

    /// Eight bytes, big endian.
    /// # Errors
    /// The piece ends before.
    pub fn be64(&self, offset: usize) -> Result<u64, String> {
        self.array(offset).map(u64::from_be_bytes)
    }
}
