//! Processes that a program leaves at work: they would go on during the next run, and make files in a directory that is to go.

use std::collections::BTreeSet;
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

/// Between two looks: one that is killed takes a moment to be gone.
const NAP: Duration = Duration::from_millis(1);
/// So many looks: more than a process needs that ends after a write to a slow disk. One that the kernel does not let go stays.
const LOOKS_MAX: u32 = 10_000;

/// Whose parent has ended is a child of this process then, where it can be found.
#[derive(Debug)]
pub struct LeftProcesses(());

impl LeftProcesses {
    /// From now on. Without a kernel that can do that (before 3.4) none is found.
    pub fn adopt() -> LeftProcesses {
        let _ = set_child_subreaper(Some(getpid()));
        LeftProcesses(())
    }

    /// Ends all of them, when no program runs that this process started and waits for. How many were still at work.
    pub fn end(&self) -> u64 {
        let mut at_work = BTreeSet::new();
        for _ in 0..LOOKS_MAX {
            let children = children();
            if children.is_empty() {
                break;
            }
            for (child, has_ended) in children {
                if !has_ended {
                    at_work.insert(child.as_raw_nonzero());
                    let _ = kill_process(child, Signal::KILL);
                }
                let _ = waitpid(Some(child), WaitOptions::NOHANG);
            }
            sleep(NAP);
        }
        at_work.len() as u64
    }
}

impl Drop for LeftProcesses {
    fn drop(&mut self) {
        let _ = set_child_subreaper(None);
    }
}

/// All processes whose parent is this one, and whether each has ended already (proc_pid_stat(5)).
fn children() -> Vec<(Pid, bool)> {
    let own = getpid().as_raw_nonzero().to_string();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let child = |number: i32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // Behind the program's name, which may have any letters: the state, then the parent.
        let (_, behind) = stat.rsplit_once(") ")?;
        let mut fields = behind.split(' ');
        let (state, parent) = (fields.next()?, fields.next()?);
        (parent == own).then_some((Pid::from_raw(number)?, state == "Z"))
    };
    numbers.filter_map(child).collect()
}
