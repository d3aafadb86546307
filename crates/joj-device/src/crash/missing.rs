//! What a cut takes of the writes that no flush covers, block by block.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::image::SECTORS_PER_BLOCK;
use crate::number::size;

/// How many of a block's newest volatile writes are gone, in each of its sectors.
type Gone = [usize; SECTORS_PER_BLOCK];

/// The writes that are gone. As text: `BLOCK:WRITES`, joined by `+`; eight numbers with points between them where the sectors of a
/// block differ; `nothing`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    blocks: BTreeMap<u64, Gone>,
}

/// A text that names no writes.
#[derive(Debug, Error)]
#[error("`{0}` names no missing writes: BLOCK:WRITES, several joined by +, or `nothing`")]
pub struct NotMissing(String);

impl Missing {
    /// Notes what is gone of block `number`; a block of which nothing is gone is none.
    pub(super) fn add(&mut self, number: u64, gone: Gone) {
        if gone.iter().any(|writes| *writes > 0) {
            self.blocks.insert(number, gone);
        }
    }

    pub(super) fn of(&self, number: u64) -> Gone {
        self.blocks.get(&number).copied().unwrap_or_default()
    }

    /// True where everything that had been written is there.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Blocks of which something is gone, ascending.
    pub fn blocks(&self) -> impl Iterator<Item = u64> {
        self.blocks.keys().copied()
    }

    /// How many writes to blocks are gone, whole or in part.
    pub fn writes(&self) -> u64 {
        self.blocks.values().map(|gone| size(gone.iter().copied().max().unwrap_or(0))).sum()
    }

    /// True where some block has lost a write in some of its sectors only.
    pub fn is_torn(&self) -> bool {
        self.blocks.values().any(|gone| gone.iter().any(|writes| *writes != gone[0]))
    }

    /// Each time a little less: of one block one write less, or, where its sectors differ, nothing of one of them.
    pub fn lessened(&self) -> Vec<Missing> {
        let mut all = Vec::new();
        for (number, gone) in &self.blocks {
            let lesser: Vec<Gone> = if gone.iter().all(|writes| *writes == gone[0]) {
                vec![gone.map(|writes| writes - 1)]
            } else {
                let sectors = (0..SECTORS_PER_BLOCK).filter(|sector| gone[*sector] > 0);
                sectors
                    .map(|sector| std::array::from_fn(|at| if at == sector { 0 } else { gone[at] }))
                    .collect()
            };
            for gone in lesser {
                let mut less = self.but_for(&[*number]);
                less.add(*number, gone);
                all.push(less);
            }
        }
        all
    }

    /// The same, but that nothing is gone of `blocks`.
    #[must_use]
    pub fn but_for(&self, blocks: &[u64]) -> Missing {
        let stay = self.blocks.iter().filter(|(number, _)| !blocks.contains(number));
        Missing { blocks: stay.map(|(number, gone)| (*number, *gone)).collect() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return formatter.write_str("nothing");
        }
        for (place, (number, gone)) in self.blocks.iter().enumerate() {
            let sectors: Vec<String> = gone.iter().map(ToString::to_string).collect();
            let is_whole = gone.iter().all(|writes| *writes == gone[0]);
            let between = if place == 0 { "" } else { "+" };
            let writes = if is_whole { sectors[0].clone() } else { sectors.join(".") };
            write!(formatter, "{between}{number}:{writes}")?;
        }
        Ok(())
    }
}

impl FromStr for Missing {
    type Err = NotMissing;

    fn from_str(text: &str) -> Result<Missing, NotMissing> {
        let mut missing = Missing::default();
        if text == "nothing" {
            return Ok(missing);
        }
        for word in text.split('+') {
            let block = block(word).filter(|(number, _)| !missing.blocks.contains_key(number));
            let (number, gone) = block.ok_or_else(|| NotMissing(text.to_owned()))?;
            missing.add(number, gone);
        }
        Ok(missing)
    }
}

fn block(word: &str) -> Option<(u64, Gone)> {
    let (number, writes) = word.split_once(':')?;
    let writes: Vec<usize> = writes.split('.').map(|count| count.parse().ok()).collect::<Option<_>>()?;
    let gone = match writes[..] {
        [all] => [all; SECTORS_PER_BLOCK],
        _ => writes.try_into().ok()?,
    };
    Some((number.parse().ok()?, gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_the_same_writes_again() {
        let mut missing = Missing::default();
        assert_eq!(missing.to_string(), "nothing");
        missing.add(7, [0; 8]);
        missing.add(12, [2; 8]);
        missing.add(900, [1, 0, 0, 0, 1, 0, 0, 0]);
        assert_eq!(missing.to_string(), "12:2+900:1.0.0.0.1.0.0.0");
        assert_eq!((missing.writes(), missing.is_torn()), (3, true));
        for missing in [missing.clone(), missing.but_for(&[900]), missing.but_for(&[12, 900])] {
            assert_eq!(missing.to_string().parse::<Missing>().unwrap(), missing);
        }
        let lessened: Vec<String> = missing.lessened().iter().map(ToString::to_string).collect();
        assert_eq!(
            lessened,
            ["12:1+900:1.0.0.0.1.0.0.0", "12:2+900:0.0.0.0.1.0.0.0", "12:2+900:1.0.0.0.0.0.0.0"]
        );
        for wrong in ["", "12", "12:", "a:1", "12:1.2", "12:1+", "12:-1", "12:1+12:1"] {
            assert!(wrong.parse::<Missing>().is_err(), "{wrong}");
        }
    }
}
