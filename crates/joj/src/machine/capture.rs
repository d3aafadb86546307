//! A capture by whichever way there is.

use std::path::PathBuf;
use std::time::Duration;

use joj_analysis::trace::event::Event;
use joj_analysis::trace::header::Source;
use joj_analysis::trace::texts::Texts;

use super::bpf_capture::BpfCapture;
use super::capture_selection::Selection;
use super::tracefs_capture::TracefsCapture;

/// A capture under way. Dropping it ends it and leaves nothing behind.
pub enum Capture {
    /// eBPF on tracepoints.
    Bpf(Box<BpfCapture>),
    /// tracefs alone.
    Tracefs(Box<TracefsCapture>),
}

impl Capture {
    /// Begins with eBPF.
    /// # Errors
    /// Why not, and what to grant.
    pub fn bpf(selection: &Selection) -> Result<Self, String> {
        Ok(Self::Bpf(Box::new(BpfCapture::start(selection)?)))
    }

    /// Begins with tracefs; `known_files`: files and directories that shall be known from the start.
    /// # Errors
    /// Why not, and what to grant.
    pub fn tracefs(selection: &Selection, known_files: &[PathBuf]) -> Result<Self, String> {
        Ok(Self::Tracefs(Box::new(TracefsCapture::start(selection, known_files)?)))
    }

    /// What it is called in a trace's head.
    pub fn source(&self) -> Source {
        match self {
            Self::Bpf(_) => Source::Bpf,
            Self::Tracefs(_) => Source::Tracefs,
        }
    }

    /// What this way of capturing does not see here, a sentence each.
    pub fn limits(&self) -> &[String] {
        match self {
            Self::Bpf(capture) => capture.notes(),
            Self::Tracefs(capture) => capture.limits(),
        }
    }

    /// Events that the kernel could not hand over until now.
    pub fn lost(&self) -> u64 {
        match self {
            Self::Bpf(capture) => capture.lost(),
            Self::Tracefs(capture) => capture.lost(),
        }
    }

    /// Hands on what came, in order of time; waits for some up to `timeout`.
    /// # Errors
    /// The kernel's buffers cannot be read.
    pub fn poll(
        &mut self,
        timeout: Duration,
        texts: &mut Texts,
        sink: &mut dyn FnMut(&Event, &Texts),
    ) -> Result<(), String> {
        let mut events = Vec::new();
        let mut keep = |event| events.push(event);
        match self {
            Self::Bpf(capture) => capture.poll(timeout, texts, &mut keep),
            Self::Tracefs(capture) => capture.poll(timeout, texts, &mut keep),
        }?;
        events.iter().for_each(|event| sink(event, texts));
        Ok(())
    }

    /// Ends it and hands on the rest. Returns how many events the kernel could not hand over.
    /// # Errors
    /// As [`Capture::poll`].
    pub fn stop(self, texts: &mut Texts, sink: &mut dyn FnMut(&Event, &Texts)) -> Result<u64, String> {
        let mut events = Vec::new();
        let mut keep = |event| events.push(event);
        let lost = match self {
            Self::Bpf(capture) => capture.stop(texts, &mut keep),
            Self::Tracefs(capture) => capture.stop(texts, &mut keep),
        }?;
        events.iter().for_each(|event| sink(event, texts));
        Ok(lost)
    }
}
