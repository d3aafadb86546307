//! The emulated machine as jobs and results tell of it.

use joj_analysis::lab::result::LabMachine;

use crate::bench::ask::Asker;
use crate::bench::builds::SYSTEM_LIBRARY;
use crate::bench::worker::libraries::{DescribeTask, Libraries};
use crate::lab::error::MachineError;
use crate::lab::guest_pool::GuestPool;
use crate::lab::image::archive::Contents;
use crate::lab::image::libraries;
use crate::lab::job::{Setting, guest_path};
use crate::lab::shipped::devices;
use crate::lab::shipped::error::ShippedError;
use crate::machine::proc::worker_process::Workers;
use crate::machine::qemu::process as qemu;

/// Capacity of an emulated device, which is in the guest's memory: room for every cell, and blocks for the filesystem's own layout.
pub const DEVICE_BYTES: u64 = 1 << 30;

/// What every job has.
/// # Errors
/// Where a device is none.
pub fn setting<'a>(
    contents: &Contents,
    device_names: impl Iterator<Item = &'a String>,
    device_bytes: u64,
) -> Result<Setting, ShippedError> {
    let sqlite = contents.sqlite.first().and_then(|file| file.file_name()).unwrap_or_default();
    Ok(Setting {
        sqlite: format!("{}/{}", guest_path::LIBRARIES, sqlite.to_string_lossy()),
        devices: devices::of(device_names)?,
        device_bytes,
    })
}

/// The machine of `pool`; the guest tells its kernel later.
/// # Errors
/// Where a SQLite build does not say its version.
pub fn told(pool: &GuestPool) -> Result<LabMachine, MachineError> {
    Ok(LabMachine {
        joj: env!("CARGO_PKG_VERSION").to_owned(),
        qemu: pool.qemu.clone(),
        kernel: pool.packages.release.clone(),
        clock: qemu::CLOCK.to_owned(),
        sqlite: sqlite_versions(&pool.contents)?,
    })
}

/// Versions of the SQLite builds that cells may load: asked here, as the guest loads the same files.
fn sqlite_versions(contents: &Contents) -> Result<Vec<(String, String)>, MachineError> {
    let workers = Workers::new(Vec::new())?;
    let ask = |name: &str, sqlite: Option<String>| {
        let task = DescribeTask { libraries: Libraries { sqlite, ..Libraries::default() } };
        match Asker::new(&workers).ask(&task) {
            Ok(described) => Ok((name.to_owned(), described.version)),
            Err(stop) => Err(MachineError::NoVersion { name: name.to_owned(), stop }),
        }
    };
    let system = libraries::installed(SYSTEM_LIBRARY).ok();
    let loaded = contents.sqlite.iter().map(|file| {
        let path = file.to_string_lossy();
        ask(if Some(file) == system.as_ref() { "system" } else { &path }, Some(path.to_string()))
    });
    loaded.chain([ask("bundled", None)]).collect()
}
