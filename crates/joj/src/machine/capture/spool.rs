//! Records that wait for their analysis: first in memory, then in a temporary file, oldest first.
//!
//! ```text
//! append -> open block -> queue of blocks: memory | memory | .. | slot 0 of the file | slot 1 | ..  -> take
//! ```
//!
//! Invariants: 1. Blocks leave in the order in which they came. 2. In memory are [`MEMORY_BLOCKS`] at most, and what the file
//! refused: [`Spool::is_over`] is true then, until the caller took as much. 3. Nothing is dropped.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::machine::capture::error::SpoolError;
use crate::machine::files::unnamed_file;

/// Bytes of a block, and of its slot in the file.
const BLOCK_BYTES: usize = 1 << 20;
/// 64 MiB: what SQLite's commits, 7,000 a second, leave in six seconds.
const MEMORY_BLOCKS: usize = 64;
/// A record's length stands before it.
const LENGTH_BYTES: usize = 4;

/// The queue.
#[derive(Debug)]
pub struct Spool {
    blocks: VecDeque<Block>,
    open: Vec<u8>,
    in_memory: usize,
    file: Option<File>,
    directory: PathBuf,
    free_slots: Vec<u32>,
    slots: u32,
    slots_max: u32,
    records: u64,
    problem: Option<String>,
    has_said: bool,
}

#[derive(Debug)]
enum Block {
    Memory(Vec<u8>),
    Slot { number: u32, bytes: usize },
}

impl Spool {
    /// An empty one, whose file in `directory` takes `file_bytes_max` at most. The file is made when memory is full.
    pub fn new(directory: &Path, file_bytes_max: u64) -> Self {
        let slots_max = u32::try_from(file_bytes_max / BLOCK_BYTES as u64).unwrap_or(u32::MAX);
        Self {
            blocks: VecDeque::new(),
            open: Vec::new(),
            in_memory: 0,
            file: None,
            directory: directory.to_owned(),
            free_slots: Vec::new(),
            slots: 0,
            slots_max,
            records: 0,
            problem: None,
            has_said: slots_max == 0,
        }
    }

    /// Takes a record.
    pub fn append(&mut self, record: &[u8]) {
        if self.open.len() + LENGTH_BYTES + record.len() > BLOCK_BYTES {
            self.close();
        }
        if self.open.capacity() == 0 {
            self.open.reserve_exact(BLOCK_BYTES);
        }
        let length = u32::try_from(record.len()).unwrap_or(u32::MAX);
        assert!(record.len() + LENGTH_BYTES <= BLOCK_BYTES, "a record of {length} bytes fits no block");
        self.open.extend_from_slice(&length.to_ne_bytes());
        self.open.extend_from_slice(record);
        self.records += 1;
    }

    /// How many records were appended since the start.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// True while more waits than memory and file shall hold: the oldest block is to be taken.
    pub fn is_over(&self) -> bool {
        self.in_memory > MEMORY_BLOCKS
    }

    /// The directory of the file, once there is one.
    pub fn spilled_to(&self) -> Option<&Path> {
        self.file.as_ref().map(|_| self.directory.as_path())
    }

    /// Why the file takes no more, said once.
    pub fn problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    /// How many blocks wait.
    pub fn waiting(&self) -> usize {
        self.blocks.len() + usize::from(!self.open.is_empty())
    }

    /// The oldest block, for [`records`]; `None` when nothing waits.
    /// # Errors
    /// The file cannot be read.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, SpoolError> {
        match self.blocks.pop_front() {
            None if self.open.is_empty() => Ok(None),
            None => Ok(Some(std::mem::take(&mut self.open))),
            Some(Block::Memory(block)) => {
                self.in_memory -= 1;
                Ok(Some(block))
            }
            Some(Block::Slot { number, bytes }) => {
                let mut block = vec![0; bytes];
                let file = self.file.as_ref().ok_or(SpoolError::NoFile)?;
                file.read_exact_at(&mut block, place(number))
                    .map_err(|error| SpoolError::Unreadable { directory: self.directory.clone(), error })?;
                self.free_slots.push(number);
                Ok(Some(block))
            }
        }
    }

    fn close(&mut self) {
        let block = std::mem::take(&mut self.open);
        if self.in_memory >= MEMORY_BLOCKS
            && let Some(number) = self.write(&block)
        {
            self.blocks.push_back(Block::Slot { number, bytes: block.len() });
            self.open = block;
            self.open.clear();
            return;
        }
        self.in_memory += 1;
        self.blocks.push_back(Block::Memory(block));
    }

    /// Writes a block to the file; its slot, or `None` where there is no room, and `problem` says why.
    fn write(&mut self, block: &[u8]) -> Option<u32> {
        let number = match self.free_slots.pop() {
            Some(number) => number,
            None if self.slots < self.slots_max => self.slots,
            None => {
                self.fill(self.slots_max, "it has all that --spool allows");
                return None;
            }
        };
        let written = self.opened().and_then(|file| file.write_all_at(block, place(number)));
        if let Err(error) = written {
            self.fill(self.slots, &error.to_string());
            return None;
        }
        self.slots = self.slots.max(number + 1);
        Some(number)
    }

    /// No slot beyond these any more.
    fn fill(&mut self, slots_max: u32, reason: &str) {
        // Afterwards it is full at each block.
        if !std::mem::replace(&mut self.has_said, true) {
            let directory = self.directory.display();
            self.problem = Some(format!(
                "what was captured does not fit into joj's temporary file in {directory}: {reason}. From here on the \
                 oldest is analysed meanwhile, which takes processor time from what is traced; --spool and TMPDIR \
                 give more room"
            ));
        }
        self.slots_max = slots_max.min(self.slots);
    }

    fn opened(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            self.file = Some(unnamed_file::create(&self.directory, "joj-spool")?);
        }
        self.file.as_ref().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

/// Where a slot begins in the file.
fn place(slot: u32) -> u64 {
    u64::from(slot) * BLOCK_BYTES as u64
}

/// The records of a block.
pub fn records(block: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = block;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first_chunk::<LENGTH_BYTES>()?;
        let (record, behind) = behind.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
        rest = behind;
        Some(record)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half a block, so that two fill one.
    const HALF: usize = BLOCK_BYTES / 2 - LENGTH_BYTES;

    fn record(number: u8) -> Vec<u8> {
        vec![number; HALF]
    }

    fn take_all(spool: &mut Spool) -> Vec<u8> {
        let mut found = Vec::new();
        while let Some(block) = spool.take().unwrap() {
            found.extend(records(&block).map(|record| record[0]));
        }
        found
    }

    #[test]
    fn records_leave_as_they_came_through_memory_and_file() {
        let mut spool = Spool::new(&std::env::temp_dir(), 64 << 20);
        for number in 0..180 {
            spool.append(&record(number));
            assert!(!spool.is_over());
        }
        assert_eq!(spool.spilled_to(), Some(std::env::temp_dir().as_path()));
        assert_eq!((spool.records(), spool.waiting(), spool.problem()), (180, 90, None));
        assert_eq!(take_all(&mut spool), (0..180).collect::<Vec<u8>>());
        spool.append(&[7; 3]);
        assert_eq!(spool.take().unwrap().map(|block| records(&block).count()), Some(1), "in use again");
        assert_eq!(spool.take().unwrap(), None);
    }

    #[test]
    fn a_full_spool_says_so_once_and_loses_nothing() {
        let mut spool = Spool::new(&std::env::temp_dir(), 8 << 20);
        let (mut found, mut said) = (Vec::new(), 0);
        for number in 0..=250 {
            spool.append(&record(number));
            said += usize::from(spool.problem().is_some());
            while spool.is_over() {
                let block = spool.take().unwrap().unwrap();
                found.extend(records(&block).map(|record| record[0]));
            }
            assert!(spool.waiting() <= MEMORY_BLOCKS + 9);
        }
        found.extend(take_all(&mut spool));
        assert_eq!((found, said), ((0..=250).collect::<Vec<u8>>(), 1));
    }

    #[test]
    fn without_a_directory_the_oldest_is_to_be_taken() {
        let mut spool = Spool::new(Path::new("/no/such/directory"), 1 << 30);
        for number in 0..=131 {
            spool.append(&record(number));
        }
        assert!(spool.is_over() && spool.spilled_to().is_none());
        assert!(spool.problem().unwrap().contains("/no/such/directory"));
        assert_eq!(take_all(&mut spool), (0..=131).collect::<Vec<u8>>());
    }
}
