//! A device whose flushes take a fixed time at least, one after another, as arithmetic on a word of shared memory.
//!
//!   flush A   |arrives, begins ......... ends|
//!   flush B        |arrives .... waits ......|begins ......... ends|
//!
//! The word holds when the device will be free. A flush takes the next free span in the order of arrival, whichever
//! thread or process it comes from, and moves the word to that span's end. Nobody holds a lock, so nobody who is
//! killed keeps one. Flushes that wait are not merged into one, as the kernel's block layer does.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::MemfdFlags;
use rustix::mm::{MapFlags, ProtFlags};

/// Size of the shared memory, of which the first eight bytes are used.
const MAP_BYTES: usize = 4096;

/// When a flush has the device for itself, by [`crate::machine::proc::clock::shared_ns`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub from_ns: u64,
    /// Its end; the flush returns then or later.
    pub to_ns: u64,
}

/// A device for several processes whose flushes take a set time, one after the other.
#[derive(Debug)]
pub struct SlowDevice {
    free_at_ns: *const AtomicU64,
    flush_ns: u64,
    /// The path under which other processes find it, as long as this lives.
    path: String,
    _memory: File,
}

// SAFETY: the pointer is to an atomic in memory that stays mapped for as long as the value lives.
unsafe impl Send for SlowDevice {}
// SAFETY: as above; an atomic may be used from any thread.
unsafe impl Sync for SlowDevice {}

impl SlowDevice {
    /// A new device, free at once, whose flushes take `flush_ns`.
    /// # Errors
    /// As memfd_create(2) and mmap(2).
    pub fn create(flush_ns: u64) -> io::Result<SlowDevice> {
        let memory = File::from(rustix::fs::memfd_create("joj-slow-device", MemfdFlags::CLOEXEC)?);
        memory.set_len(MAP_BYTES as u64)?;
        // Readable by this user's processes, unlike a number that only children inherit.
        let path = format!("/proc/{}/fd/{}", std::process::id(), memory.as_raw_fd());
        SlowDevice::of(memory, flush_ns, path)
    }

    /// The device that another process created and named.
    /// # Errors
    /// As open(2) and mmap(2).
    pub fn open(path: &str, flush_ns: u64) -> io::Result<SlowDevice> {
        let memory = OpenOptions::new().read(true).write(true).open(path)?;
        SlowDevice::of(memory, flush_ns, path.to_owned())
    }

    fn of(memory: File, flush_ns: u64, path: String) -> io::Result<SlowDevice> {
        let length = usize::try_from(memory.metadata()?.len()).unwrap_or(0);
        if length != MAP_BYTES {
            return Err(io::Error::other(format!("{path} is no memory of a slow device")));
        }
        // SAFETY: a new mapping where the kernel likes; the file is as long as the mapping and never cut.
        let start = unsafe {
            rustix::mm::mmap(
                ptr::null_mut(),
                MAP_BYTES,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED,
                &memory,
                0,
            )
        }?;
        Ok(SlowDevice { free_at_ns: start.cast(), flush_ns, path, _memory: memory })
    }

    /// Where other processes find it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The span of a flush that arrives at `now_ns`.
    pub fn reserve(&self, now_ns: u64) -> Span {
        // SAFETY: mapped, aligned to a page, and only ever used as this atomic.
        let free_at_ns = unsafe { &*self.free_at_ns };
        let mut free_ns = free_at_ns.load(Ordering::SeqCst);
        loop {
            let from_ns = free_ns.max(now_ns);
            let to_ns = from_ns + self.flush_ns;
            match free_at_ns.compare_exchange(free_ns, to_ns, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => return Span { from_ns, to_ns },
                Err(newer_ns) => free_ns = newer_ns,
            }
        }
    }
}

impl Drop for SlowDevice {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this length, and not used afterwards.
        let _ = unsafe { rustix::mm::munmap(self.free_at_ns.cast_mut().cast(), MAP_BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_take_turns_whoever_sends_them() {
        let device = SlowDevice::create(100).unwrap();
        let other = SlowDevice::open(device.path(), 100).unwrap();
        assert_eq!(device.reserve(1_000), Span { from_ns: 1_000, to_ns: 1_100 });
        assert_eq!(other.reserve(1_010), Span { from_ns: 1_100, to_ns: 1_200 }, "it waits its turn");
        assert_eq!(device.reserve(1_020), Span { from_ns: 1_200, to_ns: 1_300 }, "nothing is merged");
        assert_eq!(
            other.reserve(2_000),
            Span { from_ns: 2_000, to_ns: 2_100 },
            "an idle device begins at once"
        );
    }

    #[test]
    fn no_span_is_given_twice() {
        let device = SlowDevice::create(10).unwrap();
        let spans = |_| (0..500).map(|_| device.reserve(0).from_ns).collect::<Vec<u64>>();
        let mut all: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|index| scope.spawn(move || spans(index))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        all.sort_unstable();
        let wrong = (0..).zip(&all).find(|(index, from_ns)| **from_ns != index * 10);
        assert_eq!((all.len(), wrong), (2000, None), "(turn, where it begins)");
    }
}
