//! What guests are made of: kernel, programs and libraries, as the options name them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use fnv::FnvHasher;
use joj_analysis::lab::cell::{Cell, SyncCall};

use crate::bench::builds::{SYSTEM_LIBRARY, extension_file};
use crate::command_line::lab::{GuestOptions, MachineOptions};
use crate::command_line::wrong_usage;
use crate::lab::commands::error::LabError;
use crate::lab::error::TimeLimit;
use crate::lab::file_hash::add_file;
use crate::lab::guest_pool::{self, GuestPool};
use crate::lab::image::archive::Contents;
use crate::lab::image::error::ImageError;
use crate::lab::image::libraries;
use crate::lab::image::packages::Packages;
use crate::lab::job::Setting;
use crate::lab::kept::made_with::text_checksum;
use crate::lab::shipped::devices;
use crate::lab::shipped::error::ShippedError;
use crate::machine::qemu::process;

/// What has to be there; the rest is taken along where it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Needed {
    /// The system's SQLite.
    pub sqlite: bool,
    /// The extension.
    pub waldio: bool,
    /// What can be done without the extension.
    pub without_waldio: &'static str,
}

/// Reads the descriptions of the devices that a command line names; its exit code where one is neither joj's nor a file.
/// # Errors
/// One is no description.
pub fn unknown_device<'a>(names: impl Iterator<Item = &'a String>) -> Result<Option<ExitCode>, ShippedError> {
    match devices::of(names) {
        Err(error @ ShippedError::NoDevice { .. }) => Ok(Some(wrong_usage(&error.to_string()))),
        read => read.map(|_| None),
    }
}

impl Needed {
    /// By the cells of a plan.
    pub fn by(cells: &[Cell]) -> Needed {
        let loads = |cell: &Cell| cell.sync_call == SyncCall::Fdatasync && cell.task.workload().is_some();
        Needed {
            sqlite: cells.iter().any(loads),
            waldio: cells.iter().any(|cell| cell.mode.uses_waldio()),
            without_waldio: "or leave its cells out: `--only`",
        }
    }
}

/// Guests with `contents`, as many at a time as `guests` asks for, each unit or step within `limit`.
/// # Errors
/// There is no QEMU, or the packages cannot be had.
pub fn pool(
    machine: &MachineOptions,
    guests: &GuestOptions,
    contents: Contents,
    limit: TimeLimit,
) -> Result<GuestPool, LabError> {
    let qemu = process::version()?;
    let packages = packages(machine)?;
    let jobs = guests.jobs.map_or_else(guest_pool::jobs_of_this_machine, |jobs| jobs as usize);
    Ok(GuestPool { packages, contents, qemu, jobs, limit })
}

/// Kernel and programs, fetched where they are not there yet.
/// # Errors
/// Why they cannot be had.
pub fn packages(machine: &MachineOptions) -> Result<Packages, ImageError> {
    let say = |text: &str| eprintln!("joj lab: {text}");
    let packages = Packages::get(&say)?;
    match (&machine.kernel, &machine.modules) {
        (Some(kernel), Some(modules)) => packages.with_kernel(kernel, modules),
        _ => Ok(packages),
    }
}

/// The files of this machine that the guest runs: all that there are, as other jobs share the snapshot then.
/// # Errors
/// What is needed and is not there.
pub fn contents(machine: &MachineOptions, needed: Needed) -> Result<Contents, LabError> {
    let joj = std::env::current_exe().map_err(LabError::OwnFile)?;
    let sqlite = where_needed(libraries::installed(SYSTEM_LIBRARY), needed.sqlite)?;
    let waldio = extension_file(machine.waldio.as_deref(), needed.without_waldio);
    let waldio = where_needed(waldio, needed.waldio || machine.waldio.is_some())?;
    Ok(Contents { joj, sqlite: sqlite.into_iter().collect(), waldio })
}

/// What all shards of a run have to have alike: a checksum of each file that guests run, and of each device's description.
/// # Errors
/// Which file cannot be read.
pub fn made_from(contents: &Contents, setting: &Setting) -> Result<BTreeMap<String, String>, LabError> {
    let device =
        |(name, text): (&String, &String)| (format!("device {name}"), text_checksum([text.as_str()]));
    let mut made_from: BTreeMap<String, String> = setting.devices.iter().map(device).collect();
    made_from.insert("joj".to_owned(), checksum([&contents.joj])?);
    for library in contents.sqlite.iter().chain(&contents.waldio) {
        let name = library.file_name().unwrap_or_default().to_string_lossy().into_owned();
        made_from.insert(name, checksum([library])?);
    }
    Ok(made_from)
}

/// A checksum of all bytes of some files, each with its length, for those who have this build of joj.
/// # Errors
/// Which one cannot be read.
pub fn checksum<P: AsRef<Path>>(files: impl IntoIterator<Item = P>) -> Result<String, LabError> {
    let mut hasher = DefaultHasher::new();
    for file in files {
        let file = file.as_ref();
        add_file(file, &mut hasher).map_err(|error| LabError::Unreadable { file: file.to_owned(), error })?;
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// A checksum of all bytes of a file for who has any build of joj: FNV-1a of 64 bits.
/// # Errors
/// It cannot be read.
pub fn lasting_checksum(file: &Path) -> Result<String, LabError> {
    let mut hasher = FnvHasher::default();
    add_file(file, &mut hasher).map_err(|error| LabError::Unreadable { file: file.to_owned(), error })?;
    Ok(format!("{:016x}", hasher.finish()))
}

/// With a SQLite that is named instead of the system's; `bundled` and `system` change nothing.
/// # Errors
/// There is no such file.
pub fn with_sqlite(contents: Contents, name: &str) -> Result<Contents, LabError> {
    if matches!(name, "bundled" | "system") {
        return Ok(contents);
    }
    let file = PathBuf::from(name);
    let named = file.canonicalize().map_err(|error| LabError::Sqlite { file, error })?;
    Ok(Contents { sqlite: vec![named], ..contents })
}

/// The variables that waldio reads.
pub fn environment() -> Vec<(String, String)> {
    let all = std::env::vars_os();
    let texts = all.filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts.filter(|(name, _)| name.starts_with("WALDIO_")).collect()
}

fn where_needed<E>(file: Result<PathBuf, E>, is_needed: bool) -> Result<Option<PathBuf>, E> {
    match file {
        Err(reason) if is_needed => Err(reason),
        found => Ok(found.ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_moved_from_one_file_to_the_other_are_another_checksum() {
        let directory = std::env::temp_dir().join(format!("joj-checksum-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let of = |one: &str, other: &str| {
            let files = [("one", one), ("other", other)].map(|(name, text)| {
                std::fs::write(directory.join(name), text).unwrap();
                directory.join(name)
            });
            checksum(&files).unwrap()
        };
        let first = of("ab", "c");
        assert_eq!(first, of("ab", "c"));
        assert_ne!(first, of("a", "bc"));
        assert_ne!(first, of("ab", "d"));
        let missing = checksum([directory.join("none")]).unwrap_err().to_string();
        assert!(missing.contains("cannot read") && missing.contains("none"), "{missing}");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
