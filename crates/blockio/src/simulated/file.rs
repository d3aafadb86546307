//! One open file of a simulated disk.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::disk::{DiskFile, Facts, FileId, Fill};
use crate::simulated::fault::{Counted, Fault, FaultKind};
use crate::simulated::image::in_memory;
use crate::simulated::log::{Inode, Op, Tick, WriteFlags};
use crate::simulated::state::{Node, Shared, State, facts_of};

/// EBADF: what an operation on a file of a machine that was switched off gets.
const STALE: i32 = 9;
const EIO: i32 = 5;

/// An open file; its name may be gone.
pub struct SimFile {
    disk: Shared,
    inode: Inode,
    generation: u64,
    read_only: bool,
    /// How many failed syncs of the file this opening was told of, or came after: Linux tells each once (errseq).
    told: AtomicU64,
}

impl fmt::Debug for SimFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "SimFile(inode {})", self.inode)
    }
}

impl SimFile {
    pub(crate) fn new(disk: Shared, inode: Inode, generation: u64, read_only: bool, failures: u64) -> Self {
        SimFile { disk, inode, generation, read_only, told: AtomicU64::new(failures) }
    }

    /// A sync ends, with this fault or none: what it returns, another opening's failure included.
    fn end_sync(&self, state: &mut State, fault: Option<Fault>) -> Option<io::Error> {
        let node = self.node(state);
        node.failures += u64::from(fault.is_some_and(|fault| fault.kind == FaultKind::Io));
        let failures = node.failures;
        let untold = self.told.swap(failures, SeqCst) < failures;
        fault.map(|fault| fault.error()).or_else(|| untold.then(|| io::Error::from_raw_os_error(EIO)))
    }

    /// Which file this is, whatever its name.
    pub fn inode(&self) -> Inode {
        self.inode
    }

    /// Times the beginning of an operation and counts it.
    fn begin(&self, counted: &[Counted]) -> io::Result<(Tick, Option<Fault>)> {
        let mut state = self.disk.lock();
        if state.generation != self.generation {
            return Err(io::Error::from_raw_os_error(STALE));
        }
        if self.read_only && counted.contains(&Counted::Changes) {
            return Err(io::Error::from_raw_os_error(STALE));
        }
        let mut fault = None;
        for kind in counted {
            fault = fault.or(state.count_one(*kind));
        }
        Ok((state.tick(), fault))
    }

    fn write(&self, data: &[u8], offset: u64, flags: WriteFlags) -> io::Result<()> {
        if flags != WriteFlags::Cached {
            self.check_alignment(data, offset)?;
        }
        let counted: &[Counted] = match flags {
            WriteFlags::Durable => &[Counted::Changes, Counted::Flushes],
            _ => &[Counted::Changes],
        };
        let (begin, fault) = self.begin(counted)?;
        let mut state = self.disk.lock();
        let fault = fault.or_else(|| state.full_disk(self.inode, offset + data.len() as u64));
        let mut kept_bytes = fault.map_or(data.len(), |fault| fault.kept_bytes(data.len()));
        if fault.is_some() {
            let room =
                in_memory(state.size_bytes_max(self.inode).saturating_sub(offset).min(data.len() as u64));
            kept_bytes = kept_bytes.min(room);
        }
        let kept = &data[..kept_bytes];
        if !kept.is_empty() {
            self.node(&mut state).content.write(kept, offset);
        }
        let error = match flags {
            WriteFlags::Durable => self.end_sync(&mut state, fault),
            _ => fault.map(|fault| fault.error()),
        };
        let op = Op::Write { inode: self.inode, offset, data: kept.into(), flags };
        state.finish(begin, op, error.is_some());
        error.map_or(Ok(()), Err)
    }

    fn check_alignment(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let align = self.disk.lock().options.direct_align_bytes;
        if align == 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let align = u64::from(align);
        let address = data.as_ptr().addr() as u64;
        let aligned = [address, offset, data.len() as u64].iter().all(|value| value % align == 0);
        if aligned { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    fn node<'state>(&self, state: &'state mut State) -> &'state mut Node {
        state.nodes.get_mut(&self.inode).expect("an open file has its node for the life of the disk")
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let (_, fault) = self.begin(&[Counted::Reads])?;
        if let Some(fault) = fault {
            return Err(fault.error());
        }
        Ok(self.node(&mut self.disk.lock()).content.read(into, offset))
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write(data, offset, WriteFlags::Cached)
    }

    fn write_direct(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write(data, offset, WriteFlags::Direct)
    }

    fn write_durable(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write(data, offset, WriteFlags::Durable)
    }

    fn extend(&self, end: u64, fill: Fill) -> io::Result<u64> {
        let size_at_begin = self.size()?;
        let (begin, fault) = self.begin(&[Counted::Changes])?;
        let hook = self.disk.lock().extend_hook.clone();
        if let Some(hook) = hook {
            hook();
        }
        let mut state = self.disk.lock();
        let current = state.nodes[&self.inode].content.size_bytes();
        let fault = fault.or_else(|| state.full_disk(self.inode, end));
        // A fill that fails may have made the file longer by a part.
        let growth = in_memory(end.saturating_sub(current));
        let kept = fault.map_or(growth, |fault| fault.kept_bytes(growth)) as u64;
        let size_bytes = (current + kept).min(state.size_bytes_max(self.inode).max(current));
        let mut overwritten = None;
        if fill == Fill::WriteZeroes && current > size_at_begin && end > size_at_begin {
            overwritten = Some((size_at_begin, current.min(end)));
        }
        let content = &mut self.node(&mut state).content;
        if let Some((from, to)) = overwritten {
            content.write(&vec![0; in_memory(to - from)], from);
        }
        content.set_size(size_bytes);
        state.finish(begin, Op::Extend { inode: self.inode, size_bytes, overwritten }, fault.is_some());
        fault.map_or(Ok(size_bytes), |fault| Err(fault.error()))
    }

    fn sync_data(&self) -> io::Result<()> {
        let (begin, fault) = self.begin(&[Counted::Changes, Counted::Flushes])?;
        let hook = self.disk.lock().sync_hook.clone();
        if let Some(hook) = hook {
            hook();
        }
        let mut state = self.disk.lock();
        let error = self.end_sync(&mut state, fault);
        state.finish(begin, Op::SyncData { inode: self.inode }, error.is_some());
        error.map_or(Ok(()), Err)
    }

    fn sync_filesystem(&self) -> io::Result<()> {
        let mut state = self.disk.lock();
        let others: Vec<Inode> = state.nodes.keys().copied().filter(|inode| *inode != self.inode).collect();
        for inode in others {
            let begin = state.tick();
            state.finish(begin, Op::SyncData { inode }, false);
        }
        drop(state);
        self.sync_data()
    }

    fn identity(&self) -> io::Result<FileId> {
        Ok(FileId { device: self.generation, inode: self.inode })
    }

    fn size(&self) -> io::Result<u64> {
        let mut state = self.disk.lock();
        if state.generation != self.generation {
            return Err(io::Error::from_raw_os_error(STALE));
        }
        Ok(self.node(&mut state).content.size_bytes())
    }

    fn truncate(&self, size_bytes: u64) -> io::Result<()> {
        let (begin, fault) = self.begin(&[Counted::Changes])?;
        let mut state = self.disk.lock();
        if let Some(fault) = fault.or_else(|| state.full_disk(self.inode, size_bytes)) {
            return Err(fault.error());
        }
        self.node(&mut state).content.set_size(size_bytes);
        state.finish(begin, Op::Truncate { inode: self.inode, size_bytes }, false);
        Ok(())
    }

    fn read_ahead(&self, _offset: u64, _len_bytes: u64) {}

    fn free_bytes(&self) -> u64 {
        self.disk.lock().options.free_bytes
    }

    fn facts(&self) -> Facts {
        facts_of(&self.disk.lock().options)
    }
}
