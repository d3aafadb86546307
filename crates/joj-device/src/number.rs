//! Sizes as indices.

/// `value` as an index. The crate runs on 64-bit machines, where nothing is lost.
pub(crate) fn index(value: u64) -> usize {
    usize::try_from(value).expect("an index fits the address space")
}

/// `value` as a size.
pub(crate) fn size(value: usize) -> u64 {
    u64::try_from(value).expect("a usize has at most 64 bits")
}
