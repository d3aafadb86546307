//! The checksum of a table's end, which stands in that end: no reader of Parquet is asked before it is known to be whole.
//!
//! ```text
//! row groups | ... joj_footer 0x18 0x08 dddddddd ... | length of the end: 4 | PAR1
//! ```
//!
//! `dddddddd`: 8 hexadecimal digits, the CRC-32 of all bytes from the end's first to the file's last, with `00000000` in their
//! place. 0x18 0x08 is how Thrift's compact protocol begins a text of 8 bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::trace_file::Checksum;

/// Key of the metadata entry that holds the digits.
pub const SEAL_KEY: &str = "joj_footer";
/// What stands there while the checksum is computed.
pub const UNSEALED: &str = "00000000";
/// What is in front of the digits.
const MARK: &[u8] = b"joj_footer\x18\x08";
/// Behind the end: its length and `PAR1`.
const TAIL_BYTES: usize = 8;

/// Writes the checksum into a file that is complete but for it.
/// # Errors
/// Those of the file, and where it has no place for the checksum.
pub fn seal(file: &File) -> io::Result<()> {
    let (begin, end) = read_end(file)?;
    let place = place(&end).ok_or_else(|| io::Error::other("its end has no place for a checksum"))?;
    let digits = format!("{:08x}", Checksum::of(&end));
    file.write_all_at(digits.as_bytes(), begin + place as u64)
}

/// Whether the end of a file is what was written.
/// # Errors
/// Those of the file.
pub fn is_whole(file: &File) -> io::Result<bool> {
    let (_, mut end) = read_end(file)?;
    let Some(place) = place(&end) else { return Ok(false) };
    let digits = end[place..place + UNSEALED.len()].to_vec();
    end[place..place + UNSEALED.len()].copy_from_slice(UNSEALED.as_bytes());
    Ok(digits == format!("{:08x}", Checksum::of(&end)).into_bytes())
}

/// The byte that a file's end begins at, and the end.
fn read_end(file: &File) -> io::Result<(u64, Vec<u8>)> {
    let cut = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let file_bytes = file.metadata()?.len();
    let mut length = [0; 4];
    file.read_exact_at(&mut length, file_bytes.checked_sub(TAIL_BYTES as u64).ok_or_else(cut)?)?;
    let end_bytes = u64::from(u32::from_le_bytes(length)) + TAIL_BYTES as u64;
    let begin = file_bytes.checked_sub(end_bytes).ok_or_else(cut)?;
    let mut end = vec![0; usize::try_from(end_bytes).map_err(io::Error::other)?];
    file.read_exact_at(&mut end, begin)?;
    Ok((begin, end))
}

/// Where the digits are.
fn place(end: &[u8]) -> Option<usize> {
    let found = end.windows(MARK.len()).position(|bytes| bytes == MARK)? + MARK.len();
    (found + UNSEALED.len() + TAIL_BYTES <= end.len()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows, an end with room for the checksum, its length, and the magic.
    fn table() -> Vec<u8> {
        let end = [b"columns ".as_slice(), MARK, UNSEALED.as_bytes(), b" more"].concat();
        let length = u32::try_from(end.len()).expect("a small end").to_le_bytes();
        [b"PAR1 rows".as_slice(), &end, &length, b"PAR1"].concat()
    }

    fn check(path: &std::path::Path, bytes: &[u8]) -> bool {
        std::fs::write(path, bytes).expect("a file");
        is_whole(&File::open(path).expect("the file")).unwrap_or(false)
    }

    #[test]
    fn each_changed_bit_of_the_end_is_found() {
        let path = std::env::temp_dir().join(format!("joj-seal-{}", std::process::id()));
        std::fs::write(&path, table()).expect("a file");
        let file = File::options().read(true).write(true).open(&path).expect("the file");
        seal(&file).expect("room for the checksum");
        let sealed = std::fs::read(&path).expect("the file");
        assert!(check(&path, &sealed) && !check(&path, &table()));
        // Of the magic in front, and of the rows, others know.
        for bit in b"PAR1 rows".len() * 8..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!check(&path, &changed), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(!check(&path, &sealed[..length]), "{length} bytes");
        }
        std::fs::remove_file(&path).expect("the file");
    }
}
