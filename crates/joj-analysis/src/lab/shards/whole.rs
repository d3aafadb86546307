//! Parts of one run, each shard once.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::iter::zip;

use fnv::FnvHasher;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::lab::result::LabMachine;
use crate::lab::shards::error::MergeError;
use crate::lab::shards::shard::Shard;

/// What one shard of a run left.
pub trait Part: Serialize + DeserializeOwned {
    /// First word of such a file.
    const FORMAT: &'static str;
    /// The version that this joj writes, and reads.
    const VERSION: u32;

    /// Number of its shard, from 1 on, and how many there are, as the file has them.
    fn numbers(&self) -> (u32, u32);

    /// What in it contradicts itself, as a part of `shard`.
    fn flaw(&self, shard: Shard) -> Option<String>;

    /// Where the file has the checksum of its content.
    fn checksum_mut(&mut self) -> &mut String;

    /// In what `other` is of another run.
    fn difference(&self, other: &Self) -> Option<String>;
}

/// The same part with the checksum of its text, which is to be written in lines, as [`serde_json::to_string_pretty`] does.
/// # Errors
/// It cannot be written as JSON.
pub fn sealed<P: Part>(mut part: P) -> serde_json::Result<P> {
    let text = serde_json::to_string_pretty(&part)?;
    *part.checksum_mut() = checksum(&text);
    Ok(part)
}

/// FNV-1a of 64 bits of all that stands in a part's text before its checksum, which is the last field.
fn checksum(text: &str) -> String {
    let end = text.rfind("\"checksum\"").unwrap_or(text.len());
    let mut hasher = FnvHasher::default();
    hasher.write(&text.as_bytes()[..end]);
    format!("{:016x}", hasher.finish())
}

/// The parts in these texts, in the order of their shards. `files`: name and text of each.
/// # Errors
/// Where they are not one of each shard of one run.
pub fn whole<P: Part>(files: &[(String, String)]) -> Result<Vec<P>, MergeError> {
    let mut parts = Vec::new();
    for (file, text) in files {
        parts.push(read::<P>(file, text)?);
    }
    parts.sort_by_key(|(shard, ..)| shard.number());
    let Some((of_first, first, part)) = parts.first() else { return Err(MergeError::Nothing) };
    for (shard, file, other) in &parts[1..] {
        let (first, file) = (first.to_string(), file.to_string());
        if shard.count() != of_first.count() {
            return Err(MergeError::Count { first, of_first: *of_first, file, shard: *shard });
        }
        if let Some(difference) = part.difference(other) {
            return Err(MergeError::OtherRun { first, file, difference });
        }
    }
    for ((shard, first, _), (next, file, _)) in zip(&parts, &parts[1..]) {
        if shard == next {
            let (first, file) = (first.to_string(), file.to_string());
            return Err(MergeError::Doubled { first, file, shard: *shard });
        }
    }
    let is_there = |shard: &Shard| parts.iter().any(|(there, ..)| there == shard);
    let all = (1..=of_first.count()).filter_map(|number| Shard::new(number, of_first.count()).ok());
    let missing: Vec<Shard> = all.filter(|shard| !is_there(shard)).collect();
    if !missing.is_empty() {
        return Err(MergeError::Missing(missing));
    }
    Ok(parts.into_iter().map(|(.., part)| part).collect())
}

fn read<'a, P: Part>(file: &'a str, text: &str) -> Result<(Shard, &'a str, P), MergeError> {
    let mut part: P = serde_json::from_str(text)
        .map_err(|error| MergeError::Unreadable { file: file.to_owned(), error })?;
    let damaged = |flaw: String| MergeError::Damaged { file: file.to_owned(), flaw };
    if *part.checksum_mut() != checksum(text) {
        return Err(damaged("its content is not that of its checksum".to_owned()));
    }
    let (number, count) = part.numbers();
    let shard = Shard::new(number, count).map_err(|error| damaged(error.to_string()))?;
    match part.flaw(shard) {
        Some(flaw) => Err(damaged(flaw)),
        None => Ok((shard, file, part)),
    }
}

/// In what a run's text or number is another one.
pub fn differs<T: PartialEq + std::fmt::Debug>(what: &str, one: &T, other: &T) -> Option<String> {
    (one != other).then(|| format!("its {what} is {other:?}, not {one:?}"))
}

/// In what its machine is another one.
pub fn machine_differs(one: &LabMachine, other: &LabMachine) -> Option<String> {
    differs("joj", &one.joj, &other.joj)
        .or_else(|| differs("QEMU", &one.qemu, &other.qemu))
        .or_else(|| differs("kernel", &one.kernel, &other.kernel))
        .or_else(|| differs("clock", &one.clock, &other.clock))
        .or_else(|| differs("list of SQLite builds", &one.sqlite, &other.sqlite))
}

/// Which of the things that it was made from is another one.
pub fn made_from_differs(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Option<String> {
    let name = one.keys().chain(other.keys()).find(|name| one.get(*name) != other.get(*name))?;
    let shown = |value: Option<&String>| value.map_or("none", String::as_str).to_owned();
    Some(format!("its {name} is another one ({}, not {})", shown(other.get(name)), shown(one.get(name))))
}
