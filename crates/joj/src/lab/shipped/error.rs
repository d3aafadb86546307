//! Why a plan, a device or a paper's table cannot be used: the user's, or one that joj brings.

use std::io;

use joj_analysis::lab::plan::PlanError;
use joj_analysis::lab::report::paper::PaperError;
use joj_device::description::DescriptionError;
use thiserror::Error;

/// Why it cannot be used.
#[derive(Debug, Error)]
pub enum ShippedError {
    /// joj brings no such plan, and there is no such file.
    #[error("there is no plan {name}, and no such file ({error}); the plans are {known}")]
    NoPlan {
        /// What was asked for.
        name: String,
        /// What the system said of the file.
        #[source]
        error: io::Error,
        /// The plans that joj brings.
        known: String,
    },
    /// The paper's table is answered without a plan.
    #[error("{0} needs no plan: the device model answers it without a guest")]
    NeedsNoPlan(String),
    /// The file is no plan.
    #[error("{name} is no plan: {error}")]
    Plan {
        /// The plan's name or file.
        name: String,
        /// Where in the file, and what is wrong.
        #[source]
        error: toml::de::Error,
    },
    /// The plan has cells that cannot be.
    #[error("{name}: {error}")]
    Cells {
        /// The plan's name.
        name: String,
        /// What is wrong with the plan.
        #[source]
        error: PlanError,
    },
    /// The text is no paper's table.
    #[error("it is no paper's table: {0}")]
    Paper(#[source] toml::de::Error),
    /// The paper's table does not fit together.
    #[error("{name}: {error}")]
    PaperTable {
        /// The table's name.
        name: String,
        /// What is wrong with it.
        #[source]
        error: PaperError,
    },
    /// joj brings no such device, and there is no such file.
    #[error("there is no device {name}, and no such file ({error}); the devices are {known}")]
    NoDevice {
        /// What was asked for.
        name: String,
        /// What the system said of the file.
        #[source]
        error: io::Error,
        /// The devices that joj brings.
        known: String,
    },
    /// The description of a device is none.
    #[error(transparent)]
    Device(#[from] DescriptionError),
}
