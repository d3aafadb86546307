//! Which cells of a plan, or states of a program, a shard has: every so-manieth, so that costly neighbours are shared out, too.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Most shards: more than any plan has cells, or a filesystem states.
const SHARDS_MAX: u32 = 100_000;

/// A shard of a run: its number, of so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shard {
    number: u32,
    count: u32,
}

/// Why a text names no shard.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShardError {
    /// It has another form.
    #[error("it reads I/N, for example 2/4: the second of four")]
    Form,
    /// There are none, or too many.
    #[error("there are {0} shards of no run: N is from 1 to {SHARDS_MAX}")]
    Count(u32),
    /// There is no such one.
    #[error("shard {number} is none of {count}: I is from 1 to {count}")]
    Number {
        /// Which one.
        number: u32,
        /// Of how many.
        count: u32,
    },
}

impl Shard {
    /// The only one of a run that is not shared out.
    pub const WHOLE: Shard = Shard { number: 1, count: 1 };

    /// Shard `number`, from 1 on, of `count`.
    /// # Errors
    /// Where there is no such one.
    pub fn new(number: u32, count: u32) -> Result<Shard, ShardError> {
        if count == 0 || count > SHARDS_MAX {
            return Err(ShardError::Count(count));
        }
        if number == 0 || number > count {
            return Err(ShardError::Number { number, count });
        }
        Ok(Shard { number, count })
    }

    /// Its number, from 1 on.
    pub fn number(self) -> u32 {
        self.number
    }

    /// Shards of the run.
    pub fn count(self) -> u32 {
        self.count
    }

    /// Those that it has of so many cells or states, by their index, ascending.
    pub fn indices(self, all: usize) -> impl ExactSizeIterator<Item = usize> {
        (self.number as usize - 1..all).step_by(self.count as usize)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.number, self.count)
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Shard, ShardError> {
        let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse::<u32>().map_err(|_| ShardError::Form),
            false => Err(ShardError::Form),
        };
        let (shard, count) = text.split_once('/').ok_or(ShardError::Form)?;
        Shard::new(number(shard)?, number(count)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_index_is_in_one_shard_and_all_have_as_many_but_for_one() {
        for (all, count) in [(0, 1), (1, 1), (4, 4), (7, 3), (3, 7), (40, 4)] {
            let shards: Vec<Vec<usize>> =
                (1..=count).map(|number| Shard::new(number, count).unwrap().indices(all).collect()).collect();
            let mut found: Vec<usize> = shards.concat();
            found.sort_unstable();
            assert_eq!(found, (0..all).collect::<Vec<_>>(), "{all} in {count}");
            let most = shards.iter().map(Vec::len).max().unwrap();
            assert!(shards.iter().all(|shard| shard.len() + 1 >= most), "{shards:?}");
        }
        assert_eq!(Shard::WHOLE.indices(3).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_shard_is_written_as_it_is_read_and_what_is_none_says_why() {
        assert_eq!("2/4".parse::<Shard>().unwrap().to_string(), "2/4");
        let said = |text: &str| text.parse::<Shard>().unwrap_err().to_string();
        for text in ["", "x", "2", "/4", "2/", "a/4", "2/4/6", "-1/4", "+1/4", "1/99999999999"] {
            assert_eq!(said(text), ShardError::Form.to_string(), "{text}");
        }
        assert_eq!(said("5/4"), "shard 5 is none of 4: I is from 1 to 4");
        assert_eq!(said("0/4"), "shard 0 is none of 4: I is from 1 to 4");
        assert!(said("1/0").contains("N is from 1 to"));
        assert!(said("1/100001").contains("N is from 1 to"));
    }
}
