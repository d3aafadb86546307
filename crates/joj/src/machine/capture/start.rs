//! A capture by whichever way there is: taken into a spool while it lasts, analysed when it is over.
//!
//! ```text
//! the kernel's buffers -> poll -> spool -> (what is over its bound) -> sink        while the command runs
//!                                 spool -> rest: in order, as events -> sink       when it is over
//! ```

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use joj_analysis::trace::event::{DeviceNumber, Event};
use joj_analysis::trace::header::Source;
use joj_analysis::trace::texts::Texts;

use crate::machine::capture::bpf::capture::BpfCapture;
use crate::machine::capture::error::{CaptureError, SpoolError};
use crate::machine::capture::event_bytes;
use crate::machine::capture::selection::Selection;
use crate::machine::capture::spool::{self, Spool};
use crate::machine::capture::tracefs::capture::TracefsCapture;

/// A capture under way. Dropping it ends it and leaves nothing behind.
pub struct Capture {
    way: Way,
    spool: Arc<Mutex<Spool>>,
    texts: Texts,
}

enum Way {
    /// The spool holds its records as the kernel gave them.
    Bpf(Box<BpfCapture>),
    /// The spool holds events: who and where files are is asked while they are there.
    Tracefs(Box<TracefsCapture>),
}

/// Takes events in order of time.
pub type Sink<'a> = dyn FnMut(&Event, &Texts) + 'a;

impl Capture {
    /// Begins with eBPF.
    /// # Errors
    /// Why not, and what to grant.
    pub fn bpf(selection: &Selection, spool: Spool) -> Result<Self, CaptureError> {
        let spool = Arc::new(Mutex::new(spool));
        let way = Way::Bpf(Box::new(BpfCapture::start(selection, &spool)?));
        Ok(Self { way, spool, texts: Texts::default() })
    }

    /// Begins with tracefs; `known_files`: files and directories that shall be known from the start.
    /// # Errors
    /// Why not, and what to grant.
    pub fn tracefs(
        selection: &Selection,
        known_files: &[PathBuf],
        spool: Spool,
    ) -> Result<Self, CaptureError> {
        let way = Way::Tracefs(Box::new(
            TracefsCapture::start(selection, known_files).map_err(CaptureError::from)?,
        ));
        Ok(Self { way, spool: Arc::new(Mutex::new(spool)), texts: Texts::default() })
    }

    /// What it is called in a trace's head.
    pub fn source(&self) -> Source {
        match self.way {
            Way::Bpf(_) => Source::Bpf,
            Way::Tracefs(_) => Source::Tracefs,
        }
    }

    /// What this way of capturing does not see here, a sentence each.
    pub fn limits(&self) -> &[String] {
        match &self.way {
            Way::Bpf(capture) => capture.notes(),
            Way::Tracefs(capture) => capture.limits(),
        }
    }

    /// The filesystem with this device was unmounted: what is captured of it from now on has no name.
    pub fn forget(&mut self, device: DeviceNumber) {
        if let Way::Tracefs(capture) = &mut self.way {
            capture.forget(device);
        }
    }

    /// Events that the kernel could not hand over until now.
    pub fn lost(&self) -> u64 {
        match &self.way {
            Way::Bpf(capture) => capture.lost(),
            Way::Tracefs(capture) => capture.lost(),
        }
    }

    /// Events that it handed over until now.
    pub fn taken(&self) -> u64 {
        self.spool().records()
    }

    /// The directory of the temporary file, once there is one.
    pub fn spilled_to(&self) -> Option<PathBuf> {
        self.spool().spilled_to().map(Path::to_owned)
    }

    /// Why the spool takes no more without being analysed, said once.
    pub fn problem(&self) -> Option<String> {
        self.spool().problem()
    }

    /// Takes what came; waits for it up to `timeout`. Hands on only what the spool has no room for.
    /// # Errors
    /// The kernel's buffers or the spool cannot be read.
    pub fn poll(&mut self, timeout: Duration, sink: &mut Sink<'_>) -> Result<(), CaptureError> {
        match &mut self.way {
            Way::Bpf(capture) => capture.poll(timeout)?,
            Way::Tracefs(capture) => {
                let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
                let polled = capture.poll(timeout, &mut self.texts, &mut |event| keep(&mut spool, &event));
                polled.map_err(CaptureError::from)?;
            }
        }
        while self.spool().is_over() {
            self.hand_on(sink)?;
        }
        Ok(())
    }

    /// Ends the capture; what was taken waits for [`Capture::drain`]. Returns how many events the kernel could not hand over.
    /// # Errors
    /// As [`Capture::poll`].
    pub fn stop(&mut self) -> Result<u64, CaptureError> {
        match &mut self.way {
            Way::Bpf(capture) => Ok(capture.stop()?),
            Way::Tracefs(capture) => {
                let mut spool = self.spool.lock().unwrap_or_else(PoisonError::into_inner);
                let lost = capture.stop(&mut self.texts, &mut |event| keep(&mut spool, &event));
                lost.map_err(CaptureError::from)
            }
        }
    }

    /// Hands on everything that waits, after [`Capture::stop`]; `progress` is told the share that is done and says whether to go
    /// on. Returns the names that the events mention.
    /// # Errors
    /// The spool cannot be read, or `progress` did not want to go on.
    pub fn drain(
        mut self,
        progress: &mut dyn FnMut(f64) -> ControlFlow<()>,
        sink: &mut Sink<'_>,
    ) -> Result<Texts, CaptureError> {
        let (mut done, all) = (0.0, self.spool().waiting());
        while self.hand_on(sink)? {
            done += 1.0;
            if progress(done / all.max(1) as f64).is_break() {
                return Err(CaptureError::GivenUp);
            }
        }
        let Self { way, texts, .. } = &mut self;
        if let Way::Bpf(capture) = way {
            capture.finish(&mut |event| sink(&event, texts));
        }
        Ok(self.texts)
    }

    /// Hands on the oldest block; false where there is none.
    fn hand_on(&mut self, sink: &mut Sink<'_>) -> Result<bool, CaptureError> {
        let Some(block) = self.spool().take()? else { return Ok(false) };
        let mut events = Vec::new();
        for record in spool::records(&block) {
            match &mut self.way {
                Way::Bpf(capture) => {
                    capture.decode(record, &mut self.texts, &mut |event| events.push(event))?;
                }
                Way::Tracefs(_) => {
                    let event = event_bytes::decode(record);
                    events.push(event.ok_or(SpoolError::NoEvent)?);
                }
            }
        }
        events.iter().for_each(|event| sink(event, &self.texts));
        Ok(true)
    }

    fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep(spool: &mut Spool, event: &Event) {
    spool.append(&event_bytes::encode(event));
}
