//! All bytes of a file in a hash: the standard library's for values that one build of joj compares with its own (CRC-32 took 20 s of a
//! debug build's own 112 MB), FNV-1a for those that stay in files.

use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read};
use std::path::Path;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 1 << 20;

/// Adds the bytes of a file, and behind them how many there are.
/// # Errors
/// Those of the file; then some of its bytes are in the hash.
pub fn add_file(file: &Path, hasher: &mut impl Hasher) -> io::Result<()> {
    let mut file = File::open(file)?;
    let mut bytes = vec![0; PIECE_BYTES];
    let mut length = 0_u64;
    loop {
        let count = file.read(&mut bytes)?;
        if count == 0 {
            hasher.write(&length.to_le_bytes());
            return Ok(());
        }
        hasher.write(&bytes[..count]);
        length += count as u64;
    }
}
