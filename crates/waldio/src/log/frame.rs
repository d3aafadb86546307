//! The headers of SQLite's log: bytes to numbers and back, and the checksum that chains them.
//!
//!   log header    | magic 4 | version 4 | page size 4 | sequence 4 | salt 4+4 | checksum 4+4 |   32 bytes
//!   frame header  | page number 4 | pages after commit, or 0: 4    | salt 4+4 | checksum 4+4 |   24 bytes
//!
//! All numbers are big-endian. The checksum runs over the log header, then over each frame's first 8 bytes and its
//! page, and reads 4-byte words in the byte order that the magic's last bit tells.
//! Source: SQLite file format, section 4.1 and 4.2. Arithmetic only: no system call.

/// Size of the log header, in bytes.
pub const LOG_HEADER_BYTES: u64 = 32;
/// Where the generation stands in it: salt 1 and salt 2.
pub const LOG_SALTS_AT: u64 = 16;
/// Size of a frame header, in bytes.
pub const FRAME_HEADER_BYTES: u64 = 24;
/// The magic number with little-endian checksums; its last bit set means big-endian ones.
pub const MAGIC_LITTLE_ENDIAN: u32 = 0x377f_0682;
/// The only version of the log format there is.
pub const VERSION: u32 = 3_007_000;

/// The pair of random numbers that tells one generation of the log (from one reset to the next) from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Salts(pub [u8; 8]);

impl Salts {
    /// Half as long, and nearly as good: where nothing depends on it.
    pub fn folded(self) -> u32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        u32::from_ne_bytes([a, b, c, d]) ^ u32::from_ne_bytes([e, f, g, h])
    }
}

/// A state of the database: the generation of the log, and how many frames it had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Version {
    /// The generation.
    pub salts: Salts,
    /// The number of frames.
    pub frames: u32,
}

/// The running checksum: two 32-bit sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checksum(pub u32, pub u32);

/// The first 32 bytes of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogHeader {
    /// True where checksums read words big-endian.
    pub big_endian_checksum: bool,
    /// Size of a page, in bytes: a power of two from 512 to 65536.
    pub page_bytes: u32,
    /// How often a checkpoint reset this log.
    pub sequence: u32,
    /// This generation's salts.
    pub salts: Salts,
    /// The header's checksum, from which the first frame's goes on.
    pub checksum: Checksum,
}

/// The version that a header states; `None` where its magic, page size or checksum is not right.
pub fn header_version(bytes: &[u8; 32]) -> Option<u32> {
    let word = |index: usize| word_at(bytes, index * 4);
    let (magic, page_bytes) = (word(0), word(2));
    let checksum = Checksum::default().over(&bytes[..24], magic & 1 == 1);
    let valid = magic & !1 == MAGIC_LITTLE_ENDIAN
        && page_bytes.is_power_of_two()
        && (512..=65536).contains(&page_bytes)
        && checksum == Checksum(word(6), word(7));
    valid.then(|| word(1))
}

/// A header with another version, and the checksum that belongs to it.
pub fn with_version(bytes: &[u8; 32], version: u32) -> [u8; 32] {
    let mut bytes = *bytes;
    bytes[4..8].copy_from_slice(&version.to_be_bytes());
    let Checksum(first, second) = Checksum::default().over(&bytes[..24], word_at(&bytes, 0) & 1 == 1);
    bytes[24..28].copy_from_slice(&first.to_be_bytes());
    bytes[28..32].copy_from_slice(&second.to_be_bytes());
    bytes
}

impl LogHeader {
    /// Reads a header; `None` where SQLite would treat the log as empty: wrong magic, version, size or checksum.
    pub fn parse(bytes: &[u8; 32]) -> Option<LogHeader> {
        let word = |index: usize| word_at(bytes, index * 4);
        (header_version(bytes) == Some(VERSION)).then(|| LogHeader {
            big_endian_checksum: word(0) & 1 == 1,
            page_bytes: word(2),
            sequence: word(3),
            salts: salts_at(bytes, 16),
            checksum: Checksum(word(6), word(7)),
        })
    }

    /// Writes a header with its checksum, as SQLite would.
    pub fn encode(big_endian_checksum: bool, page_bytes: u32, sequence: u32, salts: Salts) -> [u8; 32] {
        let mut bytes = [0; 32];
        let magic = MAGIC_LITTLE_ENDIAN | u32::from(big_endian_checksum);
        for (index, word) in [magic, VERSION, page_bytes, sequence].into_iter().enumerate() {
            bytes[index * 4..index * 4 + 4].copy_from_slice(&word.to_be_bytes());
        }
        bytes[16..24].copy_from_slice(&salts.0);
        let Checksum(first, second) = Checksum::default().over(&bytes[..24], big_endian_checksum);
        bytes[24..28].copy_from_slice(&first.to_be_bytes());
        bytes[28..32].copy_from_slice(&second.to_be_bytes());
        bytes
    }
}

/// The name of everything in a log up to a frame. The checksum of a frame covers all in front of it, so two logs, or two
/// moments of one, have the same name at the same place only if they hold the same frames up to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The generation.
    pub salts: Salts,
    /// How many frames it has.
    pub frames: u32,
    /// The checksum in the header of the last of them.
    pub checksum: Checksum,
}

/// The 24 bytes in front of each page of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Number of the page that follows, from 1.
    pub page_number: u32,
    /// Pages of the database after this commit; 0 where the frame does not end a transaction.
    pub commit_pages: u32,
    /// The salts of the log header it belongs to.
    pub salts: Salts,
    /// Checksum of everything up to and including this frame's page.
    pub checksum: Checksum,
}

impl FrameHeader {
    /// Reads a frame header. Whether it is valid only its checksum and salts tell: see `recovery`.
    pub fn parse(bytes: &[u8; 24]) -> FrameHeader {
        FrameHeader {
            page_number: word_at(bytes, 0),
            commit_pages: word_at(bytes, 4),
            salts: salts_at(bytes, 8),
            checksum: Checksum(word_at(bytes, 16), word_at(bytes, 20)),
        }
    }

    /// Writes a frame header.
    pub fn encode(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&self.page_number.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.commit_pages.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.salts.0);
        bytes[16..20].copy_from_slice(&self.checksum.0.to_be_bytes());
        bytes[20..].copy_from_slice(&self.checksum.1.to_be_bytes());
        bytes
    }
}

impl Checksum {
    /// Goes on over `bytes`, whose length must be a multiple of 8.
    #[must_use]
    pub fn over(self, bytes: &[u8], big_endian: bool) -> Checksum {
        assert!(bytes.len().is_multiple_of(8), "checksum over {} bytes", bytes.len());
        let Checksum(mut first, mut second) = self;
        for pair in bytes.as_chunks::<8>().0 {
            let (a, b) = ([pair[0], pair[1], pair[2], pair[3]], [pair[4], pair[5], pair[6], pair[7]]);
            let (a, b) = if big_endian {
                (u32::from_be_bytes(a), u32::from_be_bytes(b))
            } else {
                (u32::from_le_bytes(a), u32::from_le_bytes(b))
            };
            first = first.wrapping_add(a).wrapping_add(second);
            second = second.wrapping_add(b).wrapping_add(first);
        }
        Checksum(first, second)
    }
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn salts_at(bytes: &[u8], at: usize) -> Salts {
    let mut salts = [0; 8];
    salts.copy_from_slice(&bytes[at..at + 8]);
    Salts(salts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_a_round_trip() {
        for big_endian in [false, true] {
            let salts = Salts(*b"saltsalt");
            let header = LogHeader::parse(&LogHeader::encode(big_endian, 4096, 7, salts)).unwrap();
            assert_eq!((header.page_bytes, header.sequence, header.salts), (4096, 7, salts));
            let frame = FrameHeader { page_number: 3, commit_pages: 9, salts, checksum: Checksum(1, 2) };
            assert_eq!(FrameHeader::parse(&frame.encode()), frame);
        }
    }

    #[test]
    fn any_changed_byte_makes_the_header_invalid() {
        let good = LogHeader::encode(false, 4096, 1, Salts([5; 8]));
        for at in 0..32 {
            let mut bad = good;
            bad[at] ^= 1;
            assert_eq!(LogHeader::parse(&bad), None, "byte {at}");
        }
    }

    #[test]
    fn zeros_are_not_a_header() {
        assert_eq!(LogHeader::parse(&[0; 32]), None);
    }
}
