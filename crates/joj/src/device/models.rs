//! The emulated devices, and what the model makes of them.

use std::fs;
use std::io;

use joj_device::assembly::Assembly;
use joj_device::description::{Description, DescriptionError};
use joj_device::shipped;
use joj_device::workload::{MIB, fig_13, table_3};
use thiserror::Error;

use crate::show::paper::columns;

/// Why nothing can be told of an emulated device.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Its description cannot be read.
    #[error("cannot read {file}: {error}; give a TOML file, for example from `joj device show NAME`")]
    Unreadable {
        /// The file.
        file: String,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// There is no such description, or it is not sound.
    #[error(transparent)]
    Description(#[from] DescriptionError),
}

/// The text of a shipped description.
/// # Errors
/// Where there is none of this name.
pub fn show(name: &str) -> Result<String, ModelError> {
    Description::named(name)?;
    Ok(shipped::text(name).unwrap_or_default().to_owned())
}

/// Says that the description in a file is sound.
/// # Errors
/// What is wrong with it.
pub fn check(file: &str) -> Result<String, ModelError> {
    let assembly = read(file, true)?;
    Ok(format!("{file}: {}, {} bytes: sound\n", assembly.name(), assembly.capacity_bytes()))
}

/// The rows of a shipped device, of the description in a file, or of several together (`2xkingston`).
/// # Errors
/// What is wrong with it, or that there is none.
pub fn sweep(device: &str) -> Result<String, ModelError> {
    Ok(rows(&read(device, device.ends_with(".toml"))?))
}

/// The device in the file `name`, or of that name. What it is put together from is a file where it ends in `.toml`.
fn read(name: &str, is_file: bool) -> Result<Assembly, ModelError> {
    let mut unreadable = None;
    let assembly = Assembly::read(name, &mut |part| {
        let is_path = part.ends_with(".toml") || is_file && part == name;
        if !is_path {
            return shipped::text(part).map(str::to_owned);
        }
        fs::read_to_string(part)
            .map_err(|error| {
                unreadable.get_or_insert(ModelError::Unreadable { file: part.to_owned(), error });
            })
            .ok()
    });
    match (assembly, unreadable) {
        (Err(_), Some(unreadable)) => Err(unreadable),
        (assembly, _) => Ok(assembly?),
    }
}

/// The shipped devices, a line for each.
/// # Errors
/// Where a shipped description is wrong: a fault of joj's.
pub fn list() -> Result<String, ModelError> {
    let mut text = String::new();
    for name in shipped::names() {
        text.push_str(&format!("{name:<18} {}\n", Description::named(name)?.summary));
    }
    Ok(text)
}

/// The rows of FAST'12's Table 3, then its Fig. 13, each on as much of the device as there is.
fn rows(assembly: &Assembly) -> String {
    let table = table_3(assembly);
    let range = format!("over {} MiB", table.range_bytes / MIB);
    let mut lines = vec![
        row(&format!("write, 128 KiB in order {range}"), table.sequential_write),
        row(&format!("read, 128 KiB in order {range}"), table.sequential_read),
        row(&format!("write, 4 KiB random {range}"), table.random_write),
        row(&format!("read, 4 KiB random {range}"), table.random_read),
    ];
    let filled_mib = 1024.min(assembly.capacity_bytes() / MIB);
    for range_mib in (0..12).map(|power| 1 << power) {
        let what = format!("write, 4 KiB random over {range_mib} MiB, behind {filled_mib} MiB in order");
        lines.extend(fig_13(assembly, range_mib).map(|rate| row(&what, rate)));
    }
    columns(&lines)
}

fn row(what: &str, rate: f64) -> Vec<String> {
    let rate = if rate.is_finite() { format!("{rate:.4} MB/s") } else { "no time".to_owned() };
    vec![what.to_owned(), rate]
}
