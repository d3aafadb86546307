//! Why a description is refused.

use thiserror::Error;

use super::VERSION;

/// What is wrong, where, and how to mend it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("device description {origin}: {fault}")]
pub struct DescriptionError {
    /// The description's file, or a shipped name.
    pub origin: String,
    /// What is wrong with it.
    #[source]
    pub fault: DescriptionFault,
}

/// What is wrong with a description.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DescriptionFault {
    /// joj brings no such device.
    #[error("joj has no device of this name: take one of {known}, or several of it as in 2xkingston")]
    NoDevice {
        /// The devices that joj brings.
        known: String,
    },
    /// It is not TOML, or has other keys or values than a description.
    #[error("{}", .0.to_string().trim_end())]
    Form(#[source] toml::de::Error),
    /// It is a file of another kind.
    #[error("`format` is not \"joj-device\": begin the file with format = \"joj-device\"")]
    NoFormat,
    /// The form has another version than this joj reads.
    #[error("`version` is {version}, this joj reads {}: use the joj that the file is for", VERSION)]
    OtherVersion {
        /// The file's.
        version: i64,
    },
    /// It does not say its version.
    #[error("no `version`: add version = {} below `format`", VERSION)]
    NoVersion,
    /// The number at this path has no source.
    #[error("`{0}` has no source: add \"{0}\" = \"published: ...\" to [sources]")]
    NoSource(String),
    /// A source does not say what kind it is, or nothing besides.
    #[error(
        "the source of `{path}` is {text:?}: begin it with \"published: \", \"fitted to: \" or \"chosen: \" \
         and name the document, the table or the reason"
    )]
    NoOrigin {
        /// The number's path.
        path: String,
        /// The source.
        text: String,
    },
    /// There is a source for this path, and no number.
    #[error("[sources] names `{0}`, which the file does not have: remove it")]
    NoNumber(String),
    /// A number is too small or too large.
    #[error("`{path}` is {value}, which is not in {min} to {max}: mind the unit in its name")]
    OutOfRange {
        /// The number's path.
        path: String,
        /// The number.
        value: u64,
        /// The smallest that it may be.
        min: u64,
        /// The largest that it may be.
        max: u64,
    },
    /// The capacity has a part of a block.
    #[error("the capacity in bytes is not a multiple of {block_bytes}: round it down")]
    PartOfBlock {
        /// What it is a multiple of.
        block_bytes: u64,
    },
    /// A stripe has a part of a block.
    #[error("`raid0.stripe_bytes` is not a multiple of {block_bytes}: round it up")]
    PartOfStripe {
        /// What it is a multiple of.
        block_bytes: u64,
    },
    /// A stripe is longer than a member.
    #[error("a member is smaller than a stripe of {stripe_bytes} bytes: make `raid0.stripe_bytes` less")]
    LongStripe {
        /// Bytes of a stripe.
        stripe_bytes: u64,
    },
    /// A file says two ways in which devices are put together.
    #[error("`raid0` and `write_buffer` stand in one file: make two files, of which one names the other")]
    TwoWays,
    /// A write buffer is several devices.
    #[error("the write buffer is put together from several devices: name a single one")]
    BufferOfParts,
    /// A write buffer loses what it holds.
    #[error(
        "a write buffer has to be persistent, but {buffer} has a volatile cache: take pcm-16mb, or a device without [cache]"
    )]
    VolatileBuffer {
        /// The buffer's name.
        buffer: String,
    },
    /// Assemblies stand in assemblies, perhaps one in itself.
    #[error("too many devices that are put together stand in each other: name single devices as members")]
    TooDeep,
    /// A page or a unit has an odd size.
    #[error("`flash.unit_bytes` and `flash.page_bytes` must be powers of two")]
    NoPowerOfTwo,
    /// A page is smaller than a unit.
    #[error(
        "`flash.page_bytes` ({page_bytes}) is smaller than `flash.unit_bytes` ({unit_bytes}): a program writes whole units"
    )]
    SmallPage {
        /// Bytes of a page.
        page_bytes: u64,
        /// Bytes of a unit.
        unit_bytes: u64,
    },
    /// A log-block FTL has units that are no pages.
    #[error(
        "a log-block FTL maps whole pages, but `flash.unit_bytes` ({unit_bytes}) is not `flash.page_bytes` ({page_bytes}): make them equal"
    )]
    UnitsInPage {
        /// Bytes of a page.
        page_bytes: u64,
        /// Bytes of a unit.
        unit_bytes: u64,
    },
    /// An erase block ends within a page.
    #[error("`ftl.block_bytes` ({block_bytes}) is not a multiple of `flash.page_bytes` ({page_bytes})")]
    PartOfPage {
        /// Bytes of an erase block.
        block_bytes: u64,
        /// Bytes of a page.
        page_bytes: u64,
    },
}

impl DescriptionFault {
    pub(crate) fn at(self, origin: &str) -> DescriptionError {
        DescriptionError { origin: origin.to_owned(), fault: self }
    }
}
