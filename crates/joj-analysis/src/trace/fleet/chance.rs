//! Numbers by chance, the same from the same seed.

/// SplitMix64's last step: neighbouring numbers give numbers without a likeness.
pub fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// From 0 to 1.
pub fn share(number: u64) -> f64 {
    (number >> 11) as f64 / (1_u64 << 53) as f64
}

/// A number without its fraction; none of ours is negative or large.
pub fn whole(number: f64) -> u64 {
    std::time::Duration::from_secs_f64(number.max(0.0)).as_secs()
}
