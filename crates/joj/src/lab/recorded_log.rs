//! The log of a device that was recorded to be cut, read from the directory where it is kept.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use joj_device::crash::History;
use joj_device::description::DescriptionError;
use joj_device::log_writes::LogReader;
use joj_device::request::RequestKind;
use joj_device::request_log::{LoggedRequest, read_text};
use joj_device::store::Store;
use serde::de::DeserializeOwned;
use thiserror::Error;

/// Where recordings appear in the shared directory: a guest that ends does not take them along.
pub const RECORDINGS_DIRECTORY: &str = "recordings";
/// Ends of the names of a recording's files; the last one is written last, and says that it is whole.
pub const RECORDING_ENDS: [&str; 3] = ["log", "requests", "json"];

/// True where `share` has the whole recording of cell `index`.
pub fn is_recorded(share: &Path, index: usize) -> bool {
    share.join(recording_file(index, "json")).exists()
}

/// Name of a file of the recording of cell `index`: `log` (dm-log-writes), `requests` (text), `json` (written last).
pub fn recording_file(index: usize, end: &str) -> String {
    format!("{RECORDINGS_DIRECTORY}/{index:02}.{end}")
}

/// Why there is no log.
#[derive(Debug, Error)]
pub enum RecordedLogError {
    /// A file of it cannot be read.
    #[error("cannot read the recording: {0}")]
    Read(#[from] io::Error),
    /// What was written meanwhile has another form.
    #[error("cannot read the recording: {0}")]
    Json(#[from] serde_json::Error),
    /// A file of it is not there.
    #[error("the recording is not whole: {0} is missing")]
    Missing(String),
    /// A file of it is not the one that was recorded.
    #[error("the recording is damaged, or has a file of another one: {0} is not what was recorded")]
    Changed(String),
    /// Nothing says of what command it is.
    #[error(
        "the recording does not say what it was made with: {0} is missing, which older versions of joj did not write"
    )]
    MadeWithout(String),
    /// It is one of another command.
    #[error("the recording there was made with {0}")]
    OtherCommand(String),
    /// The command has no description of its device.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// What was done has times or places that the log, or the output, does not have.
    #[error("the recording's files do not belong together: it is damaged")]
    Times,
    /// The files do not belong together.
    #[error("the recording has {entries} entries and {requests} requests: it is damaged")]
    Damaged {
        /// Writes and flushes with their data.
        entries: usize,
        /// The same as lines of text.
        requests: usize,
    },
}

/// What was done while the device was logged.
pub trait Written: DeserializeOwned {
    /// From this moment of the guest's clock on it may be cut.
    fn ready_ns(&self) -> u64;

    /// Where the log is that of two devices: from this byte on it is the second one's.
    fn second_bytes(&self) -> Option<u64> {
        None
    }
}

/// A log, from the moment on from which it may be cut.
#[derive(Debug)]
pub struct RecordedLog<W> {
    /// The device at that moment.
    pub base: Store,
    /// What was asked of it from there, but for reads.
    pub logged: Vec<LoggedRequest>,
    /// The same with data.
    pub history: History,
    /// What was done meanwhile.
    pub written: W,
}

impl<W: Written> RecordedLog<W> {
    /// The recording number `index` in `directory`.
    /// # Errors
    /// Where it is not whole.
    pub fn load(directory: &Path, index: usize) -> Result<RecordedLog<W>, RecordedLogError> {
        let open = |end: &str| File::open(directory.join(recording_file(index, end))).map(BufReader::new);
        let history = LogReader::new(open("log")?).and_then(History::read)?;
        let mut logged = read_text(open("requests")?)?;
        let written: W = serde_json::from_reader(open("json")?)?;
        let (entries, requests) = (history.entries().len(), logged.len());
        if entries != requests {
            return Err(RecordedLogError::Damaged { entries, requests });
        }
        let history = match written.second_bytes() {
            Some(second_bytes) => history.of_two(&mut logged, second_bytes),
            None => history,
        };
        let durable = durable_until(&logged, written.ready_ns(), written.second_bytes());
        let base = history.store(durable);
        let (history, logged) = (history.behind(durable), logged[durable..].to_vec());
        Ok(RecordedLog { base, logged, history, written })
    }
}

/// Entries that were done at `at_ns`, up to and with the last flush and the durable writes right behind it: no cut behind them takes
/// anything of them. Of two devices in one log it is the earlier one of their last flushes.
fn durable_until(logged: &[LoggedRequest], at_ns: u64, second_bytes: Option<u64>) -> usize {
    let done = logged.iter().take_while(|logged| logged.completion.done_ns <= at_ns).count();
    let is_second = |logged: &LoggedRequest| second_bytes.is_some_and(|at| logged.request.offset_bytes >= at);
    let last_flush = |second: bool| {
        let is_flush =
            |logged: &LoggedRequest| logged.request.kind == RequestKind::Flush && is_second(logged) == second;
        logged[..done].iter().rposition(is_flush).map_or(0, |at| at + 1)
    };
    let first = last_flush(false);
    let flushed = if second_bytes.is_some() { first.min(last_flush(true)) } else { first };
    let is_durable = |logged: &&LoggedRequest| {
        matches!(
            logged.request.kind,
            RequestKind::Write { fua: true } | RequestKind::WriteZeroes { fua: true }
        )
    };
    flushed + logged[flushed..done].iter().take_while(is_durable).count()
}
