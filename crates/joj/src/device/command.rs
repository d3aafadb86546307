//! `joj device` from its options to its exit code.

use std::process::ExitCode;

use thiserror::Error;

use crate::command_line::device::{DeviceAction, DeviceOptions};
use crate::device::models::{self, ModelError};
use crate::device::probe::{self, ProbeError};
use crate::machine::files::output_file::{self, OutputError};

/// Why nothing can be told of a device.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// There is no such device, or its description is not sound.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// A disk was not measured.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The answer cannot be printed.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Runs `joj device`.
/// # Errors
/// What is wrong with a description, or why there is no measurement.
pub fn run(options: &DeviceOptions) -> Result<ExitCode, DeviceError> {
    let text = match &options.action {
        DeviceAction::List => models::list()?,
        DeviceAction::Show { name } => models::show(name)?,
        DeviceAction::Check { file } => models::check(file)?,
        DeviceAction::Sweep { device } => models::sweep(device)?,
        DeviceAction::Probe(options) => return Ok(probe::run(options)?),
    };
    output_file::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
