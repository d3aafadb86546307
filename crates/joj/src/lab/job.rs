//! What the host tells the guest, and where each puts what in the directory that both see.

use std::collections::BTreeMap;

use joj_analysis::bench::key::Word;
use joj_analysis::filesystem::Filesystem;
use joj_analysis::lab::cell::{Cell, Feature};
use joj_device::assembly::Assembly;
use joj_device::description::DescriptionError;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The job, below the shared directory.
pub const JOB_FILE: &str = "job.json";
/// Where a cell's report appears, whole, once it is done: its measurement, or why there is none.
pub const CELLS_DIRECTORY: &str = "cells";
/// The directory of the share in which the guest leaves traces.
pub const TRACES_DIRECTORY: &str = "traces";
/// Name under which QEMU offers the shared directory.
pub const SHARE_TAG: &str = "share";
/// Name under which QEMU offers the files of the host, to read only.
pub const HOST_TAG: &str = "host";
/// Begin of a line of the guest's console that is meant for joj.
pub const LINE_MARK: &str = "@joj ";

/// Paths in the guest.
pub mod guest_path {
    /// joj itself.
    pub const JOJ: &str = "/joj";
    pub const WALDIO: &str = "/lib/libwaldio.so";
    pub const LIBRARIES: &str = "/lib";
    /// Programs that make filesystems.
    pub const PROGRAMS: &str = "/sbin";
    /// Kernel modules, and the order in which they are loaded.
    pub const MODULES: &str = "/modules";
    /// The list of modules.
    pub const MODULE_LIST: &str = "/modules/list";
    /// The directory that guest and host share, as the guest sees it.
    pub const SHARE: &str = "/share";
    /// Where the measured filesystem is mounted.
    pub const VOLUME: &str = "/volume";
    /// The files of the host.
    pub const HOST: &str = "/host";
    /// What a command of the host's has for its root.
    pub const ROOT: &str = "/root-of-command";
    /// What the command has there of its own, instead of the host's.
    pub const OWN: [&str; 3] = ["data", "tmp", "run"];
}

/// Why a job's device cannot be emulated.
#[derive(Debug, Error)]
pub enum SettingError {
    /// The job does not have it, or its description is none.
    #[error(transparent)]
    Device(#[from] DescriptionError),
}

/// What every job has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setting {
    /// File of the SQLite build that calls fdatasync, in the guest.
    pub sqlite: String,
    /// The text of each description, by the name that cells, or devices that are put together, have for it.
    pub devices: BTreeMap<String, String>,
    /// Capacity of each device, in bytes.
    pub device_bytes: u64,
}

impl Setting {
    /// The device that cells call `name`.
    /// # Errors
    /// Where there is none, or its description is none.
    pub fn device(&self, name: &str) -> Result<Assembly, SettingError> {
        Ok(Assembly::read(name, &mut |part| self.devices.get(part).cloned())?)
    }
}

/// A filesystem on an emulated device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabVolume {
    /// Which filesystem.
    pub filesystem: Filesystem,
    /// What it is made or mounted with.
    pub feature: Feature,
    /// The device's name in the job's setting.
    pub device: String,
    /// The device of an external journal; none for a journal inside.
    pub journal_device: Option<String>,
    /// Options of mount(8) besides.
    pub mount_options: Option<String>,
    /// Made so that the same directories lie in the same place each time: ext4's choice depends on a random number else.
    #[serde(default)]
    pub same_places: bool,
}

impl LabVolume {
    /// What progress calls it.
    pub fn name(&self) -> String {
        let name = format!("{} {}", self.filesystem.word(), self.device);
        match &self.journal_device {
            Some(journal) => format!("{name}, journal on {journal}"),
            None => name,
        }
    }

    /// That of a cell.
    pub fn of(cell: &Cell) -> LabVolume {
        LabVolume {
            filesystem: cell.filesystem,
            feature: cell.feature,
            device: cell.device.clone(),
            journal_device: cell.journal_device.clone(),
            mount_options: None,
            same_places: false,
        }
    }
}

/// Each of the filesystems on each of the devices.
pub fn volumes(devices: &[String], filesystems: &[Filesystem]) -> Vec<LabVolume> {
    let on_device = |device: &String| {
        let volume = |filesystem| LabVolume {
            filesystem,
            feature: Feature::None,
            device: device.clone(),
            journal_device: None,
            mount_options: None,
            same_places: false,
        };
        filesystems.iter().copied().map(volume).collect::<Vec<_>>()
    };
    devices.iter().flat_map(on_device).collect()
}

/// What the guest shall do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The SQLite library and the devices of the guest.
    pub setting: Setting,
    pub cells: Vec<Cell>,
    /// Trace each in a second run.
    pub trace: bool,
    /// At most so many transactions of it: what one costs shows in a hundred as in a thousand.
    pub traced_transactions: u64,
    /// How it is captured: the word of `joj trace --backend`.
    pub trace_backend: String,
    /// The numbers of the cells that this guest measures.
    pub units: Vec<usize>,
}

/// Name of the report of cell `index`.
pub fn report_file(index: usize) -> String {
    format!("{CELLS_DIRECTORY}/{index:04}.json")
}

/// Name of the recording that cells call `name`.
pub fn named_recording(name: &str) -> String {
    format!("recording-{name}.joj")
}

/// Name of the trace of cell `index`.
pub fn trace_file(index: usize) -> String {
    format!("{TRACES_DIRECTORY}/{index:04}.parquet")
}

/// How long a guest may take for what it says that it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Allowed {
    /// It goes on with what it did.
    WhatIsLeft,
    /// A step of the cell: as long as a whole one.
    Step,
    /// It runs none of the user's commands: at least as long as for its start.
    OwnWork,
}

/// What the guest says on its console.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GuestLine {
    /// It has booted, and waits for a line on its console.
    Prepared,
    /// It is up; the kernel's release.
    Ready(String),
    /// It begins with this cell.
    Begun(usize),
    /// What it does with the cell that it has begun with, and how long it may take for it.
    Doing(String, Allowed),
    /// The report of this cell is there.
    Done(usize),
    /// All units of the job are done.
    End,
    /// It cannot go on.
    Broken(String),
}

/// What joj is told in a line of the console, if it is.
pub fn marked(line: &str) -> Option<&str> {
    line.find(LINE_MARK).map(|at| &line[at + LINE_MARK.len()..])
}
