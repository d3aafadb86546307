//! What is to be cut: the log of a device while a writer commits on it, kept where the next guest finds it, too.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use joj_analysis::lab::cell::Cell;
use joj_device::assembly::Assembly;
use joj_device::crash::History;
use joj_device::device::EmulatedDevice;
use joj_device::log_writes::{LogReader, LogWrites};
use joj_device::request::RequestKind;
use joj_device::request_log::{LoggedRequest, RequestSink, TextLog, read_text};
use joj_device::store::Store;

use crate::bench::worker::crash::writer::CrashWritten;
use crate::lab::guest::emulated::Emulated;
use crate::lab::guest::error::{GuestError, cannot};
use crate::lab::guest::stand::align;
use crate::lab::guest::volume::Volume;
use crate::lab::job::LabVolume;
use crate::lab::jobs::crash::{RecordedEvents, recording_file};

/// A log, from the moment on at which the empty table was durable.
#[derive(Debug)]
pub struct Recording {
    /// The device at that moment.
    pub base: Store,
    /// What was asked of it from there, but for reads.
    pub logged: Vec<LoggedRequest>,
    /// The same with data.
    pub history: History,
    /// What the writer did.
    pub written: CrashWritten,
}

/// Both forms of a log, in memory: writing them to the share would take the writer's time.
#[derive(Debug)]
struct Log {
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

/// Records cell `index`: makes its filesystem on a device of `bytes`, mounts it, lets `write` write, and leaves the files of the
/// recording in `share`.
/// # Errors
/// What could not be set up, or `write`'s; nothing counts as recorded then.
pub fn record(
    share: &Path,
    index: usize,
    cell: &Cell,
    assembly: &Assembly,
    bytes: u64,
    write: impl FnOnce() -> Result<CrashWritten, GuestError>,
) -> Result<(), GuestError> {
    let problem = &cannot("record");
    let log = Log {
        requests: TextLog::new(Vec::new()).map_err(problem)?,
        data: LogWrites::new(Cursor::new(Vec::new())).map_err(problem)?,
    };
    let is_durable = !assembly.has_volatile_cache();
    let shared = SharedLog { log: Arc::new(Mutex::new(Some(log))), is_durable };
    let written = {
        align();
        let device = EmulatedDevice::new(assembly, bytes, shared.clone());
        let emulated = Emulated::serve(0, assembly, device)?;
        let _volume = Volume::make(&LabVolume::of(cell), emulated.node(), None)?;
        align();
        let written = write()?;
        // Unmounting is not recorded: no cut lies there.
        let log = shared.log.lock().ok().and_then(|mut log| log.take());
        (written, log.ok_or(GuestError::NoLog)?)
    };
    let (written, log) = written;
    let file = |end: &str| share.join(recording_file(index, end));
    fs::write(file("log"), log.data.finish().map_err(problem)?.into_inner()).map_err(problem)?;
    fs::write(file("requests"), log.requests.finish().map_err(problem)?).map_err(problem)?;
    // Last: where it is, the others are.
    let mut events = BufWriter::new(File::create(file("json")).map_err(problem)?);
    serde_json::to_writer(&mut events, &written)?;
    events.flush().map_err(problem)
}

impl Recording {
    /// The recording of cell `index` in `share`.
    /// # Errors
    /// Where it is not whole.
    pub fn load(share: &Path, index: usize) -> Result<Recording, GuestError> {
        let problem = &cannot("read the recording");
        let open = |end: &str| File::open(share.join(recording_file(index, end))).map(BufReader::new);
        let history =
            LogReader::new(open("log").map_err(problem)?).and_then(History::read).map_err(problem)?;
        let logged = read_text(open("requests").map_err(problem)?).map_err(problem)?;
        let written: RecordedEvents = serde_json::from_reader(open("json").map_err(problem)?)?;
        if history.entries().len() != logged.len() {
            return Err(GuestError::DamagedRecording {
                entries: history.entries().len(),
                requests: logged.len(),
            });
        }
        let durable = durable_until(&logged, written.ready_ns);
        let base = history.store(durable);
        let (history, logged) = (history.behind(durable), logged[durable..].to_vec());
        Ok(Recording { base, logged, history, written })
    }
}

/// Entries that were done at `at_ns`, up to and with the last flush and the durable writes right behind it: no cut behind them takes
/// anything of them.
fn durable_until(logged: &[LoggedRequest], at_ns: u64) -> usize {
    let done = logged.iter().take_while(|logged| logged.completion.done_ns <= at_ns).count();
    let is_flush = |logged: &LoggedRequest| logged.request.kind == RequestKind::Flush;
    let flushed = logged[..done].iter().rposition(is_flush).map_or(0, |at| at + 1);
    let is_durable = |logged: &&LoggedRequest| {
        matches!(
            logged.request.kind,
            RequestKind::Write { fua: true } | RequestKind::WriteZeroes { fua: true }
        )
    };
    flushed + logged[flushed..done].iter().take_while(is_durable).count()
}
