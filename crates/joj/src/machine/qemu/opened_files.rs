//! Which files of a filesystem are opened, by whomever: fanotify(7).
//!
//! Who opens a file waits until it is noted. An event that nobody has read yet holds the file's mount, and umount(2) would refuse it after
//! the file was closed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};

/// `struct fanotify_event_metadata` of linux/fanotify.h: length, version, reserved, its own length, mask, descriptor, process.
const EVENT_BYTES: usize = 24;
const DESCRIPTOR_AT: usize = 16;
/// So many bytes of events are read at once.
const ROOM_BYTES: usize = 64 << 10;
/// So many files one after the other may refuse to be opened. The kernel tells it as an error of read(2), and refuses them to who asked.
const REFUSED_MAX: usize = 10_000;

/// Notes each open from now on, and those that fail.
#[derive(Debug)]
pub struct OpenedFiles {
    /// It ends the listener where it is dropped.
    over: Option<PipeWriter>,
    listener: Option<JoinHandle<io::Result<BTreeSet<PathBuf>>>>,
}

impl OpenedFiles {
    /// Begins, for the filesystem that `path` is on.
    /// # Errors
    /// As fanotify_init(2) and fanotify_mark(2).
    pub fn watch(path: &Path) -> io::Result<OpenedFiles> {
        let flags =
            libc::FAN_CLASS_CONTENT | libc::FAN_NONBLOCK | libc::FAN_CLOEXEC | libc::FAN_UNLIMITED_QUEUE;
        // Without O_NONBLOCK a pipe with a name would not open until somebody writes to it.
        let of_events = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: it takes numbers only.
        let descriptor = unsafe { libc::fanotify_init(flags, of_events.cast_unsigned()) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above opened it, and nobody else has it.
        let events = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        let place = File::open(path)?;
        let (ended, over) = io::pipe()?;
        let add = libc::FAN_MARK_ADD | libc::FAN_MARK_FILESYSTEM;
        let mask = libc::FAN_OPEN_PERM | libc::FAN_ONDIR;
        // SAFETY: both descriptors are open; with no path it takes the file of the second.
        let result = unsafe {
            libc::fanotify_mark(events.as_raw_fd(), add, mask, place.as_raw_fd(), std::ptr::null())
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let listener = thread::spawn(move || listen(&events, &ended));
        Ok(OpenedFiles { over: Some(over), listener: Some(listener) })
    }

    /// Those that were opened since the begin, each once, in order of their paths. What had no name any more is left out.
    /// # Errors
    /// As read(2).
    pub fn paths(mut self) -> io::Result<Vec<PathBuf>> {
        Ok(self.end()?.into_iter().collect())
    }

    fn end(&mut self) -> io::Result<BTreeSet<PathBuf>> {
        drop(self.over.take());
        let Some(listener) = self.listener.take() else { return Ok(BTreeSet::new()) };
        listener.join().unwrap_or_else(|_| Err(io::Error::other("the one who notes them panicked")))
    }
}

impl Drop for OpenedFiles {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Notes what is opened until the other end of `ended` is gone.
fn listen(events: &File, ended: &PipeReader) -> io::Result<BTreeSet<PathBuf>> {
    let mut paths = BTreeSet::new();
    let mut room = vec![0_u8; ROOM_BYTES];
    loop {
        let mut asked = [PollFd::new(events, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        match poll(&mut asked, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_over = !asked[1].revents().is_empty();
        note(events, &mut room, &mut paths)?;
        if is_over {
            return Ok(paths);
        }
    }
}

/// Notes what is there, and lets those go on who opened it.
fn note(mut events: &File, room: &mut [u8], paths: &mut BTreeSet<PathBuf>) -> io::Result<()> {
    let mut refused = 0;
    loop {
        let bytes = match events.read(room) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(_) if refused < REFUSED_MAX => {
                refused += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        refused = 0;
        for event in room[..bytes].chunks_exact(EVENT_BYTES) {
            let descriptor: [u8; 4] = event[DESCRIPTOR_AT..DESCRIPTOR_AT + 4].try_into().unwrap_or_default();
            let number = i32::from_ne_bytes(descriptor);
            if number < 0 {
                continue;
            }
            // SAFETY: the kernel opened it for this event, and nobody else has it.
            let file = unsafe { OwnedFd::from_raw_fd(number) };
            paths.extend(std::fs::read_link(format!("/proc/self/fd/{number}")));
            // First: who goes on may unmount at once what it is on.
            drop(file);
            // One who was ended meanwhile waits for no answer.
            let _ = events.write(&[descriptor, libc::FAN_ALLOW.to_ne_bytes()].concat());
        }
    }
}
