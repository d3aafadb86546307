//! What a simulated medium holds: file contents by name, sparse and cheap to copy.
//!
//! A block that was never written, or holds zeros only, is not stored, so two images with the same bytes are equal
//! and have the same fingerprint, whatever was written on the way there. Blocks are shared between copies.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Size of a stored block, and the coarse unit in which writes may be torn, in bytes.
pub const BLOCK_BYTES: usize = 4096;
/// The unit in which a device writes at least: a torn write is torn at its borders, in bytes.
pub const SECTOR_BYTES: usize = 512;

const BLOCK: u64 = BLOCK_BYTES as u64;
const SECTOR: u64 = SECTOR_BYTES as u64;

/// The bytes of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Content {
    size_bytes: u64,
    blocks: BTreeMap<u64, Arc<Block>>,
}

/// A block and, once someone asked, its fingerprint: most blocks of a crash state are those of the one before it.
#[derive(Debug)]
struct Block {
    bytes: [u8; BLOCK_BYTES],
    fingerprint: OnceLock<u64>,
}

impl PartialEq for Block {
    fn eq(&self, other: &Block) -> bool {
        self.bytes == other.bytes
    }
}

impl Eq for Block {}

impl Block {
    fn fingerprint(&self) -> u64 {
        let (words, _) = self.bytes.as_chunks::<8>();
        let all = || words.iter().fold(0, |state, word| mix(state, u64::from_le_bytes(*word)));
        *self.fingerprint.get_or_init(all)
    }
}

/// A simulated file is held in memory, so its offsets fit.
pub(crate) fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).expect("a simulated file fits in memory")
}

impl Content {
    /// A file that holds `data`.
    pub fn of(data: &[u8]) -> Self {
        let mut content = Content::default();
        content.write(data, 0);
        content
    }

    /// Size in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Reads into `into` at `offset`; returns how many bytes lay before the end of the file.
    pub fn read(&self, into: &mut [u8], offset: u64) -> usize {
        let available = in_memory(self.size_bytes.saturating_sub(offset)).min(into.len());
        self.read_raw(&mut into[..available], offset);
        available
    }

    /// All bytes, for tests and for real files.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; in_memory(self.size_bytes)];
        self.read_raw(&mut bytes, 0);
        bytes
    }

    /// Writes `data` at `offset`, growing the file where needed.
    pub fn write(&mut self, data: &[u8], offset: u64) {
        self.write_raw(data, offset);
        self.size_bytes = self.size_bytes.max(offset + data.len() as u64);
    }

    /// Cuts the file to `size_bytes`, or grows it with zeros.
    pub fn set_size(&mut self, size_bytes: u64) {
        self.cut(size_bytes);
        self.size_bytes = size_bytes;
    }

    /// The sector `index`, past the end of the file too.
    pub(crate) fn sector(&self, index: u64) -> [u8; SECTOR_BYTES] {
        let mut bytes = [0; SECTOR_BYTES];
        self.read_raw(&mut bytes, index * SECTOR);
        bytes
    }

    /// Stores bytes without moving the end of the file: data may reach the medium before the size does.
    pub(crate) fn write_raw(&mut self, data: &[u8], offset: u64) {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let inside = in_memory(at % BLOCK);
            let count = (BLOCK_BYTES - inside).min(data.len() - done);
            let mut block = self.blocks.get(&(at / BLOCK)).map_or([0; BLOCK_BYTES], |shared| shared.bytes);
            block[inside..inside + count].copy_from_slice(&data[done..done + count]);
            self.put_block(at / BLOCK, block);
            done += count;
        }
    }

    /// Makes every byte from `offset` on zero and leaves the size alone.
    pub(crate) fn cut(&mut self, offset: u64) {
        let inside = in_memory(offset % BLOCK);
        let first_whole = offset.div_ceil(BLOCK);
        self.blocks.split_off(&first_whole);
        let partial = if inside == 0 { None } else { self.blocks.get(&(offset / BLOCK)) };
        if let Some(shared) = partial {
            let mut block = shared.bytes;
            block[inside..].fill(0);
            self.put_block(offset / BLOCK, block);
        }
    }

    /// Moves the end of the file and leaves every byte alone.
    pub(crate) fn set_size_raw(&mut self, size_bytes: u64) {
        self.size_bytes = size_bytes;
    }

    fn put_block(&mut self, index: u64, block: [u8; BLOCK_BYTES]) {
        if block.iter().all(|byte| *byte == 0) {
            self.blocks.remove(&index);
        } else {
            self.blocks.insert(index, Arc::new(Block { bytes: block, fingerprint: OnceLock::new() }));
        }
    }

    fn read_raw(&self, into: &mut [u8], offset: u64) {
        let mut done = 0;
        while done < into.len() {
            let at = offset + done as u64;
            let inside = in_memory(at % BLOCK);
            let count = (BLOCK_BYTES - inside).min(into.len() - done);
            match self.blocks.get(&(at / BLOCK)) {
                Some(block) => into[done..done + count].copy_from_slice(&block.bytes[inside..inside + count]),
                None => into[done..done + count].fill(0),
            }
            done += count;
        }
    }

    fn fingerprint(&self, mut state: u64) -> u64 {
        state = mix(state, self.size_bytes);
        for (index, block) in &self.blocks {
            state = mix(mix(state, *index), block.fingerprint());
        }
        state
    }
}

/// One step of a hash by folded multiplication: fast, and no adversary chooses the input.
pub(crate) fn mix(state: u64, word: u64) -> u64 {
    let product = u128::from(state ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(0xd6e8_feb8_6659_fd93_u64);
    let low = u64::try_from(product & u128::from(u64::MAX)).expect("masked");
    let high = u64::try_from(product >> 64).expect("shifted");
    low ^ high.rotate_left(17) ^ state.rotate_left(29)
}

/// All files of a medium: what a machine finds when it starts again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Image {
    /// Contents by full path.
    pub files: BTreeMap<PathBuf, Content>,
}

impl Image {
    /// A number that two images share when they hold the same names and bytes (64 bits: chance collisions only).
    pub fn fingerprint(&self) -> u64 {
        let mut state = mix(0, self.files.len() as u64);
        for (path, content) in &self.files {
            for byte in path.as_os_str().as_encoded_bytes() {
                state = mix(state, u64::from(*byte));
            }
            state = content.fingerprint(state);
        }
        state
    }

    /// Writes every file under its last name into `dir`, for a program that knows real files only.
    /// # Errors
    /// As the file system reports; some of the files may be there.
    pub fn write_into(&self, dir: &Path) -> io::Result<()> {
        for (path, content) in &self.files {
            let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
            std::fs::write(dir.join(name), content.bytes())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_reads_back_what_was_written_across_blocks() {
        let mut content = Content::default();
        content.write(&[7; 5000], 3000);
        assert_eq!(content.size_bytes(), 8000);
        let mut expected = vec![0; 3000];
        expected.extend([7; 5000]);
        assert_eq!(content.bytes(), expected);
        assert_eq!(content.read(&mut [0; 100], 7990), 10, "a read ends at the end of the file");
        assert_eq!(content.read(&mut [0; 100], 9000), 0);
    }

    #[test]
    fn truncated_bytes_are_zero_when_the_file_grows_again() {
        let mut content = Content::of(&[7; 9000]);
        content.set_size(4100);
        content.set_size(9000);
        let mut expected = vec![7; 4100];
        expected.resize(9000, 0);
        assert_eq!(content.bytes(), expected);
    }

    #[test]
    fn fingerprint_depends_on_bytes_and_names_not_on_history() {
        let image = |name: &str, content: Content| Image { files: BTreeMap::from([(name.into(), content)]) };
        let mut detour = Content::of(&[1; 4096]);
        detour.write(&[0; 4096], 0);
        detour.write(&[9; 10], 50);
        let mut direct = Content::default();
        direct.write(&[9; 10], 50);
        direct.set_size(4096);
        let print = image("/a", detour).fingerprint();
        assert_eq!(print, image("/a", direct.clone()).fingerprint());
        assert_ne!(print, image("/b", direct.clone()).fingerprint());
        direct.set_size(4095);
        assert_ne!(print, image("/a", direct).fingerprint());
    }
}
