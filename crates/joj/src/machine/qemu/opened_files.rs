//! Which files of a filesystem are opened, by whomever: fanotify(7).

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// `struct fanotify_event_metadata` of linux/fanotify.h: length, version, reserved, its own length, mask, descriptor, process.
const EVENT_BYTES: usize = 24;
const DESCRIPTOR_AT: usize = 16;
/// So many bytes of events are read at once.
const ROOM_BYTES: usize = 64 << 10;

/// Notes each open from now on.
#[derive(Debug)]
pub struct OpenedFiles(File);

impl OpenedFiles {
    /// Begins, for the filesystem that `path` is on.
    /// # Errors
    /// As fanotify_init(2) and fanotify_mark(2).
    pub fn watch(path: &Path) -> io::Result<OpenedFiles> {
        let flags =
            libc::FAN_CLASS_NOTIF | libc::FAN_NONBLOCK | libc::FAN_CLOEXEC | libc::FAN_UNLIMITED_QUEUE;
        // SAFETY: it takes numbers only.
        let descriptor = unsafe { libc::fanotify_init(flags, libc::O_RDONLY.cast_unsigned()) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above opened it, and nobody else has it.
        let events = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let place = File::open(path)?;
        let add = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
        let mask = libc::FAN_OPEN | libc::FAN_ONDIR;
        // SAFETY: both descriptors are open; with no path it takes the file of the second.
        let result = unsafe {
            libc::fanotify_mark(events.as_raw_fd(), add, mask, place.as_raw_fd(), std::ptr::null())
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OpenedFiles(events))
    }

    /// Those that were opened since the begin, each once, in order of their paths. What has no name any more is left out.
    /// # Errors
    /// As read(2).
    pub fn paths(mut self) -> io::Result<Vec<PathBuf>> {
        let (mut paths, mut room) = (Vec::new(), vec![0_u8; ROOM_BYTES]);
        loop {
            let bytes = match self.0.read(&mut room) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            };
            for event in room[..bytes].chunks_exact(EVENT_BYTES) {
                let descriptor: [u8; 4] =
                    event[DESCRIPTOR_AT..DESCRIPTOR_AT + 4].try_into().unwrap_or_default();
                let descriptor = i32::from_ne_bytes(descriptor);
                if descriptor < 0 {
                    continue;
                }
                // SAFETY: the kernel opened it for this event, and nobody else has it.
                let file = unsafe { OwnedFd::from_raw_fd(descriptor) };
                paths.extend(std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())));
            }
        }
        paths.sort();
        paths.dedup();
        Ok(paths)
    }
}
