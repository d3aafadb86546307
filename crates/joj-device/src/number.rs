//! Sizes as indices, and keys in a range.

use std::ops::RangeInclusive;

/// `value` as an index. The crate runs on 64-bit machines, where nothing is lost.
pub(crate) fn index(value: u64) -> usize {
    usize::try_from(value).expect("an index fits the address space")
}

/// Which of `keys` lie in `range`, ascending, at the price of the smaller of both: hosts trim whole devices.
pub(crate) fn keys_within<'map>(
    keys: impl ExactSizeIterator<Item = &'map u64>,
    has: impl Fn(u64) -> bool,
    range: RangeInclusive<u64>,
) -> Vec<u64> {
    let mut found: Vec<u64> = if range.end() - range.start() < size(keys.len()) {
        range.filter(|key| has(*key)).collect()
    } else {
        keys.copied().filter(|key| range.contains(key)).collect()
    };
    found.sort_unstable();
    found
}

/// `value` as a size.
pub(crate) fn size(value: usize) -> u64 {
    u64::try_from(value).expect("a usize has at most 64 bits")
}
