//! What a power cut may take of commits that returned, by `PRAGMA synchronous` and waldio's options (docs/usage.md, waldio's promise).

use crate::bench::key::Synchronous;
use crate::lab::cell::Cell;

/// What a commit writes at least: one frame, without its header in waldio's embedded layout. The databases have pages of 4 KiB.
const FRAME_BYTES_MIN: u64 = 4096;
/// What `durability=bounded` means where `group` says nothing else: waldio's own default, as a test sees to.
const BOUNDED: LossBound = LossBound::Delay { bytes: 4 << 20, time_ns: 10_000_000 };

/// So much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossBound {
    /// Nothing.
    Nothing,
    /// Commits whose flush is delayed.
    Delay {
        /// Of the log.
        bytes: u64,
        /// From a commit's return to the beginning of its flush; where another flush is under way then, to its end.
        time_ns: u64,
    },
    /// All of them.
    Anything,
}

impl LossBound {
    /// Of a cell. An option that cannot be read allows nothing.
    pub fn of(cell: &Cell) -> LossBound {
        let mut bound = LossBound::Nothing;
        for option in &cell.waldio_options {
            bound = match option.split_once('=') {
                Some(("durability", "bounded")) if matches!(bound, LossBound::Delay { .. }) => bound,
                Some(("durability", "bounded")) => BOUNDED,
                Some(("durability", "normal")) => LossBound::Anything,
                Some(("durability", _)) => LossBound::Nothing,
                Some(("group", "0" | "off" | "false" | "no")) if bound == LossBound::Anything => bound,
                Some(("group", value)) => delay(value).unwrap_or(LossBound::Nothing),
                _ => bound,
            };
        }
        if bound == LossBound::Nothing && cell.synchronous != Synchronous::Full {
            return LossBound::Anything;
        }
        bound
    }

    /// How many commits may be gone.
    pub fn commits_max(self) -> u64 {
        match self {
            LossBound::Nothing => 0,
            // The commit that would make it all of the bytes waits for a flush.
            LossBound::Delay { bytes, .. } => bytes.div_ceil(FRAME_BYTES_MIN).saturating_sub(1),
            LossBound::Anything => u64::MAX,
        }
    }

    /// How long ago, in nanoseconds, a commit may have returned that is gone, where the longest flush took so long.
    pub fn age_max_ns(self, longest_flush_ns: u64) -> u64 {
        match self {
            LossBound::Nothing => 0,
            // At worst a flush had just begun when it returned, and does not cover it.
            LossBound::Delay { time_ns, .. } => time_ns.max(longest_flush_ns) + longest_flush_ns,
            LossBound::Anything => u64::MAX,
        }
    }
}

/// Of `BYTES,MS`, each with a unit or without.
fn delay(value: &str) -> Option<LossBound> {
    let (bytes, time) = value.split_once(',')?;
    let bytes = with_unit(bytes, &[("KiB", 1 << 10), ("MiB", 1 << 20), ("", 1)])?;
    let time_ns = with_unit(time, &[("ms", 1_000_000), ("", 1_000_000)])?;
    Some(LossBound::Delay { bytes, time_ns })
}

fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let number = |text: &str| text.trim_end().parse::<u64>().ok();
    units.iter().find_map(|(unit, factor)| number(text.trim().strip_suffix(unit)?)?.checked_mul(*factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::key::JournalMode;
    use crate::lab::report::facts::sample;

    fn of(synchronous: Synchronous, options: &[&str]) -> LossBound {
        let waldio_options = options.iter().map(|option| (*option).to_owned()).collect();
        LossBound::of(&Cell { synchronous, waldio_options, ..sample::cell(JournalMode::Waldio) })
    }

    #[test]
    fn the_last_option_says_what_may_be_lost() {
        let delay = |kib: u64, ms: u64| LossBound::Delay { bytes: kib << 10, time_ns: ms * 1_000_000 };
        let of_full = |options| of(Synchronous::Full, options);
        assert_eq!(of_full(&[]), LossBound::Nothing);
        assert_eq!(of_full(&["layout=embedded", "group=16KiB,2ms"]), delay(16, 2));
        assert_eq!(of_full(&["group=16KiB,2ms", "group=32768,2"]), delay(32, 2));
        assert_eq!(of_full(&["group=16KiB,2ms", "durability=bounded"]), delay(16, 2));
        assert_eq!(of_full(&["durability=bounded"]), BOUNDED);
        assert_eq!(of_full(&["durability=bounded", "durability=full"]), LossBound::Nothing);
        assert_eq!(of_full(&["group=16KiB,2ms", "group=off"]), LossBound::Nothing);
        assert_eq!(of_full(&["group=much,2ms"]), LossBound::Nothing, "what nobody can read allows nothing");
        assert_eq!(of_full(&["durability=normal", "group=off"]), LossBound::Anything);
        assert_eq!(of(Synchronous::Normal, &[]), LossBound::Anything);
        assert_eq!(of(Synchronous::Normal, &["durability=bounded"]), BOUNDED);
    }

    #[test]
    fn bounded_is_what_it_is_in_waldio() {
        let mut options = waldio::options::Options::default();
        options.set("waldio_durability", "bounded").expect("an option of waldio's");
        let waldio::options::DurabilityChoice::Bounded(delay) = options.durability else {
            panic!("{options:?}")
        };
        let time_ns = delay.time.as_nanos().try_into().expect("less than 500 years");
        assert_eq!(BOUNDED, LossBound::Delay { bytes: delay.bytes, time_ns });
    }

    #[test]
    fn less_than_the_bytes_may_be_gone_and_nothing_older_than_time_and_flushes() {
        let bound = of(Synchronous::Full, &["group=16KiB,2ms"]);
        assert_eq!(bound.commits_max(), 3);
        assert_eq!(
            [0, 500_000, 7_000_000].map(|flush_ns| bound.age_max_ns(flush_ns)),
            [2_000_000, 2_500_000, 14_000_000]
        );
        assert_eq!((LossBound::Nothing.commits_max(), LossBound::Nothing.age_max_ns(5)), (0, 0));
    }
}
