//! The command line of `joj device`.

use clap::{Args, Subcommand};

/// Behind the options in `joj device --help`.
pub const EXAMPLES: &str = "\
Examples:
  joj device list
  joj device show galaxy-s5-emmc > my-phone.toml     a description to change
  joj device check my-phone.toml
  joj device sweep kingston                          what the model makes of it

The form of a description, the model's equations and what each device was fitted to: docs/device_format.md.
The exit code is 0, or 1 where a description is wrong or there is no such device.";

/// Options of `joj device`.
#[derive(Debug, Args)]
pub struct DeviceOptions {
    /// What to do
    #[command(subcommand)]
    pub action: DeviceAction,
}

/// What `joj device` does.
#[derive(Debug, Subcommand)]
pub enum DeviceAction {
    /// Name the devices that come with joj
    List,
    /// Print the description of one, with the source of each number
    Show {
        /// As `joj device list` has it
        name: String,
    },
    /// Read a description and say what is wrong with it
    Check {
        /// A TOML file
        file: String,
    },
    /// Run sequential and random requests on the model: rates, and random writes over a growing range
    Sweep {
        /// A name, or a TOML file
        device: String,
    },
}
