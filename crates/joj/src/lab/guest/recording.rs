//! What is to be cut: the log of a device while something is written to it, kept where the next guest finds it, too.

use std::fs::{self, File};
use std::io::{self, BufWriter, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use joj_device::device::EmulatedDevice;
use joj_device::log_writes::LogWrites;
use joj_device::request::RequestKind;
use joj_device::request_log::{LoggedRequest, RequestSink, TextLog};
use serde::Serialize;

use crate::lab::guest::console::WrittenTeller;
use crate::lab::guest::emulated::Emulated;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::stand::{JOURNAL_BYTES, align};
use crate::lab::guest::volume::Volume;
use crate::lab::job::{LabVolume, Setting, guest_path};
use crate::lab::recorded_log::recording_file;

/// Both forms of a log, in memory: writing them to the share would take the writer's time.
#[derive(Debug)]
pub struct Log {
    requests: TextLog<Vec<u8>>,
    written: WrittenTeller,
    data: LogWrites<Cursor<Vec<u8>>>,
}

#[derive(Debug, Clone)]
struct SharedLog {
    log: Arc<Mutex<Option<Log>>>,
    /// The device has no volatile cache.
    is_durable: bool,
    /// Where the device's first byte is in the log, which two devices may share.
    begin_bytes: u64,
}

impl RequestSink for SharedLog {
    fn record(&mut self, logged: &LoggedRequest, data: &[u8]) -> io::Result<()> {
        if logged.request.kind == RequestKind::Read {
            return Ok(());
        }
        let mut logged = if self.is_durable { logged.durable() } else { *logged };
        logged.request.offset_bytes += self.begin_bytes;
        let logged = &logged;
        let mut log = self.log.lock().map_err(|error| io::Error::other(error.to_string()))?;
        let Some(log) = log.as_mut() else { return Ok(()) };
        log.written.record(logged, data)?;
        log.requests.record(logged, data)?;
        log.data.record(logged, data)
    }
}

/// A filesystem on a device that is logged; both go with the value.
#[derive(Debug)]
pub struct Recorder {
    _volume: Volume,
    /// The device, and that of its external journal.
    emulated: Vec<Emulated>,
    /// Says how much is written, once it is begun.
    pub written: WrittenTeller,
    log: Arc<Mutex<Option<Log>>>,
}

impl Recorder {
    /// Makes the filesystem that `volume` names on its device, with its journal on another one if it has one, and mounts it. The journal's
    /// device begins in the log where the other one ends.
    /// # Errors
    /// What could not be set up; nothing is left of it.
    pub fn begin(volume: &LabVolume, setting: &Setting) -> Result<Recorder, GuestError> {
        let problem = &cannot("record");
        let written = WrittenTeller::new("recording");
        let log = Log {
            requests: TextLog::new(Vec::new()).map_err(problem)?,
            written: written.clone(),
            data: LogWrites::new(Cursor::new(Vec::new())).map_err(problem)?,
        };
        let log = Arc::new(Mutex::new(Some(log)));
        align();
        let serve = |number, name: &str, bytes, begin_bytes| {
            let assembly = setting.device(name)?;
            let is_durable = !assembly.has_volatile_cache();
            let log = SharedLog { log: Arc::clone(&log), is_durable, begin_bytes };
            Emulated::serve(number, &assembly, EmulatedDevice::new(&assembly, bytes, log))
        };
        let mut emulated = vec![serve(0, &volume.device, setting.device_bytes, 0)?];
        if let Some(journal) = &volume.journal_device {
            emulated.push(serve(1, journal, JOURNAL_BYTES, setting.device_bytes)?);
        }
        let made = Volume::make(volume, emulated[0].node(), emulated.get(1).map(Emulated::node))?;
        align();
        Ok(Recorder { _volume: made, emulated, written, log })
    }

    /// All that was written is on the medium, with a flush even where nothing is left to write: no cut takes anything of it.
    /// # Errors
    /// As fsync(2).
    pub fn sync(&self) -> Result<(), GuestError> {
        let problem = &cannot("sync what is there before");
        let volume = File::open(guest_path::VOLUME).map_err(problem)?;
        rustix::fs::syncfs(&volume).map_err(|error| problem(error.into()))?;
        let sync = |device: &Emulated| File::open(device.node()).and_then(|device| device.sync_all());
        self.emulated.iter().try_for_each(sync).map_err(problem)
    }

    /// Ends the log: what happens from now on, unmounting above all, is no part of it.
    /// # Errors
    /// It is gone.
    pub fn take(&self) -> Result<Log, GuestError> {
        let log = self.log.lock().ok().and_then(|mut log| log.take());
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
