//! What is wrong with what a kernel says of its trace buffers.

use thiserror::Error;

/// Why an event's format, a page's layout or a page cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FtraceError {
    /// A format without a name.
    #[error("an event's format has no `name:`")]
    NoName,
    /// A format without a number that fits into a record.
    #[error("the format of {0} has no `ID:` below 65536")]
    NoNumber(String),
    /// An event that joj does not read.
    #[error("{0} is no event that joj reads")]
    UnknownEvent(String),
    /// A field is missing that joj needs.
    #[error("{event} has no field `{field}` in this kernel")]
    NoField {
        /// The event's name.
        event: String,
        /// The field's name, or its names in several kernels.
        field: String,
    },
    /// `events/header_page` does not say where a page's records are.
    #[error("events/header_page names no field `{0}`")]
    NoPageField(String),
    /// `events/header_page` contradicts itself. What it says.
    #[error("events/header_page describes no page: {0}")]
    NoPage(String),
    /// A page that ends within its head.
    #[error("a page of {0} bytes is shorter than its head")]
    ShortPage(usize),
    /// A page that says that more of it is in use than it has.
    #[error("a page of {bytes} bytes says that {used} are in use")]
    OverfullPage {
        /// Its length.
        bytes: usize,
        /// What it says.
        used: usize,
    },
}
