//! Capture with eBPF: programs on the kernel's tracepoints, and the ring buffer through which their events come.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use joj_analysis::trace::event::Event;
use joj_analysis::trace::order::Sorter;
use joj_analysis::trace::texts::Texts;
use libbpf_rs::{RingBuffer, RingBufferBuilder};

use crate::machine::capture::bpf::logged_blocks::LoggedBlocks;
use crate::machine::capture::bpf::object::Attached;
use crate::machine::capture::bpf::record as bpf_record;
use crate::machine::capture::error::BpfError;
use crate::machine::capture::selection::Selection;
use crate::machine::capture::spool::Spool;

/// How much later than its time an event may come: it waits in the ring buffer while another processor finishes its own.
const SORT_WINDOW_NS: u64 = 50_000_000;

/// A capture under way. Dropped without [`BpfCapture::stop`], it detaches its programs.
pub struct BpfCapture {
    // Before `attached`: the reader goes first.
    ring: RingBuffer<'static>,
    attached: Attached,
    sorter: Sorter,
    logged: LoggedBlocks,
}

impl BpfCapture {
    /// Begins to capture; records go to the spool whenever it is polled.
    /// # Errors
    /// Why eBPF cannot be used here, and what to grant; nothing is captured then.
    pub fn start(selection: &Selection, spool: &Arc<Mutex<Spool>>) -> Result<Self, BpfError> {
        let attached = Attached::new(selection)?;
        let ring = {
            let events = attached.events()?;
            let spool = Arc::clone(spool);
            let mut builder = RingBufferBuilder::new();
            let keep = move |bytes: &[u8]| {
                spool.lock().unwrap_or_else(PoisonError::into_inner).append(bytes);
                0
            };
            let unreadable = |error: libbpf_rs::Error| BpfError::RingBuffer(error.to_string());
            builder.add(&events, keep).map_err(unreadable)?;
            builder.build().map_err(unreadable)?
        };
        let sorter = Sorter::new(SORT_WINDOW_NS);
        Ok(Self { ring, attached, sorter, logged: LoggedBlocks::default() })
    }

    /// Waits up to `timeout` (less where much arrives or a signal comes), then takes what came.
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn poll(&mut self, timeout: Duration) -> Result<(), BpfError> {
        // Nobody is woken for single events (bpf/record.h), so the time runs out and what came is fetched then.
        let waited = self.ring.poll_raw(timeout);
        let consumed = if waited < 0 { waited } else { self.ring.consume_raw() };
        if consumed < 0 && consumed != -libc::EINTR {
            let error = std::io::Error::from_raw_os_error(-consumed);
            return Err(BpfError::RingBuffer(error.to_string()));
        }
        Ok(())
    }

    /// Makes an event of a record, and hands on those that no other can precede any more.
    /// # Errors
    /// The bytes are no record: a fault of ours.
    pub fn decode(
        &mut self,
        record: &[u8],
        texts: &mut Texts,
        sink: &mut dyn FnMut(Event),
    ) -> Result<(), BpfError> {
        let mut event = bpf_record::event(record, texts).ok_or(BpfError::Record)?;
        if let Some(block) = bpf_record::block(record) {
            event.detail = self.logged.changed((event.file.device.0, event.offset), block);
        }
        self.sorter.push(event, sink);
        Ok(())
    }

    /// Hands on what waits for its predecessors: there are no more records.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Event)) {
        self.sorter.release(u64::MAX, sink);
    }

    /// What this capture cannot see though others could, a sentence each; empty on most machines.
    pub fn notes(&self) -> &[String] {
        self.attached.notes()
    }

    /// Events that the kernel could not hand up until now.
    pub fn lost(&self) -> u64 {
        self.attached.lost()
    }

    /// Ends the capture and takes the rest. Returns how many events were lost in all of it.
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn stop(&mut self) -> Result<u64, BpfError> {
        self.attached.detach();
        self.poll(Duration::ZERO)?;
        Ok(self.lost())
    }
}

#[cfg(test)]
#[path = "tests/mod.rs"]
mod tests;
