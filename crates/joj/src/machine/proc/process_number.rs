//! What a process number means: which process or thread has it, and whether the kernel's records have the same numbers as /proc.

use std::fs;
use std::path::Path;

/// The first pid namespace of a machine: the kernel's records have the numbers of processes there.
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Whose a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A process that runs.
    Process,
    /// A process all of whose threads have ended; its parent has yet to ask how.
    Ended,
    /// A thread of this process.
    ThreadOf(u32),
    /// Nobody's.
    Nobody,
}

/// Whose a number is. A process runs as long as one of its threads does, even where its first one has ended.
pub fn owner(number: u32) -> Owner {
    let place = format!("/proc/{number}");
    let Ok(status) = fs::read_to_string(format!("{place}/status")) else { return Owner::Nobody };
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
    if let Some(process) = process.filter(|process| *process != number) {
        return Owner::ThreadOf(process);
    }
    let threads = fs::read_dir(format!("{place}/task")).into_iter().flatten().flatten();
    let mut stats = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    if stats.any(|stat| is_running(&stat)) { Owner::Process } else { Owner::Ended }
}

/// `stat` as proc_pid_stat(5) has it: the state stands behind the name, which may have parentheses of its own.
fn is_running(stat: &str) -> bool {
    let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X' | 'x'))
}

/// True where the number that a new process gets is the one that the kernel's records have for it.
pub fn is_in_first_namespace() -> bool {
    is_first(Path::new("/proc/self/ns/pid"))
}

/// True where the numbers in /proc are those of the kernel's records. A container may have the machine's /proc.
pub fn has_kernels_numbers() -> bool {
    is_in_first_namespace() || is_first(Path::new("/proc/1/ns/pid"))
}

/// A kernel without namespaces has one.
fn is_first(link: &Path) -> bool {
    match fs::read_link(link) {
        Ok(namespace) => namespace.as_os_str() == FIRST_PID_NAMESPACE,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Read};
    use std::process::{Child, Command, Stdio};

    use super::*;

    /// Its first thread ends at once; another says so, and lives as long as its input is open.
    const HEADLESS: &str = "
import ctypes, sys, threading, time
def work():
    while open('/proc/self/stat').read().rsplit(') ')[1][0] != 'Z':
        time.sleep(0.001)
    print('alone', flush=True)
    sys.stdin.read()
threading.Thread(target=work).start()
ctypes.CDLL(None).pthread_exit(None)
";

    fn python(program: &str) -> Child {
        let mut command = Command::new("/usr/bin/python3");
        command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.spawn().expect("python3")
    }

    #[test]
    fn a_thread_is_no_process() {
        let own = std::process::id();
        assert_eq!(owner(own), Owner::Process);
        // A test runs in a thread of its own.
        let thread = fs::read_link("/proc/thread-self").expect("this thread");
        let thread = thread.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a number");
        assert_eq!(owner(thread), Owner::ThreadOf(own));
        assert_eq!(owner(u32::MAX), Owner::Nobody);
    }

    #[test]
    fn a_process_that_ended_runs_no_more_though_nobody_asked_how() {
        let mut child = python("");
        let number = child.id();
        // Its output ends with it, or a moment before.
        child.stdout.take().expect("a pipe").read_to_end(&mut Vec::new()).expect("its end");
        while owner(number) == Owner::Process {
            std::thread::yield_now();
        }
        assert_eq!(owner(number), Owner::Ended);
        child.wait().expect("its end");
        assert_eq!(owner(number), Owner::Nobody);
    }

    #[test]
    fn a_process_runs_while_one_of_its_threads_does() {
        let mut child = python(HEADLESS);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!((line.as_str(), owner(child.id())), ("alone\n", Owner::Process));
        drop(child.stdin.take());
        child.kill().expect("a process");
        child.wait().expect("its end");
    }

    #[test]
    fn a_state_stands_behind_any_name() {
        assert!(is_running("7 (a) Z b) S 1 7") && is_running("7 (a) R 1"));
        assert!(!is_running("7 (a) S b) Z 1 7") && !is_running("7 (a") && !is_running(""));
    }
}
