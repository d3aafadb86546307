//! How requests end: complete, back in their queue, or without anybody saying so.

use super::{Attributor, Outcome, OutcomeSink};
use crate::filesystem::class::Class;
use crate::trace::attribution::issued::{ToldRequest, key_sector};
use crate::trace::attribution::request::{BlockRun, Request};
use crate::trace::event::{DeviceNumber, Event, Operation};
use crate::trace::texts::Texts;

/// The one call that may return before what it had written is complete (sync_file_range(2)).
const WAITS_FOR_NOTHING: &str = "sync_file_range";

impl Attributor {
    pub(super) fn requeue(&mut self, event: &Event) {
        let told = self.told(event);
        if let Some(request) = self.issued.requeue(told) {
            if event.operation == Operation::Flush {
                request.runs.iter().for_each(|run| self.barriers.give_back(told.disk, *run));
            }
            for run in request.runs.into_iter().filter(|run| run.bytes > 0) {
                self.queued.push_again(told.disk, event.operation, run);
            }
        }
    }

    pub(super) fn complete(&mut self, event: &Event, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        // What had a flush before or behind it is told complete twice: with its bytes, and without when the flush is over.
        if event.bytes == 0 && event.operation != Operation::Flush && event.detail == 0 {
            return;
        }
        let told = self.told(event);
        let disk = told.disk;
        let Some(mut request) = self.issued.complete(told, event.detail) else { return };
        for run in &mut request.runs {
            if let Some(given) = self.given_again(disk, run).or_else(|| self.flushed_for(disk, run)) {
                self.causes.syncs.pass(run, &given);
                *run = given;
            }
        }
        request.completed_ns = Some(event.time_ns);
        request.error = event.detail;
        match request.operation {
            Operation::Write => self.barriers.written(disk, &request),
            Operation::Flush => self.barriers.flushed(disk, event.time_ns),
            _ => {}
        }
        self.emit(&request, texts, sink);
    }

    /// A thread's call is over. What it waited for is complete, though the capture has not seen it: a kernel may run no program of
    /// eBPF while some process is on the processor, and counts no miss (docs/tracing.md).
    pub(super) fn call_ends(&mut self, event: &Event, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        let Some(sync) = self.causes.syncs.awaiting(event.thread) else { return };
        if event.detail != 0 || !sync.file.is_some() || texts.get(sync.call) == WAITS_FOR_NOTHING {
            return;
        }
        for request in self.issued.take_awaited(sync, self.may_lack) {
            // Else the next flush's completion would be taken for this one's.
            if request.operation == Operation::Flush && !self.issued.flushes(request.disk) {
                self.barriers.flushed(request.disk, event.time_ns);
            }
            self.emit(&Request { untold: true, ..request }, texts, sink);
        }
    }

    /// A request goes to the driver. What must have been over before is complete, though the capture has not seen it.
    pub(super) fn over_before(&mut self, event: &Event, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        for request in self.issued.take_before(self.told(event)) {
            match request.operation {
                Operation::Flush => self.barriers.flushed(request.disk, event.time_ns),
                Operation::Write => self.barriers.written(request.disk, &request),
                _ => {}
            }
            self.emit(&Request { untold: true, ..request }, texts, sink);
        }
    }

    /// A call that returned before something was complete did not wait for that: what a kernel thread wrote was for another. `None` for
    /// what stands with it all the same, as its own thread handed it over.
    pub(super) fn given_again(&self, disk: DeviceNumber, run: &BlockRun) -> Option<BlockRun> {
        let filesystem = self.places.filesystem(disk, run.sector);
        let cause =
            self.causes.again(run, filesystem.map(|filesystem| self.places.file_device(filesystem)))?;
        let for_a_journal = cause.is_some_and(|sync| self.for_a_journal(sync));
        Some(BlockRun {
            cause: cause.map(|sync| sync.id),
            transaction: cause.and_then(|sync| sync.transaction),
            journal_of_journal: run.class == Class::Journal && for_a_journal,
            for_process: cause.map_or(0, |sync| sync.process),
            ..*run
        })
    }

    /// For whom a flush was that stands with a call of its own thread which has returned before it was over.
    fn flushed_for(&self, disk: DeviceNumber, run: &BlockRun) -> Option<BlockRun> {
        let is_under_way = |sync| self.causes.syncs.is_under_way(sync);
        let is_over = run.bytes == 0 && run.cause.is_some_and(|sync| !is_under_way(sync));
        if is_over { self.barriers.also_for(disk, is_under_way) } else { None }
    }

    fn told(&self, event: &Event) -> ToldRequest {
        let disk = self.places.whole(event.device);
        let Event { operation, bytes, .. } = *event;
        ToldRequest { disk, operation, sector: key_sector(event), slot: event.slot(), bytes }
    }

    /// Hands on runs that wait since before `before_ns`, and requests whose completion nobody told.
    pub(super) fn give_up(&mut self, before_ns: u64, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        let is_end = before_ns == u64::MAX;
        for (disk, operation, run) in self.queued.take_older(before_ns) {
            let request = Request {
                // A write that waits for the flush before it, say.
                under_way: is_end && self.issued.issues(disk),
                issued_ns: run.queued_ns,
                disk,
                sector: run.sector,
                bytes: run.bytes,
                operation,
                issued: run.intended,
                command: run.command,
                runs: vec![run],
                unissued: true,
                ..Request::default()
            };
            self.emit(&request, texts, sink);
        }
        self.issued.take_surplus().iter().for_each(|request| self.emit(request, texts, sink));
        self.causes.syncs.give_up(before_ns);
        self.tell_settled(texts, sink);
    }

    pub(super) fn emit(&mut self, request: &Request, texts: &Texts, sink: &mut OutcomeSink<'_>) {
        if request.operation != Operation::Read && !request.under_way {
            self.causes.count(request);
            self.transactions.count(request);
        }
        sink(Outcome::Request(request), texts);
        self.tell_settled(texts, sink);
    }
}
