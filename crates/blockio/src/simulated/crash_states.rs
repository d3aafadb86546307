//! The states in which a power cut can leave a simulated disk, at one moment of its log.
//!
//! A *unit* is something that reaches the medium on its own: a sector or a block of one file, a file's size, a change
//! of a name. Its *choices* are moments: the unit stands as it was at that moment (the first choice is its floor).
//! A state is one choice for each unit. Few units: every combination. Many: all prefixes in time, each unit alone
//! left behind, each unit alone advanced, and seeded samples. A [`Recipe`] names a state so that it can be made again.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::simulated::image::{BLOCK_BYTES, Content, Image, SECTOR_BYTES, in_memory, mix};
use crate::simulated::log::{Inode, Tick};
use crate::simulated::replay::{FileHistory, Replay};

const SECTOR: u64 = SECTOR_BYTES as u64;
const SECTORS_PER_BLOCK: u64 = (BLOCK_BYTES / SECTOR_BYTES) as u64;

/// In which pieces a write may be torn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// 512 bytes.
    Sector,
    /// 4096 bytes.
    Block,
}

/// How names and sizes survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metadata {
    /// As a prefix of their changes, and a size only with the data behind it (ext4, data=ordered).
    Ordered,
    /// Any subset, each on its own.
    AnySubset,
}

/// Which choice each unit takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// Combination of this number, of all.
    Combination(u64),
    /// The first so many (moment, unit) pairs in time reached the medium.
    Prefix(usize),
    /// All but this unit, which stands one choice back.
    Without(usize),
    /// This unit alone.
    Only(usize),
    /// Random choices from this seed.
    Sample(u64),
}

/// Names one state at a position of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recipe {
    /// Pieces of torn writes.
    pub grain: Grain,
    /// Rule for names and sizes.
    pub metadata: Metadata,
    /// The choices.
    pub pick: Pick,
}

impl fmt::Display for Recipe {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}/{:?}/{:?}", self.grain, self.metadata, self.pick)
    }
}

/// How many states to make.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Every combination is made for up to this many units ...
    pub exhaustive_units_max: usize,
    /// ... and up to this many combinations.
    pub combinations_max: u64,
    /// Random states for more than that.
    pub samples: u64,
    /// Where they start.
    pub seed: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { exhaustive_units_max: 12, combinations_max: 4096, samples: 64, seed: 1 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// All names and sizes, in order.
    Journal,
    /// One change of a name, by its place in the list.
    Name(usize),
    /// The size of a file.
    Size(Inode),
    /// So many sectors of a file from the given one on.
    Data(Inode, u64, u64),
}

#[derive(Debug, Clone)]
struct Unit {
    target: Target,
    choices: Vec<Tick>,
}

/// The undecided units under one rule, ready to be combined.
struct Undecided<'replay> {
    replay: &'replay Replay,
    metadata: Metadata,
    units: Vec<Unit>,
}

impl Replay {
    /// Every state within `bounds` that a power cut now can leave, each once, with the recipe that made it first.
    pub fn states(&self, bounds: &Bounds) -> Vec<(Recipe, Image)> {
        let mut seen = BTreeSet::new();
        let mut states = Vec::new();
        for metadata in [Metadata::AnySubset, Metadata::Ordered] {
            for grain in [Grain::Block, Grain::Sector] {
                let undecided = self.undecided(grain, metadata);
                for pick in undecided.picks(bounds) {
                    let image = undecided.image(&undecided.choices(pick));
                    if seen.insert(image.fingerprint()) {
                        states.push((Recipe { grain, metadata, pick }, image));
                    }
                }
            }
        }
        states
    }

    /// The state that `recipe` names.
    pub fn state(&self, recipe: Recipe) -> Image {
        let undecided = self.undecided(recipe.grain, recipe.metadata);
        undecided.image(&undecided.choices(recipe.pick))
    }

    /// How many units are undecided, counted in `grain`.
    pub fn undecided_units(&self, grain: Grain) -> usize {
        self.undecided(grain, Metadata::AnySubset).units.len()
    }

    fn undecided(&self, grain: Grain, metadata: Metadata) -> Undecided<'_> {
        let mut units = match metadata {
            Metadata::Ordered => self.journal_unit(),
            Metadata::AnySubset => self.name_and_size_units(),
        };
        let pending = self.names.iter().map(|(_, change)| change.inode());
        let named: BTreeSet<Inode> = self.names_floor.values().copied().chain(pending).collect();
        for inode in named {
            units.extend(data_units(inode, &self.files[&inode], grain));
        }
        Undecided { replay: self, metadata, units }
    }

    fn journal_unit(&self) -> Vec<Unit> {
        let names = self.names.iter().map(|(tick, _)| *tick);
        let sizes = self.files.values().flat_map(|file| &file.sizes).map(|change| change.tick);
        let later: BTreeSet<Tick> = names.chain(sizes).filter(|tick| *tick > self.journal_floor).collect();
        if later.is_empty() {
            return Vec::new();
        }
        let choices = std::iter::once(self.journal_floor).chain(later).collect();
        vec![Unit { target: Target::Journal, choices }]
    }

    fn name_and_size_units(&self) -> Vec<Unit> {
        let name = |(index, (tick, _)): (usize, &(Tick, _))| Unit {
            target: Target::Name(index),
            choices: vec![0, *tick],
        };
        let mut units: Vec<Unit> = self.names.iter().enumerate().map(name).collect();
        for (inode, file) in self.files.iter().filter(|(_, file)| !file.sizes.is_empty()) {
            let choices = std::iter::once(0).chain(file.sizes.iter().map(|change| change.tick)).collect();
            units.push(Unit { target: Target::Size(*inode), choices });
        }
        units
    }
}

fn data_units(inode: Inode, file: &FileHistory, grain: Grain) -> Vec<Unit> {
    let width = if grain == Grain::Sector { 1 } else { SECTORS_PER_BLOCK };
    let mut ticks: BTreeMap<u64, BTreeSet<Tick>> = BTreeMap::new();
    for (sector, versions) in &file.sectors {
        ticks.entry(sector / width).or_default().extend(versions.iter().map(|version| version.tick));
    }
    let unit = |(index, ticks): (u64, BTreeSet<Tick>)| Unit {
        target: Target::Data(inode, index * width, width),
        choices: std::iter::once(0).chain(ticks).collect(),
    };
    ticks.into_iter().map(unit).collect()
}

impl Undecided<'_> {
    fn picks(&self, bounds: &Bounds) -> Vec<Pick> {
        let combinations =
            self.units.iter().try_fold(1_u64, |product, unit| product.checked_mul(unit.choices.len() as u64));
        let few = self.units.len() <= bounds.exhaustive_units_max;
        match combinations {
            Some(count) if few && count <= bounds.combinations_max => {
                (0..count).map(Pick::Combination).collect()
            }
            _ => {
                let steps: usize = self.units.iter().map(|unit| unit.choices.len() - 1).sum();
                let units = 0..self.units.len();
                let mut picks: Vec<Pick> = (0..=steps).map(Pick::Prefix).collect();
                picks.extend(units.clone().map(Pick::Without));
                picks.extend(units.map(Pick::Only));
                picks.extend((0..bounds.samples).map(|number| Pick::Sample(mix(bounds.seed, number))));
                picks
            }
        }
    }

    /// For each unit the index of its choice.
    fn choices(&self, pick: Pick) -> Vec<usize> {
        let lasts = self.units.iter().map(|unit| unit.choices.len() - 1);
        match pick {
            Pick::Combination(number) => {
                let mut rest = number;
                let digit = |unit: &Unit| {
                    let count = unit.choices.len() as u64;
                    let digit = rest % count;
                    rest /= count;
                    in_memory(digit)
                };
                self.units.iter().map(digit).collect()
            }
            Pick::Prefix(count) => self.prefix(count),
            Pick::Without(left) => {
                lasts.enumerate().map(|(unit, last)| last - usize::from(unit == left)).collect()
            }
            Pick::Only(only) => {
                lasts.enumerate().map(|(unit, last)| if unit == only { last } else { 0 }).collect()
            }
            Pick::Sample(seed) => lasts
                .enumerate()
                .map(|(unit, last)| {
                    let random = mix(seed, unit as u64) >> 8;
                    in_memory(random % (last as u64 + 1))
                })
                .collect(),
        }
    }

    fn prefix(&self, count: usize) -> Vec<usize> {
        let mut steps: Vec<(Tick, usize)> = Vec::new();
        for (index, unit) in self.units.iter().enumerate() {
            steps.extend(unit.choices[1..].iter().map(|tick| (*tick, index)));
        }
        steps.sort_unstable();
        let mut choices = vec![0; self.units.len()];
        for (_, unit) in &steps[..count] {
            choices[*unit] += 1;
        }
        choices
    }

    fn image(&self, choices: &[usize]) -> Image {
        let mut names = self.replay.names_floor.clone();
        let mut journal = self.replay.journal_floor;
        let mut sizes: BTreeMap<Inode, Tick> = BTreeMap::new();
        let mut data: BTreeMap<Inode, Vec<(u64, u64, Tick)>> = BTreeMap::new();
        let mut kept_names = vec![false; self.replay.names.len()];
        for (unit, choice) in self.units.iter().zip(choices) {
            let tick = unit.choices[*choice];
            match unit.target {
                Target::Journal => journal = tick,
                Target::Name(index) => kept_names[index] = tick > 0,
                Target::Size(inode) => drop(sizes.insert(inode, tick)),
                Target::Data(inode, first, count) => {
                    data.entry(inode).or_default().push((first, count, tick))
                }
            }
        }
        for ((tick, change), kept) in self.replay.names.iter().zip(kept_names) {
            let kept = if self.metadata == Metadata::Ordered { *tick <= journal } else { kept };
            if kept {
                change.apply(&mut names);
            }
        }
        let file = |inode: &Inode| {
            let until = match self.metadata {
                Metadata::Ordered => journal,
                Metadata::AnySubset => sizes.get(inode).copied().unwrap_or(0),
            };
            let data = data.get(inode).map_or(&[][..], Vec::as_slice);
            self.content(&self.replay.files[inode], until, data)
        };
        Image { files: names.iter().map(|(path, inode)| (path.clone(), file(inode))).collect() }
    }

    /// One file, with changes of its size up to `until` and each range of sectors as of its moment.
    fn content(&self, file: &FileHistory, until: Tick, data: &[(u64, u64, Tick)]) -> Content {
        let mut content = file.floor.clone();
        let (kept, lost) = file.sizes.split_at(file.sizes.partition_point(|change| change.tick <= until));
        kept.iter().filter_map(|change| change.cut).for_each(|cut| content.cut(cut));
        for (first, count, moment) in data {
            for (sector, versions) in file.sectors.range(*first..first + count) {
                let mut moment = *moment;
                if self.metadata == Metadata::Ordered {
                    moment = moment.max(ordered_floor(file, *sector, until));
                }
                let end = (sector + 1) * SECTOR;
                let cut_away = |tick: Tick| {
                    lost.iter()
                        .any(|change| change.tick < tick && change.cut < Some(end) && change.cut.is_some())
                };
                let version =
                    versions.iter().rev().find(|version| version.tick <= moment && !cut_away(version.tick));
                if let Some(version) = version {
                    content.write_raw(&version.bytes_after(*sector, kept, until), sector * SECTOR);
                }
            }
        }
        let size_bytes = kept.last().map_or(file.floor.size_bytes(), |change| change.size_bytes);
        content.set_size(size_bytes);
        content
    }
}

/// In the ordered model, data behind the end of the file are written before the size that covers them.
fn ordered_floor(file: &FileHistory, sector: u64, until: Tick) -> Tick {
    let mut size_bytes = file.floor.size_bytes();
    let mut floor = 0;
    for change in file.sizes.iter().take_while(|change| change.tick <= until) {
        if change.size_bytes > size_bytes
            && (sector + 1) * SECTOR > size_bytes
            && sector * SECTOR < change.size_bytes
        {
            floor = change.tick;
        }
        size_bytes = change.size_bytes;
    }
    floor
}
