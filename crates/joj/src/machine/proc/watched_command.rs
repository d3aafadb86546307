//! A program that runs while it is watched, and waiting that its end, or Ctrl-C, cuts short.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use thiserror::Error;

use crate::machine::proc::clock::shared_ns;
use crate::machine::proc::seccomp;
use crate::machine::proc::signal::is_stopped;

/// The longest sleep at once: a signal that comes between looking for it and falling asleep does not wake.
const NAP_NS: u64 = 250_000_000;
/// The same where the kernel (before 5.3) cannot wake us at the program's end.
const NAP_WITHOUT_PIDFD_NS: u64 = 20_000_000;
/// After Ctrl-C: how long the program, which got it too if it came from the terminal, has to end by itself, and how long
/// after SIGTERM.
const GRACE_NS: u64 = 1_000_000_000;
const LAST_GRACE_NS: u64 = 5_000_000_000;

/// A program that was started and is watched.
#[derive(Debug)]
pub struct WatchedCommand {
    child: Child,
    /// Becomes readable when the program ends.
    end: Option<OwnedFd>,
    /// Its exit code, once it has ended.
    exit_code: Option<i32>,
}

/// Why the program could not be started.
#[derive(Debug, Error)]
#[error("cannot run {program}: {error}; give a program behind `--`")]
pub struct StartError {
    program: String,
    #[source]
    error: io::Error,
}

impl StartError {
    /// Of a program, and what the system said.
    pub(in crate::machine) fn new(program: &str, error: io::Error) -> Self {
        Self { program: program.to_owned(), error }
    }

    /// The exit code that shells give for it. 127: there is no such program. 126: it cannot be run.
    pub fn exit_code(&self) -> u8 {
        if self.error.kind() == io::ErrorKind::NotFound { 127 } else { 126 }
    }
}

impl WatchedCommand {
    /// Starts `words`; `to_stderr`: its standard output goes to standard error.
    /// # Errors
    /// Where there is no such program or it cannot be run; nothing is left running.
    pub fn start(words: &[String], to_stderr: bool) -> Result<WatchedCommand, StartError> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        if to_stderr {
            command.stdout(Stdio::from(io::stderr()));
        }
        Self::spawn(command, words)
    }

    /// Starts `words` in a directory; it has no input, and what it prints goes nowhere. With a filter of system calls it is held to
    /// that, and all that it starts.
    /// # Errors
    /// As [`WatchedCommand::start`].
    pub fn start_in(
        words: &[String],
        directory: &Path,
        filter: Option<Vec<libc::sock_filter>>,
    ) -> Result<WatchedCommand, StartError> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some(mut filter) = filter {
            let install = move || seccomp::install(&mut filter);
            // SAFETY: between fork and exec it makes system calls only, with memory that was there before the fork.
            unsafe { command.pre_exec(install) };
        }
        Self::spawn(command, words)
    }

    fn spawn(mut command: Command, words: &[String]) -> Result<WatchedCommand, StartError> {
        let child = command.spawn().map_err(|error| StartError::new(&words[0], error))?;
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        Ok(WatchedCommand { child, end, exit_code: None })
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit code, 128 and the signal's number where one ended it; `None` while it runs.
    pub fn exit_code(&mut self) -> Option<i32> {
        if self.exit_code.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.exit_code = Some(code_of(status));
        }
        self.exit_code
    }

    /// Asks it to end.
    pub fn ask_to_end(&self) {
        self.send(Signal::TERM);
    }

    /// Makes it end.
    pub fn make_end(&self) {
        self.send(Signal::KILL);
    }

    fn send(&self, signal: Signal) {
        if self.exit_code.is_none() {
            // It has not been waited for: the number is its own.
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// Waits for its end; after a signal it is asked to end, then made to.
    pub fn wait(&mut self) -> i32 {
        let mut stopped_ns = None;
        let mut asked = 0;
        loop {
            if let Some(code) = self.exit_code() {
                return code;
            }
            if is_stopped() {
                let stopped_ns = *stopped_ns.get_or_insert_with(shared_ns);
                let since_ns = shared_ns() - stopped_ns;
                let signals = [(GRACE_NS, Signal::TERM), (GRACE_NS + LAST_GRACE_NS, Signal::KILL)];
                if let Some((after_ns, signal)) = signals.get(asked)
                    && since_ns >= *after_ns
                {
                    self.send(*signal);
                    asked += 1;
                }
            }
            nap(Some(self), NAP_NS);
        }
    }
}

/// From now on programs that this process starts get none of the descriptors that it has, but 0 to 2.
pub fn keep_descriptors() {
    for entry in std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten() {
        let number = entry.file_name().to_str().and_then(|name| name.parse::<libc::c_int>().ok());
        if let Some(number) = number.filter(|number| *number > 2) {
            // SAFETY: it changes a flag of a descriptor, which no exec of this process's own counts on, or fails where there is none.
            unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
        }
    }
}

fn code_of(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1)
}

/// Sleeps until [`shared_ns`] says `at_ns`, a signal asks to end, or the program ends.
pub fn wait_until(at_ns: u64, command: &mut Option<WatchedCommand>) {
    loop {
        let left_ns = at_ns.saturating_sub(shared_ns());
        if left_ns == 0
            || is_stopped()
            || command.as_mut().is_some_and(|command| command.exit_code().is_some())
        {
            return;
        }
        nap(command.as_ref(), left_ns.min(NAP_NS));
    }
}

/// Sleeps once, not longer than `nap_ns`.
fn nap(command: Option<&WatchedCommand>, nap_ns: u64) {
    let end = command.and_then(|command| command.end.as_ref());
    let nap_ns = if command.is_some() && end.is_none() { nap_ns.min(NAP_WITHOUT_PIDFD_NS) } else { nap_ns };
    let time = Timespec::try_from(Duration::from_nanos(nap_ns)).ok();
    let mut watched: Vec<PollFd<'_>> = end.map(|end| PollFd::new(end, PollFlags::IN)).into_iter().collect();
    // EINTR is what a signal is meant to do.
    let _ = poll(&mut watched, time.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        ["sh", "-c", text].map(str::to_owned).to_vec()
    }

    #[test]
    fn exit_codes_are_the_shells() {
        for (text, expected) in [("exit 7", 7), ("kill -9 $$", 137), ("true", 0)] {
            assert_eq!(WatchedCommand::start(&words(text), true).unwrap().wait(), expected, "{text}");
        }
        let missing = WatchedCommand::start(&["/no/such program".to_owned()], true).unwrap_err();
        assert_eq!(missing.exit_code(), 127);
        assert!(missing.to_string().contains("/no/such program"), "{missing}");
        assert_eq!(WatchedCommand::start(&["/".to_owned()], true).unwrap_err().exit_code(), 126);
    }

    #[test]
    fn a_program_runs_in_a_directory_and_with_the_filter_its_syncs_do_nothing() {
        let directory = std::env::temp_dir().join(format!("joj-started-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        // A sync of a pipe is refused by the kernel (EINVAL), and by the filter not even tried.
        let script = "true | sync /dev/stdin && touch here";
        for (filter, expected) in [(None, 1), (seccomp::without_syncs(), 0)] {
            let mut command = WatchedCommand::start_in(&words(script), &directory, filter).unwrap();
            assert_eq!(command.wait(), expected);
            assert_eq!(directory.join("here").exists(), expected == 0);
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn waiting_ends_with_the_program() {
        let minute_ns = 60_000_000_000;
        let began_ns = shared_ns();
        let mut command = Some(WatchedCommand::start(&words("exit 3"), true).unwrap());
        wait_until(began_ns + minute_ns, &mut command);
        assert!(shared_ns() - began_ns < minute_ns / 2);
        assert_eq!(command.and_then(|mut command| command.exit_code()), Some(3));
        wait_until(shared_ns() + 1_000_000, &mut None);
    }
}
