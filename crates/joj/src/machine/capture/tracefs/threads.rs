//! Which process a thread belongs to and what it is called: trace records have its number only.

use std::collections::BTreeMap;
use std::fs;

use joj_analysis::trace::ftrace::record::Command;
use joj_analysis::trace::texts::{Text, Texts};

/// What is known of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Thread {
    process: u32,
    command: Text,
}

/// Those seen since the start, and those that ran then.
#[derive(Debug, Default)]
pub struct Threads {
    known: BTreeMap<u32, Thread>,
    /// Whom the record before was of: most are of the same.
    last: Option<(u32, Thread)>,
}

impl Threads {
    /// Learns every thread that runs now. Later ones come from `task_newtask`; where the kernel has no such event, from /proc
    /// when they are first seen, which is too late for a thread that lived for less than the time between two polls: it
    /// counts as a process of its own then.
    pub fn learn_running(&mut self, texts: &mut Texts) {
        for process in numbers("/proc") {
            for thread in numbers(&format!("/proc/{process}/task")) {
                let command = command_of(process, thread, texts);
                self.set(thread, Thread { process, command });
            }
        }
    }

    /// Those that are known, and what they are called.
    pub fn names(&self) -> impl Iterator<Item = (u32, Text)> {
        self.known.iter().map(|(number, thread)| (*number, thread.command))
    }

    /// A thread was made, by one of the same process or as a process of its own.
    pub fn made(&mut self, thread: u32, of: Option<u32>, command: &Command, texts: &mut Texts) {
        let process = of.map_or(thread, |of| self.process(of, texts));
        let command = keep(command, texts);
        self.set(thread, Thread { process, command });
    }

    /// A thread has another name.
    pub fn renamed(&mut self, thread: u32, command: &Command, texts: &mut Texts) {
        let process = self.process(thread, texts);
        let command = keep(command, texts);
        self.set(thread, Thread { process, command });
    }

    /// Its process; the thread itself where nobody knows.
    pub fn process(&mut self, thread: u32, texts: &mut Texts) -> u32 {
        self.find(thread, texts).process
    }

    /// The process of a thread that is known; of another the thread itself. Asks nobody.
    pub fn process_of(&self, thread: u32) -> u32 {
        self.known.get(&thread).map_or(thread, |known| known.process)
    }

    /// Its process, and what it is called.
    pub fn who(&mut self, thread: u32, texts: &mut Texts) -> (u32, Text) {
        let found = self.find(thread, texts);
        (found.process, found.command)
    }

    fn find(&mut self, thread: u32, texts: &mut Texts) -> Thread {
        if let Some((number, last)) = self.last
            && number == thread
        {
            return last;
        }
        let found = self.look_up(thread, texts);
        self.last = Some((thread, found));
        found
    }

    fn set(&mut self, number: u32, thread: Thread) {
        self.last = None;
        self.known.insert(number, thread);
    }

    fn look_up(&mut self, thread: u32, texts: &mut Texts) -> Thread {
        if let Some(known) = self.known.get(&thread) {
            return *known;
        }
        let status = fs::read_to_string(format!("/proc/{thread}/status")).unwrap_or_default();
        let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        let process = process.unwrap_or(thread);
        let found = Thread { process, command: command_of(process, thread, texts) };
        self.known.insert(thread, found);
        found
    }
}

/// A thread's name as text.
pub fn keep(command: &Command, texts: &mut Texts) -> Text {
    let name = command.split(|byte| *byte == 0).next().unwrap_or(&[]);
    texts.keep(&String::from_utf8_lossy(name))
}

fn command_of(process: u32, thread: u32, texts: &mut Texts) -> Text {
    if thread == 0 {
        // The idle task, which every processor has and /proc does not show.
        return texts.keep("swapper");
    }
    let command = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm")).unwrap_or_default();
    texts.keep(command.trim_end_matches('\n'))
}

fn numbers(directory: &str) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_belongs_to_its_makers_process_and_a_number_to_its_latest_owner() {
        let (mut threads, mut texts) = (Threads::default(), Texts::default());
        threads.learn_running(&mut texts);
        let own = std::process::id();
        assert_eq!(threads.process(own, &mut texts), own);
        let command: Command = *b"worker\0\0\0\0\0\0\0\0\0\0";
        threads.made(4_000_000, Some(own), &command, &mut texts);
        assert_eq!(threads.process(4_000_000, &mut texts), own);
        let (_, name) = threads.who(4_000_000, &mut texts);
        assert_eq!(texts.get(name), "worker");
        threads.made(4_000_000, None, &command, &mut texts);
        assert_eq!(threads.process(4_000_000, &mut texts), 4_000_000, "another process now");
    }
}
