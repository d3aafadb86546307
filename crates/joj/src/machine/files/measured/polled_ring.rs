//! Records read and written with io_uring, their completion polled for (IORING_SETUP_IOPOLL), one at a time.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;

use io_uring::squeue::Entry;
use io_uring::{IoUring, opcode, types};

/// Why nothing can be polled for on this disk: older kernels would take an interrupt there and not say so.
/// # Errors
/// The reason.
pub fn check_polling(disk: Option<&str>) -> Result<(), String> {
    let disk = disk.ok_or("there is no block device whose completions could be polled for")?;
    match fs::read_to_string(format!("/sys/block/{disk}/queue/io_poll")) {
        Ok(flag) if flag.trim() == "1" => Ok(()),
        Ok(_) => Err(format!(
            "{disk} has no polling (queue/io_poll is 0); its driver may have queues for it (nvme.poll_queues, \
             virtio_blk.poll_queues)"
        )),
        Err(error) => Err(format!("whether {disk} has polling cannot be read: {error}")),
    }
}

/// A ring for one record at a time.
pub(super) struct PolledRing {
    ring: IoUring,
}

impl std::fmt::Debug for PolledRing {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("PolledRing").finish_non_exhaustive()
    }
}

impl PolledRing {
    /// Makes a ring.
    /// # Errors
    /// As io_uring_setup(2): EPERM where /proc/sys/kernel/io_uring_disabled says so.
    pub(super) fn new() -> io::Result<PolledRing> {
        Ok(PolledRing { ring: IoUring::builder().setup_iopoll().build(1)? })
    }

    /// Reads the record at `offset_bytes` of a file that is open with O_DIRECT.
    /// # Errors
    /// As preadv2(2); `EOPNOTSUPP` where the file system does not poll; `UnexpectedEof` for a part of it.
    pub(super) fn read(&mut self, file: &File, record: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        let bytes = u32::try_from(record.len()).map_err(io::Error::other)?;
        let read = opcode::Read::new(types::Fd(file.as_raw_fd()), record.as_mut_ptr(), bytes);
        // `record` is borrowed until the request is complete.
        self.complete(&read.offset(offset_bytes).build(), bytes, io::ErrorKind::UnexpectedEof)
    }

    /// Writes it there.
    /// # Errors
    /// As pwritev2(2), and as [`PolledRing::read`]; `WriteZero` for a part of it.
    pub(super) fn write(&mut self, file: &File, record: &[u8], offset_bytes: u64) -> io::Result<()> {
        let bytes = u32::try_from(record.len()).map_err(io::Error::other)?;
        let write = opcode::Write::new(types::Fd(file.as_raw_fd()), record.as_ptr(), bytes);
        // As in `read`.
        self.complete(&write.offset(offset_bytes).build(), bytes, io::ErrorKind::WriteZero)
    }

    /// Submits a request and polls until it is complete, so that its memory and its file are still there.
    fn complete(&mut self, request: &Entry, bytes: u32, part: io::ErrorKind) -> io::Result<()> {
        // SAFETY: the callers hold the memory and the file of the request until this returns, and this returns when it is
        // complete, or when the kernel took nothing.
        unsafe { self.ring.submission().push(request) }.map_err(io::Error::other)?;
        loop {
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            let Some(completion) = self.ring.completion().next() else { continue };
            return match completion.result() {
                failed if failed < 0 => Err(io::Error::from_raw_os_error(-failed)),
                done if u32::try_from(done) == Ok(bytes) => Ok(()),
                done => Err(io::Error::new(part, format!("{done} of {bytes} bytes"))),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_without_polling_is_named() {
        assert!(check_polling(None).unwrap_err().contains("no block device"));
        assert!(check_polling(Some("no-disk")).unwrap_err().contains("no-disk"));
        // No loop device has it.
        if fs::exists("/sys/block/loop0/queue/io_poll").unwrap() {
            assert!(check_polling(Some("loop0")).unwrap_err().contains("loop0 has no polling"));
        }
    }
}
