//! What is to be cut: the log of a device while something is written to it, kept where the next guest finds it, too.

use std::fs::{self, File};
use std::io::{self, BufWriter, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use joj_device::assembly::Assembly;
use joj_device::device::EmulatedDevice;
use joj_device::log_writes::LogWrites;
use joj_device::request::RequestKind;
use joj_device::request_log::{LoggedRequest, RequestSink, TextLog};
use serde::Serialize;

use crate::lab::guest::emulated::Emulated;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::stand::align;
use crate::lab::guest::volume::Volume;
use crate::lab::job::{LabVolume, guest_path};
use crate::lab::recorded_log::recording_file;

/// Both forms of a log, in memory: writing them to the share would take the writer's time.
#[derive(Debug)]
pub struct Log {
    requests: TextLog<Vec<u8>>,
    data: LogWrites<Cursor<Vec<u8>>>,
}

#[derive(Debug, Clone)]
struct SharedLog {
    log: Arc<Mutex<Option<Log>>>,
    /// The device has no volatile cache.
    is_durable: bool,
}

impl RequestSink for SharedLog {
    fn record(&mut self, logged: &LoggedRequest, data: &[u8]) -> io::Result<()> {
        if logged.request.kind == RequestKind::Read {
            return Ok(());
        }
        let logged = &if self.is_durable { logged.durable() } else { *logged };
        let mut log = self.log.lock().map_err(|error| io::Error::other(error.to_string()))?;
        let Some(log) = log.as_mut() else { return Ok(()) };
        log.requests.record(logged, data)?;
        log.data.record(logged, data)
    }
}

/// A filesystem on a device that is logged; both go with the value.
#[derive(Debug)]
pub struct Recorder {
    _volume: Volume,
    emulated: Emulated,
    log: SharedLog,
}

impl Recorder {
    /// Makes the filesystem that `volume` names on `assembly`, a device of `bytes`, and mounts it.
    /// # Errors
    /// What could not be set up; nothing is left of it.
    pub fn begin(volume: &LabVolume, assembly: &Assembly, bytes: u64) -> Result<Recorder, GuestError> {
        let problem = &cannot("record");
        let log = Log {
            requests: TextLog::new(Vec::new()).map_err(problem)?,
            data: LogWrites::new(Cursor::new(Vec::new())).map_err(problem)?,
        };
        let is_durable = !assembly.has_volatile_cache();
        let log = SharedLog { log: Arc::new(Mutex::new(Some(log))), is_durable };
        align();
        let emulated = Emulated::serve(0, assembly, EmulatedDevice::new(assembly, bytes, log.clone()))?;
        let made = Volume::make(volume, emulated.node(), None)?;
        align();
        Ok(Recorder { _volume: made, emulated, log })
    }

    /// All that was written is on the medium, with a flush even where nothing is left to write: no cut takes anything of it.
    /// # Errors
    /// As fsync(2).
    pub fn sync(&self) -> Result<(), GuestError> {
        let problem = &cannot("sync what is there before");
        let volume = File::open(guest_path::VOLUME).map_err(problem)?;
        rustix::fs::syncfs(&volume).map_err(|error| problem(error.into()))?;
        File::open(self.emulated.node()).and_then(|device| device.sync_all()).map_err(problem)
    }

    /// Ends the log: what happens from now on, unmounting above all, is no part of it.
    /// # Errors
    /// It is gone.
    pub fn take(&self) -> Result<Log, GuestError> {
        let log = self.log.log.lock().ok().and_then(|mut log| log.take());
        log.ok_or(GuestError::NoLog)
    }
}

impl Log {
    /// Leaves the files of recording `index` in `share`, and `written`, which says what was done meanwhile.
    /// # Errors
    /// There is no room; nothing counts as recorded then.
    pub fn save(self, share: &Path, index: usize, written: &impl Serialize) -> Result<(), GuestError> {
        let problem = &cannot("record");
        let file = |end: &str| share.join(recording_file(index, end));
        fs::write(file("log"), self.data.finish().map_err(problem)?.into_inner()).map_err(problem)?;
        fs::write(file("requests"), self.requests.finish().map_err(problem)?).map_err(problem)?;
        // Last: where it is, the others are.
        let mut events = BufWriter::new(File::create(file("json")).map_err(problem)?);
        serde_json::to_writer(&mut events, written)?;
        events.flush().map_err(problem)
    }
}
