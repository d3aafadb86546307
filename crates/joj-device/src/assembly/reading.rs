//! An assembly from its name: a device's, a file's, `2xkingston`, `2x16KiB:kingston`, `pcm-16mb+kingston`, `64MiB+kingston`.

use serde::Deserialize;

use crate::assembly::{Assembly, Raid0, STRIPE_BYTES, WriteBuffer};
use crate::description::{Description, DescriptionError, DescriptionFault, check};
use crate::number::size;
use crate::request::BLOCK_BYTES;
use crate::shipped;

/// Assemblies within assemblies.
const DEPTH_MAX: u32 = 4;
/// Members of a RAID-0.
const MEMBERS_MAX: u64 = 16;
/// Longest stripe.
const STRIPE_BYTES_MAX: u64 = 1 << 30;
/// Smallest write buffer: a write takes a quarter of it at a time.
const BUFFER_BYTES_MIN: u64 = 16 * BLOCK_BYTES;
/// Largest write buffer.
const BUFFER_BYTES_MAX: u64 = 1 << 40;
/// What a write buffer is made of where only its size is given.
const BUFFER: &str = "pcm-16mb";

/// Where the text of a description is found, by its name.
type Lookup<'a> = dyn FnMut(&str) -> Option<String> + 'a;

/// A file that puts devices together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AssemblyFile {
    #[serde(rename = "format")]
    _format: String,
    #[serde(rename = "version")]
    _version: u64,
    name: String,
    #[serde(rename = "summary")]
    _summary: String,
    raid0: Option<StripedMembers>,
    write_buffer: Option<BufferAndDevice>,
    #[serde(default, rename = "sources")]
    _sources: toml::Table,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StripedMembers {
    members: Vec<String>,
    #[serde(default = "default_stripe")]
    stripe_bytes: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BufferAndDevice {
    buffer: String,
    bytes: Option<u64>,
    device: String,
}

const fn default_stripe() -> u64 {
    STRIPE_BYTES
}

impl Assembly {
    /// The assembly that `name` says. `lookup` has the text of a description by its name; members are looked up, too.
    ///
    /// # Errors
    /// [`DescriptionFault::NoDevice`] of the part that is not found, or what is wrong with a description.
    pub fn read(name: &str, lookup: &mut Lookup<'_>) -> Result<Assembly, DescriptionError> {
        read_within(name, lookup, DEPTH_MAX)
    }

    /// The assembly that `name` says of shipped devices.
    ///
    /// # Errors
    /// As [`Assembly::read`].
    pub fn named(name: &str) -> Result<Assembly, DescriptionError> {
        Assembly::read(name, &mut |part| shipped::text(part).map(str::to_owned))
    }
}

fn read_within(name: &str, lookup: &mut Lookup<'_>, depth: u32) -> Result<Assembly, DescriptionError> {
    let Some(inner) = depth.checked_sub(1) else { return Err(DescriptionFault::TooDeep.at(name)) };
    if let Some(text) = lookup(name) {
        return parse(&text, name, lookup, inner);
    }
    if let Some((buffer, behind)) = name.split_once('+') {
        let behind = read_within(behind, lookup, inner)?;
        let buffer_bytes = bytes(buffer);
        let buffer = read_within(if buffer_bytes.is_some() { BUFFER } else { buffer }, lookup, inner)?;
        return buffered(name, buffer, buffer_bytes, behind).map_err(|fault| fault.at(name));
    }
    if let Some((count, member, stripe_bytes)) = striped_name(name) {
        let member = read_within(member, lookup, inner)?;
        let members = vec![member; usize::try_from(count.min(MEMBERS_MAX + 1)).unwrap_or(0)];
        return striped(name, members, stripe_bytes).map_err(|fault| fault.at(name));
    }
    let known = shipped::names().collect::<Vec<_>>().join(", ");
    Err(DescriptionFault::NoDevice { known }.at(name))
}

fn parse(
    text: &str,
    origin: &str,
    lookup: &mut Lookup<'_>,
    depth: u32,
) -> Result<Assembly, DescriptionError> {
    let file = match assembly_file(text) {
        Ok(Some(file)) => file,
        Ok(None) => return Description::parse(text, origin).map(Assembly::from),
        Err(fault) => return Err(fault.at(origin)),
    };
    let assembled = match (file.raid0, file.write_buffer) {
        (Some(raid0), None) => {
            let members = raid0.members.iter().map(|member| read_within(member, lookup, depth));
            striped(&file.name, members.collect::<Result<Vec<_>, _>>()?, raid0.stripe_bytes)
        }
        (None, Some(parts)) => {
            let behind = read_within(&parts.device, lookup, depth)?;
            let buffer = read_within(&parts.buffer, lookup, depth)?;
            buffered(&file.name, buffer, parts.bytes, behind)
        }
        _ => Err(DescriptionFault::TwoWays),
    };
    assembled.map_err(|fault| fault.at(origin))
}

/// The file, where it puts devices together.
fn assembly_file(text: &str) -> Result<Option<AssemblyFile>, DescriptionFault> {
    let raw: toml::Table = toml::from_str(text).map_err(DescriptionFault::Form)?;
    if !raw.contains_key("raid0") && !raw.contains_key("write_buffer") {
        return Ok(None);
    }
    check::header(&raw)?;
    let file = toml::from_str(text).map_err(DescriptionFault::Form)?;
    check::sources(&raw)?;
    Ok(Some(file))
}

fn striped(name: &str, members: Vec<Assembly>, stripe_bytes: u64) -> Result<Assembly, DescriptionFault> {
    check::within("raid0.members", size(members.len()), 2, MEMBERS_MAX)?;
    check::within("raid0.stripe_bytes", stripe_bytes, BLOCK_BYTES, STRIPE_BYTES_MAX)?;
    if !stripe_bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(DescriptionFault::PartOfStripe { block_bytes: BLOCK_BYTES });
    }
    let raid0 = Raid0 { name: name.to_owned(), stripe_bytes, members };
    if raid0.capacity_bytes() == 0 {
        return Err(DescriptionFault::LongStripe { stripe_bytes });
    }
    Ok(Assembly::Striped(raid0))
}

fn buffered(
    name: &str,
    buffer: Assembly,
    bytes: Option<u64>,
    behind: Assembly,
) -> Result<Assembly, DescriptionFault> {
    let Assembly::Single(mut buffer) = buffer else { return Err(DescriptionFault::BufferOfParts) };
    if buffer.has_volatile_cache() {
        return Err(DescriptionFault::VolatileBuffer { buffer: buffer.name });
    }
    buffer.capacity_bytes = bytes.unwrap_or(buffer.capacity_bytes);
    check::within("write_buffer.bytes", buffer.capacity_bytes, BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)?;
    if !buffer.capacity_bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(DescriptionFault::PartOfBlock { block_bytes: BLOCK_BYTES });
    }
    Ok(Assembly::Buffered(WriteBuffer { name: name.to_owned(), buffer, behind: Box::new(behind) }))
}

/// The number of members, their name and the stripe that a name like `2x16KiB:kingston` says.
fn striped_name(name: &str) -> Option<(u64, &str, u64)> {
    let (count, rest) = name.split_once('x')?;
    let count = count.parse().ok()?;
    match rest.split_once(':').and_then(|(stripe, member)| Some((member, bytes(stripe)?))) {
        Some((member, stripe_bytes)) => Some((count, member, stripe_bytes)),
        None => Some((count, rest, STRIPE_BYTES)),
    }
}

/// Bytes of a size with a unit.
fn bytes(text: &str) -> Option<u64> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let (number, shift) = units.iter().find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))?;
    number.parse::<u64>().ok()?.checked_mul(1 << shift)
}
