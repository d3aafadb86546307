//! Whether standard output was open when the program began: before `main` Rust puts /dev/null in the place of a closed one, and what
//! is printed there is gone without an error. And where it goes while a command runs of which joj's own result stands there.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use thiserror::Error;

static CLOSED: AtomicBool = AtomicBool::new(false);

extern "C" fn look() {
    // SAFETY: F_GETFD takes any number, and changes nothing.
    if unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0 {
        CLOSED.store(true, Relaxed);
    }
}

/// The C runtime calls what stands there before `main` (System V ABI, "Initialization and Termination Functions").
#[used]
// SAFETY: a function that takes nothing, returns nothing and needs nothing of Rust's runtime.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

/// As long as it is there, what is printed goes to standard error, also by commands that start meanwhile.
#[derive(Debug)]
pub struct ToStandardError(OwnedFd);

impl ToStandardError {
    /// From now on.
    /// # Errors
    /// No descriptor is left.
    pub fn begin() -> io::Result<Self> {
        let own = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
        rustix::stdio::dup2_stdout(io::stderr())?;
        Ok(Self(own))
    }
}

impl Drop for ToStandardError {
    fn drop(&mut self) {
        // It was open there before.
        let _ = rustix::stdio::dup2_stdout(&self.0);
    }
}

/// Standard output was closed from the beginning.
#[derive(Debug, Error)]
#[error(
    "standard output is closed, and the result could not be told; send it elsewhere, to a file or /dev/null"
)]
pub struct ClosedOutput;

/// What a command prints can be read.
/// # Errors
/// Where standard output was closed from the beginning.
pub fn check_open() -> Result<(), ClosedOutput> {
    if CLOSED.load(Relaxed) { Err(ClosedOutput) } else { Ok(()) }
}
