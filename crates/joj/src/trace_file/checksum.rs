//! CRC-32 as zlib and `binascii.crc32` have it: Parquet's own page checksums are not written by the library that we use,
//! and without one a flipped bit would be just another number.

use std::io::Write;

/// Tables for eight bytes at a time: one byte at a time would take a tenth of the time that decoding takes.
const TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut index = 0;
    let mut byte = 0u32;
    while index < 256 {
        let mut value = byte;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 { (value >> 1) ^ 0xedb8_8320 } else { value >> 1 };
            bit += 1;
        }
        tables[0][index] = value;
        index += 1;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut index = 0;
        while index < 256 {
            let before = tables[table - 1][index];
            tables[table][index] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            index += 1;
        }
        table += 1;
    }
    tables
}

/// A checksum that is being computed.
#[derive(Debug, Clone, Copy)]
pub struct Checksum(u32);

impl Checksum {
    /// Of no bytes yet.
    pub const START: Self = Self(u32::MAX);

    /// The checksum of some bytes.
    pub fn of(bytes: &[u8]) -> u32 {
        let mut checksum = Self::START;
        checksum.add(bytes);
        checksum.value()
    }

    /// Takes further bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let entry = |table: usize, byte: u32| TABLES[table][(byte & 0xff) as usize];
        let mut value = self.0;
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            let low = value ^ u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            let high = u32::from_le_bytes([word[4], word[5], word[6], word[7]]);
            value = entry(7, low)
                ^ entry(6, low >> 8)
                ^ entry(5, low >> 16)
                ^ entry(4, low >> 24)
                ^ entry(3, high)
                ^ entry(2, high >> 8)
                ^ entry(1, high >> 16)
                ^ entry(0, high >> 24);
        }
        for byte in rest {
            value = (value >> 8) ^ entry(0, value ^ u32::from(*byte));
        }
        self.0 = value;
    }

    /// What zlib would say.
    pub fn value(self) -> u32 {
        !self.0
    }
}

/// A writer that keeps the checksum of what went through it since it was last asked.
#[derive(Debug)]
pub struct Checked<W> {
    inner: W,
    checksum: Checksum,
}

impl<W: Write> Checked<W> {
    /// Keeps the checksums of what goes to `inner`.
    pub fn new(inner: W) -> Self {
        Self { inner, checksum: Checksum::START }
    }

    /// The checksum of the bytes since the last call.
    pub fn take(&mut self) -> u32 {
        std::mem::replace(&mut self.checksum, Checksum::START).value()
    }
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.checksum.add(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_zlibs_in_whatever_pieces_it_is_taken() {
        let text = b"The quick brown fox jumps over the lazy dog";
        assert_eq!(
            (Checksum::of(b""), Checksum::of(b"123456789"), Checksum::of(text)),
            (0, 0xcbf4_3926, 0x414f_a339)
        );
        for cut in 0..text.len() {
            let mut writer = Checked::new(Vec::new());
            writer.write_all(&text[..cut]).unwrap();
            writer.write_all(&text[cut..]).unwrap();
            assert_eq!((writer.take(), writer.take()), (0x414f_a339, 0), "cut at {cut}");
        }
    }
}
