//! Seeded randomness: the same seed gives the same test.

/// splitmix64.
#[derive(Debug, Clone)]
pub struct Chance(u64);

impl Chance {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// From 0 to `end`, `end` excluded.
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        let index = self.below(from.len() as u64);
        &from[usize::try_from(index).unwrap()]
    }
}

/// A seed of this moment, or the one that JOJ_SEED names to repeat a failure.
pub fn seed() -> u64 {
    let given = std::env::var("JOJ_SEED").ok().and_then(|seed| seed.parse().ok());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    given.unwrap_or(u64::from(now.subsec_nanos()) << 20 | now.as_secs() & 0xf_ffff)
}
