//! A small seeded random generator (SplitMix64), reproducible on every machine.

/// A random generator.
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.roll() % bound
    }

    /// Returns true with a probability of `chance` percent.
    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
