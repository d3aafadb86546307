//! What a description must hold beside its form: ranges, relations, a source for every number.

use super::{Description, DescriptionFault, FtlKind, VERSION};
use crate::request::BLOCK_BYTES;

/// Longer than any command of a device: a value above is a wrong unit.
const TIME_NS_MAX: u64 = 10_000_000_000;
/// 16 TiB: units are counted in 32 bits.
const CAPACITY_BYTES_MAX: u64 = 1 << 44;
/// How the text of a source begins.
const ORIGINS: [&str; 3] = ["published: ", "fitted to: ", "chosen: "];

/// Every value of a table that is no table, with its dotted path.
pub(super) fn leaves(table: &toml::Table) -> Vec<(String, &toml::Value)> {
    let mut found = Vec::new();
    for (key, value) in table {
        match value {
            toml::Value::Table(inner) => {
                found.extend(leaves(inner).into_iter().map(|(path, leaf)| (format!("{key}.{path}"), leaf)));
            }
            leaf => found.push((key.clone(), leaf)),
        }
    }
    found
}

/// Format and version, before anything else: a newer file may have any form.
pub(crate) fn header(raw: &toml::Table) -> Result<(), DescriptionFault> {
    if raw.get("format").and_then(toml::Value::as_str) != Some("joj-device") {
        return Err(DescriptionFault::NoFormat);
    }
    match raw.get("version").and_then(toml::Value::as_integer) {
        Some(version) if u64::try_from(version) == Ok(VERSION) => Ok(()),
        Some(version) => Err(DescriptionFault::OtherVersion { version }),
        None => Err(DescriptionFault::NoVersion),
    }
}

/// A source for each number and switch, and no source without one; a list of names is neither.
pub(crate) fn sources(raw: &toml::Table) -> Result<(), DescriptionFault> {
    let empty = toml::Table::new();
    let sources = raw.get("sources").and_then(toml::Value::as_table).unwrap_or(&empty);
    let sources = leaves(sources);
    let parameters: Vec<String> = leaves(raw)
        .into_iter()
        .filter(|(path, _)| path != "version" && !path.starts_with("sources."))
        .filter(|(_, value)| !value.is_str() && !value.is_array())
        .map(|(path, _)| path)
        .collect();
    for path in &parameters {
        let Some((_, source)) = sources.iter().find(|(name, _)| name == path) else {
            return Err(DescriptionFault::NoSource(path.clone()));
        };
        let text = source.as_str().unwrap_or("");
        if !ORIGINS.iter().any(|origin| text.len() > origin.len() && text.starts_with(origin)) {
            return Err(DescriptionFault::NoOrigin { path: path.clone(), text: text.to_owned() });
        }
    }
    match sources.iter().find(|(path, _)| !parameters.contains(path)) {
        Some((path, _)) => Err(DescriptionFault::NoNumber(path.clone())),
        None => Ok(()),
    }
}

/// Each value alone.
pub(super) fn ranges(description: &Description) -> Result<(), DescriptionFault> {
    let Description { bus, flash, .. } = description;
    let mut times = vec![
        ("bus.read_command_ns", bus.read_command_ns),
        ("bus.write_command_ns", bus.write_command_ns),
        ("bus.trim_command_ns", bus.trim_command_ns),
        ("bus.read_transfer_ns", bus.read_transfer_ns),
        ("bus.write_transfer_ns", bus.write_transfer_ns),
        ("flash.read_ns", flash.read_ns),
        ("flash.program_ns", flash.program_ns),
        ("flash.erase_ns", flash.erase_ns),
    ];
    if let Some(cache) = &description.cache {
        times.extend([("cache.flush_ns", cache.flush_ns), ("cache.fua_ns", cache.fua_ns)]);
        within("cache.bytes", cache.bytes, flash.page_bytes, 1 << 40)?;
    }
    match &description.ftl {
        FtlKind::Bast { copy_ns, .. } | FtlKind::Fast { copy_ns, .. } => {
            times.push(("ftl.copy_ns", *copy_ns))
        }
        FtlKind::Hybrid { log_program_ns, .. } => times.push(("ftl.log_program_ns", *log_program_ns)),
        FtlKind::InPlace | FtlKind::PageMapped { .. } => {}
    }
    for (path, value) in times {
        within(path, value, 0, TIME_NS_MAX)?;
    }
    within("capacity_bytes", description.capacity_bytes, BLOCK_BYTES, CAPACITY_BYTES_MAX)?;
    within("bus.queue_depth", bus.queue_depth, 1, 65_536)?;
    within("bus.packed_writes_max", bus.packed_writes_max, 1, 64)?;
    within("flash.unit_bytes", flash.unit_bytes, BLOCK_BYTES, 1 << 20)?;
    within("flash.page_bytes", flash.page_bytes, BLOCK_BYTES, 1 << 20)?;
    within("flash.parallel_units", flash.parallel_units, 1, 1024)?;
    for (name, level) in &description.map_cache {
        within(&format!("map_cache.{name}.entries"), level.entries, 1, 1 << 20)?;
        within(&format!("map_cache.{name}.covers_bytes"), level.covers_bytes, flash.unit_bytes, 1 << 40)?;
        within(&format!("map_cache.{name}.miss_ns"), level.miss_ns, 0, TIME_NS_MAX)?;
    }
    Ok(())
}

/// Values against each other.
pub(super) fn relations(description: &Description) -> Result<(), DescriptionFault> {
    let flash = &description.flash;
    if !description.capacity_bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(DescriptionFault::PartOfBlock { block_bytes: BLOCK_BYTES });
    }
    if !flash.unit_bytes.is_power_of_two() || !flash.page_bytes.is_power_of_two() {
        return Err(DescriptionFault::NoPowerOfTwo);
    }
    if flash.page_bytes < flash.unit_bytes {
        let (page_bytes, unit_bytes) = (flash.page_bytes, flash.unit_bytes);
        return Err(DescriptionFault::SmallPage { page_bytes, unit_bytes });
    }
    match description.ftl {
        FtlKind::InPlace => Ok(()),
        FtlKind::PageMapped { block_bytes, spare_percent } => {
            within("ftl.spare_percent", spare_percent, 1, 400)?;
            whole_pages(block_bytes, flash.page_bytes)
        }
        FtlKind::Hybrid { block_bytes, spare_percent, log_bytes, .. } => {
            within("ftl.spare_percent", spare_percent, 1, 400)?;
            within("ftl.log_bytes", log_bytes, block_bytes, CAPACITY_BYTES_MAX)?;
            whole_pages(block_bytes, flash.page_bytes)
        }
        FtlKind::Bast { block_bytes, log_blocks, .. } => log_block(description, block_bytes, log_blocks, 1),
        FtlKind::Fast { block_bytes, log_blocks, .. } => log_block(description, block_bytes, log_blocks, 2),
    }
}

fn log_block(
    description: &Description,
    block_bytes: u64,
    log_blocks: u64,
    log_blocks_min: u64,
) -> Result<(), DescriptionFault> {
    let flash = &description.flash;
    if flash.unit_bytes != flash.page_bytes {
        let (page_bytes, unit_bytes) = (flash.page_bytes, flash.unit_bytes);
        return Err(DescriptionFault::UnitsInPage { page_bytes, unit_bytes });
    }
    within("ftl.log_blocks", log_blocks, log_blocks_min, 65_536)?;
    whole_pages(block_bytes, flash.page_bytes)
}

fn whole_pages(block_bytes: u64, page_bytes: u64) -> Result<(), DescriptionFault> {
    within("ftl.block_bytes", block_bytes, 2 * page_bytes, 1 << 30)?;
    if block_bytes.is_multiple_of(page_bytes) {
        return Ok(());
    }
    Err(DescriptionFault::PartOfPage { block_bytes, page_bytes })
}

/// A number in its range.
pub(crate) fn within(path: &str, value: u64, min: u64, max: u64) -> Result<(), DescriptionFault> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(DescriptionFault::OutOfRange { path: path.to_owned(), value, min, max })
}
