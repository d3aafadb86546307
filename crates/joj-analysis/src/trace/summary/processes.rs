//! Who wrote, synced and committed: a disk's requests are everybody's.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::trace::attribution::request::{Request, Sync, Transaction, TransactionKind};
use crate::trace::event::Operation;
use crate::trace::summary::counts::RequestCount;
use crate::trace::texts::{Text, Texts};
use crate::trace::wanted::Wanted;

/// So many processes are named; the rest is summed.
const NAMED: usize = 10;
/// So many are told apart at most: a machine that traced for days has started more.
const KNOWN_MAX: usize = 4096;

/// What was done for a process.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Default)]
pub struct ProcessVolume {
    /// Its number (Linux's tgid); `null` for kernel threads that worked for nobody who is known to wait, flushes of which nobody knows
    /// who asked for them among it, and for the rest.
    pub process: Option<u32>,
    /// The name of one of its threads.
    pub name: String,
    /// What it wrote and what was written for its sync calls, in runs.
    pub written: RequestCount,
    /// Flushes for the process.
    pub flushes: u64,
    pub syncs: u64,
    pub commits: u64,
}

/// What share those have whose calls and commits were asked for.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Default)]
pub struct OwnShare {
    /// How many of them had to do with the disks.
    pub processes: u64,
    /// Bytes that were written for them.
    pub written_bytes: u64,
    /// Commits of all others.
    pub commits_of_others: u64,
}

/// Counts by process.
#[derive(Debug, Default)]
pub struct Processes {
    known: HashMap<u32, (Text, ProcessVolume)>,
    kernel: ProcessVolume,
    rest: ProcessVolume,
    /// Those that shall be told apart, however many there are.
    wanted: Wanted,
}

impl Processes {
    /// With those that were asked for.
    pub fn with(wanted: Wanted) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Those that were asked for.
    pub fn wanted(&mut self) -> &mut Wanted {
        &mut self.wanted
    }

    /// True for one that was asked for, where some were.
    fn is_told_apart(&self, process: u32) -> bool {
        self.wanted.is_choice() && self.wanted.includes(process)
    }

    /// What share those have that were asked for; `None` where everybody was.
    pub fn own_share(&self) -> Option<OwnShare> {
        self.wanted.is_choice().then(|| {
            let mut share = OwnShare { commits_of_others: self.rest.commits, ..OwnShare::default() };
            for (process, (_, volume)) in &self.known {
                if !self.wanted.includes(*process) {
                    share.commits_of_others += volume.commits;
                } else if *volume != ProcessVolume::default() {
                    share.processes += 1;
                    share.written_bytes += volume.written.bytes;
                }
            }
            share
        })
    }

    fn of(&mut self, process: u32, name: Text) -> &mut ProcessVolume {
        if process == 0 {
            return &mut self.kernel;
        }
        let is_full = self.known.len() >= KNOWN_MAX && !self.is_told_apart(process);
        if is_full && !self.known.contains_key(&process) {
            return &mut self.rest;
        }
        let (known_name, volume) = self.known.entry(process).or_default();
        // The newest: a shell's child has the shell's name until it runs its program.
        if name != Text::NONE {
            *known_name = name;
        }
        volume
    }

    /// A request is complete.
    pub fn request(&mut self, request: &Request) {
        if request.operation == Operation::Flush && request.runs.is_empty() {
            self.kernel.flushes += 1;
        }
        for run in &request.runs {
            let own = run.process == run.for_process;
            let volume = self.of(run.for_process, if own { run.command } else { Text::NONE });
            match request.operation {
                Operation::Write => volume.written.add(run.bytes),
                Operation::Flush => volume.flushes += 1,
                _ => {}
            }
        }
    }

    /// A sync call returned.
    pub fn sync(&mut self, sync: &Sync) {
        self.of(sync.process, sync.command).syncs += 1;
    }

    /// A commit or checkpoint is over.
    pub fn transaction(&mut self, transaction: &Transaction) {
        self.of(transaction.process, transaction.command).commits +=
            u64::from(transaction.kind == TransactionKind::Commit);
    }

    /// Those with the most bytes, the one that was asked for in any case; then the kernel's own and the rest, where there are such.
    pub fn finish(self, texts: &Texts) -> Vec<ProcessVolume> {
        let Self { known, kernel, mut rest, wanted } = self;
        let mut named: Vec<ProcessVolume> = known
            .into_iter()
            .map(|(process, (name, volume))| ProcessVolume {
                process: Some(process),
                name: texts.get(name).to_owned(),
                ..volume
            })
            .filter(|one| {
                ProcessVolume { process: None, name: String::new(), ..one.clone() }
                    != ProcessVolume::default()
            })
            .collect();
        named.sort_by_key(|one| {
            let others = one.process.is_some_and(|process| !wanted.includes(process));
            (others, std::cmp::Reverse((one.written.bytes, one.commits, one.syncs)), one.process)
        });
        for one in named.drain(NAMED.min(named.len())..) {
            rest.written.requests += one.written.requests;
            rest.written.bytes += one.written.bytes;
            rest.flushes += one.flushes;
            rest.syncs += one.syncs;
            rest.commits += one.commits;
        }
        for (name, volume) in [("kernel threads", kernel), ("other processes", rest)] {
            if volume != ProcessVolume::default() {
                named.push(ProcessVolume { name: name.to_owned(), ..volume });
            }
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::attribution::request::BlockRun;

    fn write(process: u32, for_process: u32, bytes: u64) -> Request {
        let run = BlockRun { process, for_process, bytes, ..BlockRun::default() };
        Request { operation: Operation::Write, bytes, runs: vec![run], ..Request::default() }
    }

    #[test]
    fn bytes_are_of_whom_they_were_written_for_and_the_traced_process_stands_first() {
        let mut processes = Processes::with(Wanted::Processes([7].into()));
        for (process, for_process, bytes) in [(7, 7, 4096), (99, 8, 8192), (99, 0, 512), (99, 7, 1024)] {
            processes.request(&write(process, for_process, bytes));
        }
        let found = processes.finish(&Texts::default());
        let told: Vec<_> = found.iter().map(|one| (one.process, one.written.bytes)).collect();
        assert_eq!(told, [(Some(7), 5120), (Some(8), 8192), (None, 512)]);
    }

    #[test]
    fn a_flush_of_which_nobody_knows_who_asked_for_it_is_in_the_sum() {
        let mut processes = Processes::default();
        let run = BlockRun { process: 7, for_process: 7, ..BlockRun::default() };
        for runs in [vec![run], vec![]] {
            processes.request(&Request { operation: Operation::Flush, runs, ..Request::default() });
        }
        let found = processes.finish(&Texts::default());
        let told: Vec<_> = found.iter().map(|one| (one.process, one.flushes)).collect();
        assert_eq!(told, [(Some(7), 1), (None, 1)]);
    }

    #[test]
    fn those_beyond_the_table_are_one_line() {
        let mut processes = Processes::default();
        (1..=5000).for_each(|process| processes.request(&write(process, process, 512)));
        let found = processes.finish(&Texts::default());
        assert_eq!(found.len(), NAMED + 1);
        assert_eq!(found.iter().map(|one| one.written.bytes).sum::<u64>(), 5000 * 512);
    }
}
