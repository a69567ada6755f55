//! Seeded random numbers.

/// SplitMix64: a seed gives the same sequence on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Creates an independent sequence for each `number` under a seed.
    pub(crate) fn new(seed: u64, number: u64) -> Self {
        let mut dice = Self(seed ^ number.wrapping_mul(0xd134_2543_de82_ef95));
        dice.throw();
        dice
    }

    /// Returns a random number from 0 to `below - 1`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.throw() % below
    }

    fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
