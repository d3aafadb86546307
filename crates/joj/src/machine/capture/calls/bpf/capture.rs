//! The eBPF programs at work, and what they hand up.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use joj_analysis::recording::system_calls::captured::called::CalledName;
use joj_analysis::recording::system_calls::captured::capture::CallCapture;
use joj_analysis::recording::system_calls::captured::{CallSeen, CapturedCall, CapturedEvent};
use libbpf_rs::{Link, MapCore, MapFlags, Object, RingBuffer, RingBufferBuilder};

use super::arrived::ArrivedRecords;
use super::record::{Decoder, descriptor};
use super::table;
use crate::machine::capture::bpf::object::{Aligned, lost, map, open_with, refusal};
use crate::machine::capture::calls::error::CallCaptureError;
use crate::machine::capture::calls::{self, held};
use crate::machine::capture::error::BpfError;
use crate::machine::proc::clock::shared_ns;
use crate::machine::proc::process_number;

#[cfg(bpf_object)]
static OBJECT: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/recording.bpf.o")));
#[cfg(not(bpf_object))]
static OBJECT: &Aligned<[u8]> = &Aligned([]);

/// Calls whose end was not seen are counted in the place of a code's first kind with this mark.
const UNFINISHED: u32 = 1;
/// In the place of a code: writes to a SQLite log whose frames' heads could not be looked at.
const FRAMES_UNSEEN: u32 = 126;

const BUFFER_BYTES_MIN: u32 = 64 << 10;
const BUFFER_BYTES_MAX: u32 = 1 << 30;

/// Programs at work. Dropped, they are gone.
pub struct BpfCalls {
    // Before `object`: the reader goes first.
    ring: RingBuffer<'static>,
    links: Vec<Link>,
    object: Object,
    came: Arc<Mutex<ArrivedRecords>>,
    capture: CallCapture,
}

impl BpfCalls {
    /// Follows the next command that this process starts. `buffer_bytes`: room for what waits for [`BpfCalls::poll`].
    /// # Errors
    /// Why eBPF cannot be used here.
    pub fn command(buffer_bytes: u32) -> Result<Self, CallCaptureError> {
        Self::start(std::process::id(), buffer_bytes)
    }

    /// Follows a process that runs, with its threads and children.
    /// # Errors
    /// It is not there, or eBPF cannot be used.
    pub fn process(process: u32, buffer_bytes: u32) -> Result<Self, CallCaptureError> {
        let mut calls = Self::start(0, buffer_bytes)?;
        let processes = held::with_descendants(process);
        if held::threads(process).is_err() {
            return Err(CallCaptureError::NoProcess(process));
        }
        held::tell_running(&mut calls.capture, &processes);
        for (path, key) in held::logs_of(&processes) {
            calls.know_log(&path, key);
        }
        let followed = map(&calls.object, "processes")?;
        for process in processes {
            let result = followed.update(&process.to_ne_bytes(), &[1], MapFlags::ANY);
            result.map_err(|error| BpfError::TooManyDevices(error.to_string()))?;
        }
        Ok(calls)
    }

    fn start(parent: u32, buffer_bytes: u32) -> Result<Self, CallCaptureError> {
        if OBJECT.0.is_empty() {
            let reason = option_env!("JOJ_NO_BPF").unwrap_or("without clang");
            return Err(BpfError::NotBuilt(reason).into());
        }
        if !process_number::is_in_first_namespace() {
            return Err(CallCaptureError::Namespace);
        }
        // The kernel takes powers of two, of whole pages.
        let buffer_bytes = buffer_bytes.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX).next_power_of_two();
        let settings = table::bytes(parent, buffer_bytes / 4);
        let mut open = open_with(&OBJECT.0, (".rodata.recording", &settings))?;
        let buffer = open.maps_mut().find(|map| map.name() == "calls");
        buffer
            .ok_or(BpfError::NoMap("calls"))?
            .set_max_entries(buffer_bytes)
            .map_err(|error| refusal("set up the eBPF programs", &error))?;
        open.progs_mut().for_each(|mut program| program.set_autoload(true));
        let object = open.load().map_err(|error| refusal("load the eBPF programs", &error))?;
        let mut links = Vec::new();
        for program in object.progs_mut() {
            links.push(program.attach().map_err(|error| refusal("attach the eBPF programs", &error))?);
        }
        let came = Arc::new(Mutex::new(ArrivedRecords::default()));
        let ring = {
            let records = Arc::clone(&came);
            let calls = map(&object, "calls")?;
            let keep = move |bytes: &[u8]| {
                records.lock().unwrap_or_else(PoisonError::into_inner).take(bytes);
                0
            };
            let unreadable = |error: libbpf_rs::Error| BpfError::RingBuffer(error.to_string());
            let mut builder = RingBufferBuilder::new();
            builder.add(&calls, keep).map_err(unreadable)?;
            builder.build().map_err(unreadable)?
        };
        let capture = CallCapture::new(shared_ns());
        Ok(Self { ring, links, object, came, capture })
    }

    /// Tells which process the command is, and what it began with.
    pub fn tell_command(&mut self, process: u32, inherited: &held::Inherited) {
        held::tell_command(&mut self.capture, process, inherited);
    }

    /// Waits up to `timeout`, then takes what came.
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn poll(&mut self, timeout: Duration) -> Result<(), CallCaptureError> {
        let waited = self.ring.poll_raw(timeout);
        let consumed = if waited < 0 { waited } else { self.ring.consume_raw() };
        if consumed < 0 && consumed != -libc::EINTR {
            let error = std::io::Error::from_raw_os_error(-consumed);
            return Err(BpfError::RingBuffer(error.to_string()).into());
        }
        let logs = self.came().logs();
        for record in logs {
            let event = Decoder::default().event(&record).map_err(|()| BpfError::Record)?;
            event.iter().for_each(|event| self.look_at_log(event));
        }
        Ok(())
    }

    fn came(&self) -> MutexGuard<'_, ArrivedRecords> {
        self.came.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A log that is opened and was there before: which pages it has its own header tells.
    fn look_at_log(&self, event: &CapturedEvent) {
        let CapturedEvent::Call(call) = event else { return };
        let is_opened = matches!(call.seen, CallSeen::Opened { is_created: false, bytes: 32.., .. });
        let Some(path) = call.paths[0].as_deref().filter(|path| is_opened && path.ends_with(b"-wal")) else {
            return;
        };
        let path = Path::new(std::ffi::OsStr::from_bytes(path));
        let path = Path::new(&format!("/proc/{}/cwd", call.process)).join(path);
        if let Ok(status) = std::fs::metadata(&path) {
            self.know_log(&path, (status.ino(), status.dev()));
        }
    }

    fn know_log(&self, path: &Path, (inode, device): (u64, u64)) {
        let Some(page_bytes) = held::page_bytes_of_log(path) else { return };
        // The kernel's own number of a device is not the one that stat tells.
        let device = u64::from(rustix::fs::major(device)) << 20 | u64::from(rustix::fs::minor(device));
        let key = [inode.to_ne_bytes(), device.to_ne_bytes()].concat();
        if let Ok(logs) = map(&self.object, "logs") {
            // What the program itself wrote is newer.
            let _ = logs.update(&key, &page_bytes.to_ne_bytes(), MapFlags::NO_EXIST);
        }
    }

    /// How many events there are.
    pub fn events(&self) -> usize {
        self.came().events()
    }

    /// How many processes are followed.
    pub fn processes(&self) -> usize {
        map(&self.object, "processes").map_or(0, |processes| processes.keys().count())
    }

    /// Events that the kernel could not hand up.
    pub fn lost(&self) -> u64 {
        lost(&self.object)
    }

    /// Ends the capture: what was captured, and how many events were lost.
    /// # Errors
    /// The ring buffer cannot be read.
    pub fn finish(mut self) -> Result<(CallCapture, u64), CallCaptureError> {
        self.links.clear();
        self.poll(Duration::ZERO)?;
        let came = std::mem::take(&mut *self.came());
        let mut decoder = Decoder::default();
        came.hand_over(|record| {
            let event = decoder.event(record).map_err(|()| BpfError::Record)?;
            event.into_iter().for_each(|event| self.capture.push(event));
            Ok::<(), BpfError>(())
        })?;
        let lost = self.lost();
        let counts = map(&self.object, "counts")?;
        for key in 0_u32..1024 {
            let values = counts.lookup_percpu(&key.to_ne_bytes(), MapFlags::ANY).ok().flatten();
            let values = values.unwrap_or_default();
            let calls: u64 = values
                .iter()
                .filter_map(|value| value.first_chunk())
                .map(|value| u64::from_ne_bytes(*value))
                .sum();
            if calls > 0 {
                counted(&mut self.capture, key, calls);
            }
        }
        Ok((self.capture, lost))
    }
}

/// Tells how many calls were counted under a key of the map `counts`.
fn counted(capture: &mut CallCapture, key: u32, count: u64) {
    let (code, kind, mark) = (key >> 3, key >> 1 & 3, key & 1);
    if code == FRAMES_UNSEEN {
        capture.counted(calls::FRAMES_UNSEEN, count);
        return;
    }
    let Some(called) = u8::try_from(code).ok().and_then(CalledName::from_code) else { return };
    if called != CalledName::Mmap && mark == UNFINISHED {
        capture.counted(&format!("{}: its end was not seen", called.text()), count);
        return;
    }
    // What mmap is asked for: PROT_WRITE, MAP_SHARED.
    let arguments = [0, 0, u64::from(mark) << 1, if mark == 1 { 1 } else { 2 }, 0, 0];
    let descriptor = descriptor(u8::try_from(kind).unwrap_or(0));
    let like = CapturedCall { called, descriptor, arguments, ..CapturedCall::default() };
    capture.counted_calls(&like, count);
}
