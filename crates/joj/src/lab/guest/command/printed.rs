//! What a program prints, and when. It prints to a terminal: to a pipe most programs would print nothing until their end.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};

use crate::machine::proc::clock::shared_ns;

/// Between two looks whether the program has ended that might print.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// A run of a program.
#[derive(Debug)]
pub struct Printed {
    /// How it ended.
    pub status: ExitStatus,
    /// It had to be ended.
    pub was_ended: bool,
    /// When it had ended, by the clock that all processes share.
    pub end_ns: u64,
    /// All that it printed.
    pub output: Vec<u8>,
    /// The end of each line: when it was read, which is after it was printed, and where it is in the output.
    pub lines: Vec<(u64, usize)>,
}

impl Printed {
    /// What it printed up to the end of its last line.
    pub fn promises(&self) -> &[u8] {
        &self.output[..self.lines.last().map_or(0, |(_, end)| *end)]
    }
}

/// Runs `command` with a terminal for its standard output, for `limit` at most; what it started in its process group ends with it.
/// # Errors
/// No terminal, or the program cannot be started.
pub fn run(command: &mut Command, limit: Duration) -> io::Result<Printed> {
    let (terminal, programs) = terminal()?;
    command.stdout(programs).process_group(0);
    let child = command.spawn();
    // The last one that could print has to be the program.
    command.stdout(std::process::Stdio::null());
    let mut child = child?;
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read(terminal, &has_ended));
        let ended = wait_within(&mut child, limit);
        let end_ns = shared_ns();
        has_ended.store(true, Ordering::SeqCst);
        let (output, lines) =
            reader.join().unwrap_or_else(|_| Err(io::Error::other("the reader panicked")))?;
        let (status, was_ended) = ended?;
        Ok(Printed { status, was_ended, end_ns, output, lines })
    })
}

/// Waits for a child that leads a process group, for `limit` at most; then it ends it. What is left of the group is ended, too.
/// # Errors
/// As waitid(2).
fn wait_within(child: &mut std::process::Child, limit: Duration) -> io::Result<(ExitStatus, bool)> {
    let group = Pid::from_child(child);
    let end = pidfd_open(group, PidfdFlags::empty())?;
    let timeout = Timespec::try_from(limit).map_err(io::Error::other)?;
    let was_ended = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&timeout))? == 0;
    // While nobody has waited for it, the group's number is its own. That nobody is left in it is no error.
    let _ = kill_process_group(group, Signal::KILL);
    Ok((child.wait()?, was_ended))
}

/// Both ends of a terminal that changes nothing of what is printed.
fn terminal() -> io::Result<(File, OwnedFd)> {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    unlockpt(&terminal)?;
    let programs =
        ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
    let mut settings = tcgetattr(&programs)?;
    settings.make_raw();
    tcsetattr(&programs, OptionalActions::Now, &settings)?;
    Ok((File::from(terminal), programs))
}

type Lines = Vec<(u64, usize)>;

fn read(mut terminal: File, has_ended: &AtomicBool) -> io::Result<(Vec<u8>, Lines)> {
    let (mut output, mut lines, mut part) = (Vec::new(), Vec::new(), [0; 65_536]);
    loop {
        // Asked before: what was printed until the end is there to be read then.
        let is_last = has_ended.load(Ordering::SeqCst);
        if poll(&mut [PollFd::new(&terminal, PollFlags::IN)], Some(&LOOK))? == 0 {
            if is_last {
                return Ok((output, lines));
            }
            continue;
        }
        let count = match terminal.read(&mut part) {
            // A terminal that nobody has open any more (tty_ioctl(4) calls it a hang-up).
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) => 0,
            read => read?,
        };
        if count == 0 {
            return Ok((output, lines));
        }
        let at_ns = shared_ns();
        let begin = output.len();
        output.extend_from_slice(&part[..count]);
        let ends = part[..count].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        lines.extend(ends.map(|(place, _)| (at_ns, begin + place + 1)));
    }
}

/// The end of what was printed, and what of it that is.
pub fn tail(bytes: &[u8], bytes_max: usize) -> String {
    let left_out = bytes.len().saturating_sub(bytes_max);
    let end = String::from_utf8_lossy(&bytes[left_out..]);
    if left_out == 0 { end.into_owned() } else { format!("({left_out} bytes before are left out)\n{end}") }
}

/// All of standard output, and behind it that of standard error, which begins in a line of its own.
pub fn both([out, error]: [String; 2]) -> String {
    let end = if out.is_empty() || out.ends_with('\n') || error.is_empty() { "" } else { "\n" };
    out + end + &error
}

/// The last line of standard output, and behind it that of standard error: which of them tells what is wrong, and which was printed
/// last, is not known. A program that prints to a file keeps its lines back until its end.
pub fn last_lines(printed: &[String; 2]) -> String {
    let last = |text: &String| text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned);
    match printed.each_ref().map(last) {
        [Some(out), Some(error)] if out != error => format!("{out} ({error})"),
        [out, error] => out.or(error).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, seconds: u64) -> Printed {
        run(Command::new("/bin/sh").args(["-c", script]), Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn each_line_has_its_time_and_the_bytes_are_those_that_were_printed() {
        let printed = shell("printf 'one\\n'; sleep 0.3; printf 'tw\\to\\n'; printf half; exit 3", 60);
        assert_eq!(printed.output, b"one\ntw\to\nhalf");
        let [one, two] = printed.lines[..] else { panic!("{:?}", printed.lines) };
        assert_eq!((one.1, two.1), (4, 9));
        assert!(two.0 - one.0 >= 200_000_000, "{:?}", printed.lines);
        assert_eq!((printed.status.code(), printed.was_ended), (Some(3), false));
    }

    #[test]
    fn a_program_that_does_not_end_is_ended_with_what_it_started() {
        let printed = shell("echo begun; sleep 1000 & sleep 1000", 1);
        assert_eq!((printed.was_ended, &printed.output[..]), (true, &b"begun\n"[..]));
    }

    #[test]
    fn what_prints_to_a_terminal_alone_is_seen() {
        assert_eq!(shell("test -t 1 && echo yes", 60).output, b"yes\n");
    }

    #[test]
    fn standard_error_begins_in_a_line_of_its_own() {
        let both = |out: &str, error: &str| both([out.to_owned(), error.to_owned()]);
        assert_eq!(both("out", "error"), "out\nerror");
        assert_eq!(both("out\n", "error"), "out\nerror");
        assert_eq!([both("", "error"), both("out", "")], ["error", "out"]);
    }

    #[test]
    fn what_is_left_out_of_a_long_output_is_told() {
        assert_eq!(tail(b"abc", 3), "abc");
        assert_eq!(tail(b"abcd", 3), "(1 bytes before are left out)\nbcd");
    }

    #[test]
    fn what_is_wrong_may_be_told_on_either_output() {
        let said = |out: &str, error: &str| last_lines(&[out.to_owned(), error.to_owned()]);
        assert_eq!(said("looking\nWAY1 file gone\n\n", ""), "WAY1 file gone");
        assert_eq!(said("", "Traceback\n KeyError: 'x'\n"), "KeyError: 'x'");
        assert_eq!(said("WAY1 file gone\n", "warning: old\n"), "WAY1 file gone (warning: old)");
        assert_eq!(said("gone\n", "gone\n"), "gone");
        assert_eq!(said("\n", " "), "");
    }
}
