//! Options that nobody sees: how the emulated machine measures a row of `joj whatif` on disks of its own.

use std::path::PathBuf;

use clap::Args;

/// What of a table is measured.
#[derive(Debug, Args)]
pub struct RowOptions {
    /// The rows of --only without the recorded one, unless it is among them
    #[arg(long, hide = true, requires = "only")]
    pub alone: bool,

    /// Of the row, which has commits, only what is measured apart from them: it is left in this file, and there is no result
    #[arg(long, value_name = "FILE", hide = true, requires = "alone", conflicts_with = "beside")]
    pub beside_to: Option<PathBuf>,

    /// A file of --beside-to: what is in it is not measured again
    #[arg(long, value_name = "FILE", hide = true, requires = "alone")]
    pub beside: Option<PathBuf>,
}
