//! Starts a command that is traced from its first instruction on.
//!
//! ```text
//! joj       helper: spawn ----------------------------------------------- returns when execve was made
//!           tracer:          reads the number, seizes, says go ... stops ... exec: from here on it is the command
//! child             number -> pipe, waits for go,  filter, execve
//! ```

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::Duration;

use super::filter;
use super::request::{self, Tid};
use crate::machine::capture::calls::error::CallCaptureError;
use crate::machine::proc::seccomp;
use crate::machine::proc::watched_command::StartError;

/// How often the child is looked at until its program is there.
const LOOK: Duration = Duration::from_micros(200);

/// Starts a command; it is stopped where its program begins. Gives its number.
/// # Errors
/// There is no such program, or it cannot be traced. Nothing is left running.
pub fn launch(words: &[String]) -> Result<Tid, CallCaptureError> {
    let failed = |what| move |error| CallCaptureError::Tracer { what, error };
    let (mut number, number_out) = io::pipe().map_err(failed("make a pipe"))?;
    let (go_in, go) = io::pipe().map_err(failed("make a pipe"))?;
    let started = spawn(words, number_out, go_in, go.as_raw_fd());
    let mut bytes = [0; 4];
    if number.read_exact(&mut bytes).is_err() {
        // The child ended before it told its number, or there is none.
        return Err(refusal(words, started.recv().ok()));
    }
    let child = Tid::from_ne_bytes(bytes);
    let seized = request::seize(child, request::OPTIONS_WITH_FILTER);
    if let Err(error) = seized {
        // It reads no `go`, and gives up.
        drop(go);
        let _ = started.recv();
        return Err(CallCaptureError::Seize { process: child.unsigned_abs(), error });
    }
    say_go(go).map_err(failed("start the command"))?;
    until_exec(child, words, &started)?;
    Ok(child)
}

fn say_go(mut go: PipeWriter) -> io::Result<()> {
    go.write_all(&[1])
}

/// Spawns in a thread of its own: it waits until the command's program is there, and only this thread can bring it so far.
/// `other_end`: of `go`.
fn spawn(
    words: &[String],
    mut number: PipeWriter,
    mut go: PipeReader,
    other_end: RawFd,
) -> Receiver<io::Result<()>> {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    let mut program = filter::program();
    let hook = move || {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        // SAFETY: the child's copy, which nobody else there uses. With it the child would wait for itself.
        unsafe { libc::close(other_end) };
        number.write_all(&own.to_ne_bytes())?;
        let mut byte = [0];
        go.read_exact(&mut byte)?;
        seccomp::install(&mut program)
    };
    // SAFETY: the hook makes system calls only; it allocates nothing and takes no lock.
    unsafe { command.pre_exec(hook) };
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let spawned = command.spawn().map(|_| ());
        // Its ends of the pipes close: whoever reads the number learns that there is none.
        drop(command);
        let _ = sender.send(spawned);
    });
    receiver
}

/// Lets the child go on until its program is there.
fn until_exec(
    child: Tid,
    words: &[String],
    started: &Receiver<io::Result<()>>,
) -> Result<(), CallCaptureError> {
    let mut is_started = false;
    loop {
        match started.try_recv() {
            Ok(Ok(())) => is_started = true,
            Ok(Err(error)) => return Err(StartError::new(&words[0], error).into()),
            Err(TryRecvError::Disconnected) if !is_started => return Err(refusal(words, None)),
            Err(_) => {}
        }
        let Some(status) = request::next_stop(child) else {
            thread::sleep(LOOK);
            continue;
        };
        if status >> 16 == libc::PTRACE_EVENT_EXEC {
            return Ok(());
        }
        let signal = status >> 8 & 0xff;
        let is_of_signal = status >> 16 == 0 && signal & 0x7f != libc::SIGTRAP;
        let _ = request::go_on(child, if is_of_signal { signal } else { 0 }, false);
    }
}

fn refusal(words: &[String], told: Option<io::Result<()>>) -> CallCaptureError {
    let error = told.and_then(Result::err).unwrap_or_else(|| io::Error::other("it ended at once"));
    StartError::new(&words[0], error).into()
}
