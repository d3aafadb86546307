//! What a measurement stands on: an emulated device and the filesystem on it, set up at the begin of a second.

use joj_device::device::EmulatedDevice;
use joj_device::request_log::RequestSink;

use crate::lab::guest::emulated::Emulated;
use crate::lab::guest::error::GuestError;
use crate::lab::guest::volume::Volume;
use crate::lab::job::{LabVolume, Setting};
use crate::machine::proc::clock::pause_until_second;

/// Capacity of the device of an external journal. mkfs.ext4 makes the journal as large as the device and writes all of it.
pub const JOURNAL_BYTES: u64 = 64 << 20;

/// Device and filesystem, which go with the value. Fields are dropped in this order.
#[derive(Debug)]
pub struct Stand {
    _volume: Volume,
    _devices: Vec<Emulated>,
}

impl Stand {
    /// Sets up `wanted`, empty and mounted.
    /// # Errors
    /// What kernel or mkfs said; nothing is left of it.
    pub fn set_up(wanted: &LabVolume, setting: &Setting) -> Result<Stand, GuestError> {
        Stand::watched(wanted, setting, || ())
    }

    /// The same, with all requests of each device told to a sink of `sink`.
    /// # Errors
    /// As [`Stand::set_up`].
    pub fn watched<S: RequestSink + Send + 'static>(
        wanted: &LabVolume,
        setting: &Setting,
        sink: impl Fn() -> S,
    ) -> Result<Stand, GuestError> {
        align();
        let start = |number, name: &String, bytes: u64| {
            let device = setting.device(name)?;
            Emulated::serve(number, &device, EmulatedDevice::new(&device, bytes, sink()))
        };
        let data = start(0, &wanted.device, setting.device_bytes)?;
        let journal = wanted.journal_device.as_ref().map(|name| start(1, name, JOURNAL_BYTES)).transpose()?;
        let volume = Volume::make(wanted, data.node(), journal.as_ref().map(Emulated::node))?;
        Ok(Stand { _volume: volume, _devices: [Some(data), journal].into_iter().flatten().collect() })
    }
}

/// Waits for the next full second. The shared directory takes this machine's time, so a cell begins at another moment of the
/// kernel's tick in each session: an inode's time that changes, or not, between two writes is a block more or less to sync.
pub fn align() {
    pause_until_second();
}
