//! The sync calls that are under way, and which of them causes what kernel threads write.

use std::collections::HashMap;

use crate::bench::key::Word;
use crate::filesystem::Filesystem;
use crate::filesystem::class::{Class, Part};
use crate::trace::attribution::files::FileInfo;
use crate::trace::attribution::request::{Request, Sync, SyncId, TransactionId};
use crate::trace::event::{DeviceNumber, END_NOT_TOLD, Event, FileKey, NO_END, Operation};

/// Sync calls between their begin and their end.
#[derive(Debug, Default)]
pub struct Syncs {
    of_thread: HashMap<u32, Sync>,
    threads: HashMap<SyncId, u32>,
    begun: u64,
}

impl Syncs {
    /// A call begins. Returns one that is over as far as anybody will know: this one, where the capture says that no end will be
    /// told, or the one that its thread was in, whose end was not seen.
    pub fn begin(
        &mut self,
        event: &Event,
        info: FileInfo,
        transaction: Option<TransactionId>,
    ) -> Option<Sync> {
        let id = SyncId(self.begun);
        self.begun += 1;
        let sync = Sync {
            id,
            call: event.name,
            file: event.file,
            name: info.name,
            file_type: info.file_type,
            thread: event.thread,
            process: event.process,
            command: event.command,
            begun_ns: event.time_ns,
            ended_ns: None,
            result: 0,
            bytes: [0; Class::ALL.len()],
            control_bytes: 0,
            flush_ns: 0,
            requests: 0,
            writes: 0,
            flushes: 0,
            last_completed_ns: 0,
            transaction,
        };
        if event.detail == NO_END {
            return Some(sync);
        }
        self.threads.insert(id, event.thread);
        let before = self.of_thread.insert(event.thread, sync)?;
        self.threads.remove(&before.id);
        Some(before)
    }

    /// A thread's call ends. `None` where its begin was before the trace.
    pub fn end(&mut self, event: &Event) -> Option<Sync> {
        let mut sync = self.of_thread.remove(&event.thread)?;
        self.threads.remove(&sync.id);
        if event.detail == END_NOT_TOLD {
            return Some(sync);
        }
        sync.ended_ns = Some(event.time_ns);
        sync.result = event.detail;
        Some(sync)
    }

    /// The call that a thread is in.
    pub fn of_thread(&self, thread: u32) -> Option<&Sync> {
        self.of_thread.get(&thread)
    }

    /// The call that a kernel thread works for: the one that began first, of those for files of that filesystem; for a
    /// file's data only a call for that very file.
    pub fn waiting(&self, filesystem: DeviceNumber, data_of: Option<FileKey>) -> Option<&Sync> {
        self.of_thread
            .values()
            .filter(|sync| sync.file.device == filesystem || !sync.file.is_some())
            .filter(|sync| data_of.is_none_or(|file| file == sync.file || !sync.file.is_some()))
            .min_by_key(|sync| sync.id)
    }

    /// A call that has not ended yet.
    pub fn get_mut(&mut self, id: SyncId) -> Option<&mut Sync> {
        self.of_thread.get_mut(self.threads.get(&id)?)
    }

    /// Adds a request to the calls for which its runs were written.
    pub fn count(&mut self, request: &Request) {
        let is_flush = request.operation == Operation::Flush;
        let mut counted = None;
        for run in &request.runs {
            let Some(sync) = run.cause.and_then(|id| self.get_mut(id)) else { continue };
            let written = request.written_of(run);
            sync.bytes[usize::from(run.class.code())] += written;
            if matches!(run.part, Part::Descriptor | Part::Commit | Part::Revoke) {
                sync.control_bytes += written;
            }
            if counted != run.cause {
                counted = run.cause;
                sync.requests += 1;
                sync.writes += u64::from(request.operation == Operation::Write);
                sync.flushes += u64::from(is_flush);
                sync.flush_ns += if is_flush { request.latency_ns().unwrap_or(0) } else { 0 };
                sync.last_completed_ns = sync.last_completed_ns.max(request.completed_ns.unwrap_or(0));
            }
        }
    }

    /// Calls that never ended, in the order in which they began.
    pub fn finish(&mut self) -> Vec<Sync> {
        let mut left: Vec<Sync> = std::mem::take(&mut self.of_thread).into_values().collect();
        left.sort_by_key(|sync| sync.id);
        left
    }
}

/// True for the names of kernel threads that write for others: journals, write-back, filesystem workers, loop devices.
pub fn works_for_others(command: &str) -> bool {
    let of_filesystems = Filesystem::ALL.iter().flat_map(|filesystem| filesystem.facts().threads);
    of_filesystems.chain(&["kworker/", "loop"]).any(|name| command.starts_with(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(thread: u32, inode: u64) -> Event {
        let file = FileKey { device: DeviceNumber(3), inode, generation: 0 };
        Event { thread, file, ..Event::default() }
    }

    #[test]
    fn a_kernel_thread_works_for_the_call_that_began_first() {
        let mut syncs = Syncs::default();
        syncs.begin(&begin(1, 10), FileInfo::default(), None);
        syncs.begin(&begin(2, 20), FileInfo::default(), None);
        let cause = |syncs: &Syncs, file: Option<u64>| {
            let data_of = file.map(|inode| begin(0, inode).file);
            syncs.waiting(DeviceNumber(3), data_of).map(|sync| sync.id.0)
        };
        assert_eq!(
            (cause(&syncs, None), cause(&syncs, Some(20)), cause(&syncs, Some(30))),
            (Some(0), Some(1), None)
        );
        assert_eq!(syncs.waiting(DeviceNumber(4), None), None);
        let ended = syncs.end(&Event { time_ns: 9, detail: -5, ..begin(1, 0) }).expect("it began");
        assert_eq!((ended.ended_ns, ended.result, cause(&syncs, None)), (Some(9), -5, Some(1)));
        assert_eq!(syncs.end(&begin(1, 0)), None);
        let ended = syncs.end(&Event { time_ns: 9, detail: END_NOT_TOLD, ..begin(2, 0) }).expect("it began");
        assert_eq!((ended.ended_ns, ended.result), (None, 0), "nobody told");
    }

    #[test]
    fn calls_without_an_end_are_counted_all_the_same_and_cause_nothing_later() {
        let mut syncs = Syncs::default();
        let endless = Event { detail: NO_END, ..begin(1, 10) };
        for _ in 0..3 {
            let told = syncs.begin(&endless, FileInfo::default(), None).expect("told at once");
            assert_eq!((told.ended_ns, told.file.inode), (None, 10));
        }
        assert_eq!((syncs.of_thread(1), syncs.waiting(DeviceNumber(3), None)), (None, None));
        assert_eq!(syncs.begin(&begin(1, 11), FileInfo::default(), None), None);
        let before = syncs.begin(&begin(1, 12), FileInfo::default(), None).expect("its end was not seen");
        assert_eq!((before.file.inode, before.ended_ns, syncs.finish().len()), (11, None, 1));
    }

    #[test]
    fn programs_are_not_taken_for_kernel_threads() {
        assert!(
            works_for_others("jbd2/vda-8")
                && works_for_others("kworker/u4:1")
                && !works_for_others("sqlite3")
        );
    }
}
