//! Why parts are no whole, and what to do about it.

use thiserror::Error;

use crate::lab::shards::shard::Shard;

/// Why parts do not become a result.
#[derive(Debug, Error)]
pub enum MergeError {
    /// There are no parts.
    #[error("there are no parts; give the files that `--shard I/N --json PART` wrote")]
    Nothing,
    /// A file does not say which format it is.
    #[error(
        "{file} is no part ({error}); give files that `joj lab run PLAN --shard I/N --json PART` or `joj crash` wrote"
    )]
    NoHead {
        /// The file.
        file: String,
        /// What the parser said.
        #[source]
        error: serde_json::Error,
    },
    /// A file is a result already.
    #[error("{file} is the result of a whole run, and no part; leave it out, or run with `--shard I/N`")]
    Whole {
        /// The file.
        file: String,
    },
    /// A file is of another format.
    #[error(
        "{file} is no part (its format is {format:?}); give files that `joj lab run PLAN --shard I/N --json PART` or \
         `joj crash` wrote"
    )]
    Format {
        /// The file.
        file: String,
        /// What it says of itself.
        format: String,
    },
    /// Parts of `joj lab run` and of `joj crash`.
    #[error("{file} is a part of another command than {first}; give the parts of one run")]
    Mixed {
        /// The first file.
        first: String,
        /// One of the other kind.
        file: String,
    },
    /// A file is of a newer version.
    #[error(
        "the version of {file} is {version}, this joj reads up to {newest}: take the joj that wrote it, or a newer one"
    )]
    Version {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
        /// The newest that this joj reads.
        newest: u32,
    },
    /// A file is of an older version.
    #[error(
        "the version of {file} is {version}, and this joj reads parts of version {newest}, which have a checksum: take the joj that \
         wrote it, or run its shard again"
    )]
    Old {
        /// The file.
        file: String,
        /// Its version.
        version: u32,
        /// The version that this joj reads.
        newest: u32,
    },
    /// A file cannot be read as what it says it is.
    #[error("{file} is damaged: {error}; run its shard again")]
    Unreadable {
        /// The file.
        file: String,
        /// What the parser said.
        #[source]
        error: serde_json::Error,
    },
    /// What is in a file contradicts itself.
    #[error("{file} is damaged: {flaw}; run its shard again")]
    Damaged {
        /// The file.
        file: String,
        /// What is wrong.
        flaw: String,
    },
    /// Runs that were shared out among different numbers of shards.
    #[error("{file} is shard {shard}, and {first} is {of_first}; give the parts of one run")]
    Count {
        /// The first file.
        first: String,
        /// Its shard.
        of_first: Shard,
        /// One of another number of shards.
        file: String,
        /// Its shard.
        shard: Shard,
    },
    /// A shard is there twice.
    #[error("{first} and {file} are both shard {shard}; leave one of them out")]
    Doubled {
        /// The one.
        first: String,
        /// The other one.
        file: String,
        /// Which shard.
        shard: Shard,
    },
    /// Parts of different runs.
    #[error("{file} is a part of another run than {first}: {difference}; give the parts of one run")]
    OtherRun {
        /// The first file.
        first: String,
        /// One of another run.
        file: String,
        /// In what they differ.
        difference: String,
    },
    /// Shards that no file is of.
    #[error("{} missing; run {}, and give what it writes, too", missing(.0), again(.0))]
    Missing(Vec<Shard>),
}

/// How many missing shards are named.
const NAMED: usize = 8;

/// "shard 2/4 is", "shards 2/4, 3/4 are".
fn missing(shards: &[Shard]) -> String {
    let mut named: Vec<String> = shards.iter().take(NAMED).map(ToString::to_string).collect();
    if shards.len() > NAMED {
        named.push(format!("{} more", shards.len() - NAMED));
    }
    let named = named.join(", ");
    if shards.len() == 1 { format!("shard {named} is") } else { format!("shards {named} are") }
}

/// What brings the first of them.
fn again(shards: &[Shard]) -> String {
    let first = shards.first().map_or(String::new(), ToString::to_string);
    if shards.len() == 1 { format!("`--shard {first}`") } else { format!("`--shard {first}` and so on") }
}
