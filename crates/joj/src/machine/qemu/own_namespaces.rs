//! Namespaces of a thread's own, and the way back: its mounts, its SysV IPC and message queues, its host name (namespaces(7)). What is
//! changed in them is gone when the thread is back and all that it started while it was in them has ended.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

/// Their names below /proc/PID/ns.
const KINDS: [(&str, LinkNameSpaceType); 3] = [
    ("mnt", LinkNameSpaceType::Mount),
    ("ipc", LinkNameSpaceType::InterProcessCommunication),
    ("uts", LinkNameSpaceType::HostNameAndNISDomainName),
];

/// As long as there is this value, its thread is in namespaces of its own.
#[derive(Debug)]
pub struct OwnNamespaces {
    /// Those that it was in before.
    before: Vec<(OwnedFd, LinkNameSpaceType)>,
    /// To be dropped by the thread that made it.
    _thread: PhantomData<*const ()>,
}

impl OwnNamespaces {
    /// Copies of the thread's mounts and host name, and no IPC objects.
    /// # Errors
    /// As unshare(2); the thread is where it was.
    pub fn enter() -> io::Result<OwnNamespaces> {
        let open = |(name, kind)| Ok((File::open(format!("/proc/thread-self/ns/{name}"))?.into(), kind));
        let before = KINDS.into_iter().map(open).collect::<io::Result<_>>()?;
        share_no_more(UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS)?;
        Ok(OwnNamespaces { before, _thread: PhantomData })
    }
}

impl Drop for OwnNamespaces {
    fn drop(&mut self) {
        // Threads that were begun meanwhile have its directory, too, and then setns(2) refuses the mounts.
        let mut back = share_no_more(UnshareFlags::FS);
        for (namespace, kind) in &self.before {
            back =
                back.and(move_into_link_name_space(namespace.as_fd(), Some(*kind)).map_err(io::Error::from));
        }
        if let Err(reason) = back {
            println!("no way back to the first namespaces: {reason}");
        }
    }
}

fn share_no_more(what: UnshareFlags) -> io::Result<()> {
    assert!(!what.contains(UnshareFlags::FILES), "descriptors are all threads'");
    // SAFETY: what is unsafe about it are descriptors of one thread that others hold for theirs; `FILES` is not among the flags.
    unsafe { unshare_unsafe(what) }?;
    Ok(())
}
