//! A thread that looks at once when a file gets or loses a name, so that little time lies between the change and the look.
//!
//! What happens between two looks has no order but the watch's, and equal changes are one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use joj_analysis::trace::event::DeviceNumber;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::setpriority_process;

use crate::machine::capture::tracefs::name_changes::file_names::{FileNames, Seen};
use crate::machine::proc::clock;

/// So often it looks where nothing seems to happen: an event belongs to a call since the last look.
const IDLE: Duration = Duration::from_millis(10);

/// A nice value (sched(7)): it goes first on its processor, and has little to do.
const NICE: i32 = -15;

/// When a look was, in nanoseconds of the shared clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Look {
    /// What happened before, earlier looks have seen.
    pub since_ns: u64,
    /// What happened before, and after `since_ns`, this look has seen.
    pub began_ns: u64,
    /// What happened later it has not.
    pub ended_ns: u64,
}

#[derive(Debug, Default)]
struct Watching {
    names: FileNames,
    looked_ns: u64,
    seen: Vec<(Look, Seen)>,
    lost: bool,
}

impl Watching {
    fn look(&mut self) {
        let began_ns = clock::shared_ns();
        let since_ns = std::mem::replace(&mut self.looked_ns, began_ns);
        let (seen, lost) = self.names.changes();
        self.lost |= lost;
        let look = Look { since_ns, began_ns, ended_ns: clock::shared_ns() };
        self.seen.extend(seen.into_iter().map(|seen| (look, seen)));
    }
}

/// Watches filesystems until it is dropped.
#[derive(Debug, Default)]
pub struct Watcher {
    watching: Arc<Mutex<Watching>>,
    devices: Vec<DeviceNumber>,
    /// The thread, and what ends it when it is closed.
    thread: Option<(JoinHandle<()>, OwnedFd)>,
}

impl Watcher {
    /// Begins to look. Where there is no thread to be had, only [`Watcher::look`] does.
    pub fn begin(names: FileNames) -> Self {
        let (devices, descriptors) = (names.devices(), names.descriptors());
        let looked_ns = clock::shared_ns();
        let watching = Arc::new(Mutex::new(Watching { names, looked_ns, ..Watching::default() }));
        let thread =
            (!devices.is_empty()).then(|| spawn(Arc::clone(&watching), descriptors.ok()?).ok()).flatten();
        Self { watching, devices, thread }
    }

    /// True for a filesystem that is watched.
    pub fn sees(&self, device: DeviceNumber) -> bool {
        self.devices.contains(&device)
    }

    /// What changed since the last call, in order for each filesystem, and when it was seen; true if the kernel threw some away; when this
    /// look began.
    pub fn look(&self) -> (Vec<(Look, Seen)>, bool, u64) {
        let mut watching = self.watching.lock().unwrap_or_else(PoisonError::into_inner);
        watching.look();
        (std::mem::take(&mut watching.seen), std::mem::take(&mut watching.lost), watching.looked_ns)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        if let Some((thread, end)) = self.thread.take() {
            drop(end);
            let _ = thread.join();
        }
    }
}

fn spawn(watching: Arc<Mutex<Watching>>, watched: Vec<OwnedFd>) -> io::Result<(JoinHandle<()>, OwnedFd)> {
    let (ending, end) = pipe_with(PipeFlags::CLOEXEC)?;
    let run = move || {
        // A look comes in time or is in vain. Where it may not (CAP_SYS_NICE), it takes its turn.
        let _ = setpriority_process(None, NICE);
        let idle = Timespec { tv_sec: 0, tv_nsec: IDLE.as_nanos().try_into().unwrap_or(0) };
        loop {
            let mut asked: Vec<PollFd<'_>> =
                watched.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
            asked.push(PollFd::new(&ending, PollFlags::IN));
            let _ = poll(&mut asked, Some(&idle));
            if asked.last().is_some_and(|ending| !ending.revents().is_empty()) {
                return;
            }
            watching.lock().unwrap_or_else(PoisonError::into_inner).look();
        }
    };
    let thread = std::thread::Builder::new().name("joj-names".to_owned()).spawn(run)?;
    Ok((thread, end))
}
