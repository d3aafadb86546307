//! Pseudo-random numbers, the same on every machine and in every run.

/// splitmix64 (Steele, Lea and Flood, 2014).
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// A sequence that `seed` alone decides.
    pub const fn new(seed: u64) -> Self {
        Chance(seed)
    }

    /// The next number, any of 64 bits.
    pub const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// The next number in `0..end`.
    ///
    /// # Panics
    /// When `end` is zero.
    pub const fn below(&mut self, end: u64) -> u64 {
        assert!(end > 0, "nothing is below zero");
        self.next() % end
    }
}
