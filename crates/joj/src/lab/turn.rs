//! Taking turns: of several jojs one makes what the others then find made.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::lab::error::SessionError;
use crate::lab::life::SessionEnd;
use crate::machine::proc::clock::pause;
use crate::machine::proc::signal::is_stopped;

/// Between two looks whether the other joj is done.
const NAP: Duration = Duration::from_millis(100);

/// Waits for the joj that has flock(2) on the file `lock`, which is made where it is not there. The turn ends with the value, or its
/// process. `wait` is called once where another joj has it; `cannot` says what it means that there is no lock.
/// # Errors
/// A signal, or what `cannot` gives.
pub fn turn(
    lock: &Path,
    cannot: impl Fn(io::Error) -> SessionError,
    wait: impl FnOnce(),
) -> Result<File, SessionEnd> {
    let file = File::create(lock).map_err(&cannot)?;
    let mut wait = Some(wait);
    loop {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if is_stopped() => return Err(SessionEnd::Signal),
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                if let Some(wait) = wait.take() {
                    wait();
                }
                pause(NAP);
            }
            Err(error) => return Err(cannot(error.into()).into()),
        }
    }
}
