//! Which descriptor means which open file, in each process: descriptors are a process's, descriptions are shared by dup and fork.

use std::collections::HashMap;

use crate::recording::call::RecordedCall;
use crate::recording::system_calls::open_names::{NameHolder, OpenName, OpenNames};
use crate::recording::system_calls::operation::Sharing;

/// What a descriptor stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// An open file description.
    File(u32),
    /// Nothing that can be replayed, and why.
    Other(&'static str),
}

#[derive(Debug, Clone)]
struct Slot {
    meaning: Meaning,
    closes_on_exec: bool,
}

type DescriptorTable = HashMap<i32, Slot>;

/// A thread, as far as its files go.
#[derive(Debug, Clone, Copy)]
struct TracedThread {
    process: u32,
    table: usize,
    directory: usize,
}

/// What a close means for a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// A descriptor that an open or dup made.
    Own(u32),
    /// One that fork copied: the description has others.
    Inherited(u32),
    /// Nothing that can be replayed.
    Other(&'static str),
    /// Nobody saw what it was.
    Unknown,
}

impl Closed {
    /// The description of a file, and the flags of its close in the recording.
    pub fn of_file(self) -> Option<(u32, u32)> {
        match self {
            Self::Own(description) => Some((description, 0)),
            Self::Inherited(description) => Some((description, RecordedCall::STAYS_OPEN)),
            Self::Other(_) | Self::Unknown => None,
        }
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Holders {
    /// Descriptors of all processes.
    slots: u32,
    /// Descriptors that an open or dup made and no close took away.
    made: u32,
}

/// All threads of a recording.
#[derive(Debug, Default)]
pub struct TracedProcesses {
    tasks: HashMap<u32, TracedThread>,
    tables: Vec<(u32, DescriptorTable)>,
    /// How many threads began without another one.
    begun: usize,
    /// How many directories processes had so far.
    directories: usize,
    /// Names of those, and of open file descriptions.
    pub names: OpenNames,
    holders: HashMap<u32, Holders>,
}

impl TracedProcesses {
    /// True where the thread is known.
    pub fn knows(&self, thread: u32) -> bool {
        self.tasks.contains_key(&thread)
    }

    /// A thread, the first of its process, whose begin nobody saw.
    pub fn begin(&mut self, thread: u32) {
        self.tables.push((1, DescriptorTable::new()));
        self.directories += 1;
        self.begun += 1;
        let task =
            TracedThread { process: thread, table: self.tables.len() - 1, directory: self.directories };
        self.tasks.insert(thread, task);
    }

    /// True where all processes come from one.
    pub fn are_of_one(&self) -> bool {
        self.begun <= 1
    }

    /// A thread that another one made.
    pub fn fork(&mut self, parent: u32, child: u32, sharing: Sharing) {
        let Some(mut task) = self.tasks.get(&parent).copied() else { return };
        if sharing.files {
            self.tables[task.table].0 += 1;
        } else {
            let copy = self.tables[task.table].1.clone();
            for slot in copy.values() {
                if let Meaning::File(description) = slot.meaning {
                    self.holders.entry(description).or_default().slots += 1;
                }
            }
            self.tables.push((1, copy));
            task.table = self.tables.len() - 1;
        }
        if !sharing.directory {
            self.directories += 1;
            let [from, to] = [task.directory, self.directories].map(NameHolder::Directory);
            self.names.copy(from, to);
            let [from, to] = [task.directory, self.directories].map(NameHolder::Root);
            self.names.copy(from, to);
            task.directory = self.directories;
        }
        task.process = if sharing.process { task.process } else { child };
        self.tasks.insert(child, task);
    }

    /// A thread shares its descriptors, or its directory, with no other one from now on. `own`: which of them.
    pub fn unshare(&mut self, thread: u32, own: Sharing) {
        let Some(task) = self.tasks.get(&thread).copied() else { return };
        if own.files && self.tables[task.table].0 > 1 {
            self.tables[task.table].0 -= 1;
            self.fork(thread, thread, Sharing { files: false, directory: true, process: true });
        }
        if own.directory {
            self.fork(thread, thread, Sharing { files: true, directory: false, process: true });
            self.tables[self.tasks[&thread].table].0 -= 1;
        }
    }

    /// The process of a thread.
    pub fn process(&self, thread: u32) -> u32 {
        self.tasks.get(&thread).map_or(thread, |task| task.process)
    }

    /// The directory in which relative paths of a thread begin.
    pub fn directory(&self, thread: u32) -> OpenName<'_> {
        let task = self.tasks.get(&thread);
        task.map_or(OpenName::Unknown, |task| self.names.get(NameHolder::Directory(task.directory)))
    }

    /// It has another one from now on.
    pub fn change_directory(&mut self, thread: u32, directory: &str) {
        if let Some(task) = self.tasks.get(&thread) {
            self.names.put(NameHolder::Directory(task.directory), directory);
        }
    }

    /// Its directory has no name any more.
    pub fn lose_directory(&mut self, thread: u32) {
        if let Some(task) = self.tasks.get(&thread) {
            self.names.lose(NameHolder::Directory(task.directory));
        }
    }

    /// The directory that a thread takes for `/`; `None` where that is gone.
    pub fn root(&self, thread: u32) -> Option<&str> {
        let task = self.tasks.get(&thread);
        match task.map_or(OpenName::Unknown, |task| self.names.get(NameHolder::Root(task.directory))) {
            OpenName::Path(root) => Some(root),
            OpenName::Unknown => Some("/"),
            OpenName::Gone => None,
        }
    }

    /// It takes this one for `/` from now on.
    pub fn change_root(&mut self, thread: u32, root: &str) {
        if let Some(task) = self.tasks.get(&thread) {
            self.names.put(NameHolder::Root(task.directory), root);
        }
    }

    /// What a descriptor stands for.
    pub fn meaning(&self, thread: u32, descriptor: i32) -> Option<&Meaning> {
        let task = self.tasks.get(&thread)?;
        Some(&self.tables[task.table].1.get(&descriptor)?.meaning)
    }

    /// A descriptor stands for this from now on. `is_made`: an open or dup of the recording made it.
    pub fn open(
        &mut self,
        thread: u32,
        descriptor: i32,
        meaning: Meaning,
        closes_on_exec: bool,
        is_made: bool,
    ) {
        let Some(task) = self.tasks.get(&thread) else { return };
        if let Meaning::File(description) = meaning {
            let holders = self.holders.entry(description).or_default();
            holders.slots += 1;
            holders.made += u32::from(is_made);
        }
        self.tables[task.table].1.insert(descriptor, Slot { meaning, closes_on_exec });
    }

    /// FD_CLOEXEC is set or not from now on.
    pub fn set_closes_on_exec(&mut self, thread: u32, descriptor: i32, closes_on_exec: bool) {
        let Some(task) = self.tasks.get(&thread) else { return };
        if let Some(slot) = self.tables[task.table].1.get_mut(&descriptor) {
            slot.closes_on_exec = closes_on_exec;
        }
    }

    /// A descriptor is gone.
    pub fn close(&mut self, thread: u32, descriptor: i32) -> Closed {
        let slot = self.tasks.get(&thread).and_then(|task| self.tables[task.table].1.remove(&descriptor));
        let Some(slot) = slot else { return Closed::Unknown };
        match slot.meaning {
            Meaning::Other(why) => Closed::Other(why),
            Meaning::File(description) => {
                let holders = self.holders.entry(description).or_default();
                holders.slots = holders.slots.saturating_sub(1);
                if holders.slots == 0 {
                    self.names.forget(NameHolder::Description(description));
                }
                if holders.slots > 0 && holders.made <= 1 {
                    return Closed::Inherited(description);
                }
                holders.made = holders.made.saturating_sub(1);
                Closed::Own(description)
            }
        }
    }

    /// Descriptors from `first` to `last` that are open.
    pub fn range(&self, thread: u32, first: i32, last: i32) -> Vec<i32> {
        let Some(task) = self.tasks.get(&thread) else { return Vec::new() };
        let mut found: Vec<i32> = self.tables[task.table]
            .1
            .keys()
            .copied()
            .filter(|number| (first..=last).contains(number))
            .collect();
        found.sort_unstable();
        found
    }

    /// execve closes descriptors. Gives the descriptions that no process has any more.
    pub fn exec(&mut self, thread: u32) -> Vec<u32> {
        let Some(task) = self.tasks.get(&thread).copied() else { return Vec::new() };
        self.unshare(thread, Sharing { files: true, ..Sharing::default() });
        let table = self.tasks.get(&thread).map_or(task.table, |task| task.table);
        let table = &mut self.tables[table].1;
        let gone: Vec<i32> =
            table.iter().filter(|(_, slot)| slot.closes_on_exec).map(|(number, _)| *number).collect();
        let slots = gone.iter().filter_map(|number| table.remove(number)).collect();
        self.release(slots)
    }

    /// A thread has another number from now on. Who had it before is gone: gives the descriptions that no process has any more.
    pub fn rename(&mut self, former: u32, thread: u32) -> Vec<u32> {
        let mut released = Vec::new();
        if former != thread
            && let Some(task) = self.tasks.remove(&former)
        {
            released = self.exit(thread);
            self.tasks.insert(thread, task);
        }
        released
    }

    /// A thread is gone. Gives the descriptions that no process has any more.
    pub fn exit(&mut self, thread: u32) -> Vec<u32> {
        let Some(task) = self.tasks.remove(&thread) else { return Vec::new() };
        let (tasks, table) = &mut self.tables[task.table];
        *tasks -= 1;
        if *tasks > 0 {
            return Vec::new();
        }
        let slots = table.drain().map(|(_, slot)| slot).collect();
        self.release(slots)
    }

    fn release(&mut self, slots: Vec<Slot>) -> Vec<u32> {
        let mut released = Vec::new();
        for slot in slots {
            let Meaning::File(description) = slot.meaning else { continue };
            let holders = self.holders.entry(description).or_default();
            holders.slots = holders.slots.saturating_sub(1);
            if holders.slots == 0 {
                self.names.forget(NameHolder::Description(description));
                released.push(description);
            }
        }
        released.sort_unstable();
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_shared_by_fork_and_dup_and_descriptors_are_not() {
        let mut processes = TracedProcesses::default();
        processes.begin(1);
        processes.open(1, 3, Meaning::File(7), false, true);
        processes.open(1, 4, Meaning::File(8), true, true);
        processes.fork(1, 2, Sharing::default());
        assert_eq!(processes.close(2, 3), Closed::Inherited(7), "the parent has it still");
        assert_eq!(processes.meaning(1, 3), Some(&Meaning::File(7)));
        processes.open(1, 5, Meaning::File(7), false, true);
        assert_eq!([processes.close(1, 3), processes.close(1, 5)], [Closed::Own(7); 2], "open and dup");
        assert_eq!(processes.exec(2), [0; 0], "the parent has 8 still");
        assert_eq!(processes.exit(1), [8]);
        assert_eq!(processes.close(2, 4), Closed::Unknown);
    }

    #[test]
    fn who_unshares_its_table_closes_its_own() {
        let all = Sharing { files: true, directory: true, process: true };
        let mut processes = TracedProcesses::default();
        processes.begin(1);
        processes.change_directory(1, "/a");
        processes.open(1, 3, Meaning::File(7), true, true);
        processes.fork(1, 2, all);
        processes.unshare(2, Sharing { process: false, ..all });
        assert_eq!(processes.close(2, 3), Closed::Inherited(7));
        processes.change_directory(2, "/b");
        assert_eq!(processes.directory(1), OpenName::Path("/a"));
        assert_eq!((processes.process(2), processes.meaning(1, 3)), (1, Some(&Meaning::File(7))));
        // A program that another one shares a table with closes what its execve closes, and no other's.
        processes.fork(1, 3, Sharing { files: true, ..Sharing::default() });
        assert_eq!((processes.exec(3), processes.meaning(3, 3)), (vec![], None));
        assert_eq!((processes.close(1, 3), processes.exit(2)), (Closed::Own(7), vec![]));
    }

    #[test]
    fn threads_share_a_table_until_the_last_is_gone() {
        let mut processes = TracedProcesses::default();
        processes.begin(1);
        processes.fork(1, 2, Sharing { files: true, directory: true, process: true });
        processes.open(2, 3, Meaning::File(7), false, true);
        processes.change_directory(2, "/a");
        assert_eq!(
            (processes.meaning(1, 3), processes.directory(1)),
            (Some(&Meaning::File(7)), OpenName::Path("/a"))
        );
        assert_eq!((processes.process(2), processes.exit(1)), (1, vec![]));
        assert_eq!(processes.exit(2), [7]);
    }
}
