//! `joj device`: the emulated devices, and what the model makes of them.

use std::fs;
use std::process::ExitCode;

use joj_device::description::Description;
use joj_device::shipped;
use joj_device::workload::{MIB, fig_13, table_3};

use crate::command_line::device::{DeviceAction, DeviceOptions};
use crate::machine::files::output_file;
use crate::show::text::columns;

/// Runs `joj device`.
/// # Errors
/// What is wrong with a description, or that there is none.
pub fn run(options: &DeviceOptions) -> Result<ExitCode, String> {
    let text = match &options.action {
        DeviceAction::List => list()?,
        DeviceAction::Show { name } => {
            named(name)?;
            shipped::text(name).unwrap_or_default().to_owned()
        }
        DeviceAction::Check { file } => {
            let description = read(file)?;
            format!("{file}: {}, {} bytes: sound\n", description.name, description.capacity_bytes)
        }
        DeviceAction::Sweep { device } => {
            let description = if device.ends_with(".toml") { read(device)? } else { named(device)? };
            sweep(&description)
        }
    };
    output_file::print(&text).map(|()| ExitCode::SUCCESS)
}

fn named(name: &str) -> Result<Description, String> {
    Description::named(name).map_err(|error| error.to_string())
}

fn read(file: &str) -> Result<Description, String> {
    let text = fs::read_to_string(file).map_err(|error| {
        format!("cannot read {file}: {error}; give a TOML file, for example from `joj device show NAME`")
    })?;
    Description::parse(&text, file).map_err(|error| error.to_string())
}

fn list() -> Result<String, String> {
    let mut text = String::new();
    for name in shipped::names() {
        text.push_str(&format!("{name:<18} {}\n", named(name)?.summary));
    }
    Ok(text)
}

/// The rows of FAST'12's Table 3, then its Fig. 13, each on as much of the device as there is.
fn sweep(description: &Description) -> String {
    let table = table_3(description);
    let range = format!("over {} MiB", table.range_bytes / MIB);
    let mut lines = vec![
        row(&format!("write, 128 KiB in order {range}"), table.sequential_write),
        row(&format!("read, 128 KiB in order {range}"), table.sequential_read),
        row(&format!("write, 4 KiB random {range}"), table.random_write),
        row(&format!("read, 4 KiB random {range}"), table.random_read),
    ];
    let filled_mib = 1024.min(description.capacity_bytes / MIB);
    for range_mib in (0..12).map(|power| 1 << power) {
        let what = format!("write, 4 KiB random over {range_mib} MiB, behind {filled_mib} MiB in order");
        lines.extend(fig_13(description, range_mib).map(|rate| row(&what, rate)));
    }
    columns(&lines)
}

fn row(what: &str, rate: f64) -> Vec<String> {
    let rate = if rate.is_finite() { format!("{rate:.4} MB/s") } else { "no time".to_owned() };
    vec![what.to_owned(), rate]
}
