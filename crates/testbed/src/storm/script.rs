//! The next step of a client, drawn from the storm's seed. The same seed gives the same steps.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::Door;

/// The most steps of a client in a round.
const STEPS_MAX: u32 = 4;

/// The most turns of other tasks before a connection is torn down or a change is made.
const TURNS_OF_OTHERS_MAX: u32 = 24;

/// The number of rounds for each round with a change, on average.
const ROUNDS_PER_CHANGE: u32 = 2;

/// A step of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Asks for a seat, even with a seat in hand.
    Acquire,
    /// Asks for a seat twice concurrently, naming the held session.
    RefreshTwice,
    /// Asks for a seat in place of another client's session.
    TakeAnothers,
    /// Asks for a seat twice concurrently.
    AcquireTwice,
    /// Asks for a seat and ignores the answer.
    AcquireUnheard,
    /// Asks for a seat and tears down the connection after `turns` turns of other tasks.
    AcquireTorn { turns: u32 },
    /// Renews the held seat.
    Heartbeat,
    /// Releases the held seat.
    Release,
    /// Releases the held seat and ignores the answer.
    ReleaseUnheard,
    /// Ends every session of the subscriber except the client's own.
    EndOthers,
    /// Stops for the rest of the round without a release.
    Crash,
}

/// The behaviour of clients, by their API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    Machine,
    Device,
    /// A device without heartbeats.
    SilentDevice,
}

impl Manner {
    pub(super) fn at(door: &Door) -> Self {
        match door {
            Door::Licenses { .. } => Self::Machine,
            Door::Devices { renew: true, .. } => Self::Device,
            Door::Devices { renew: false, .. } => Self::SilentDevice,
        }
    }
}

/// The steps of a client in a round.
pub(super) struct Script {
    manner: Manner,
    random: StdRng,
    left: u32,
}

impl Script {
    pub(super) fn new(manner: Manner, seed: u64, round: u32, client: u32) -> Self {
        let mut random = StdRng::seed_from_u64(mixed(mixed(seed, u64::from(round)), u64::from(client)));
        let left = random.random_range(1..=STEPS_MAX);
        Self { manner, random, left }
    }

    /// Returns the next step of a client with or without a seat; `None` after the last step.
    pub(super) fn next(&mut self, holds: bool) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let percent = self.random.random_range(0..100);
        Some(match (self.manner, holds) {
            (Manner::Machine, true) => self.with_a_seat(percent),
            (Manner::Machine, false) => self.without_a_seat(percent),
            (Manner::Device, true) => self.with_a_screen(percent),
            (Manner::SilentDevice, true) => self.with_a_screen_in_silence(percent),
            (Manner::Device | Manner::SilentDevice, false) => self.without_a_screen(percent),
        })
    }

    fn with_a_seat(&mut self, percent: u32) -> Step {
        match percent {
            0..45 => Step::Heartbeat,
            45..55 => Step::Acquire,
            55..62 => Step::AcquireTwice,
            62..65 => self.torn(),
            65..88 => Step::Release,
            88..92 => Step::ReleaseUnheard,
            _ => Step::Crash,
        }
    }

    fn without_a_seat(&mut self, percent: u32) -> Step {
        match percent {
            0..70 => Step::Acquire,
            70..82 => Step::AcquireTwice,
            82..93 => Step::AcquireUnheard,
            _ => self.torn(),
        }
    }

    fn with_a_screen(&mut self, percent: u32) -> Step {
        match percent {
            0..30 => Step::Heartbeat,
            30..40 => Step::RefreshTwice,
            _ => self.with_a_screen_in_silence(percent),
        }
    }

    fn with_a_screen_in_silence(&mut self, percent: u32) -> Step {
        match percent {
            0..45 => Step::Acquire,
            45..51 => Step::AcquireTwice,
            51..54 => self.torn(),
            54..57 => Step::EndOthers,
            57..63 => Step::Release,
            63..65 => Step::ReleaseUnheard,
            _ => Step::Crash,
        }
    }

    fn without_a_screen(&mut self, percent: u32) -> Step {
        match percent {
            0..55 => Step::Acquire,
            55..67 => Step::AcquireTwice,
            67..77 => Step::AcquireUnheard,
            77..90 => Step::TakeAnothers,
            _ => self.torn(),
        }
    }

    fn torn(&mut self) -> Step {
        Step::AcquireTorn { turns: self.random.random_range(0..=TURNS_OF_OTHERS_MAX) }
    }
}

/// Returns the index of the pool for a round.
pub(super) fn pool_of(seed: u64, round: u32, pools: usize) -> usize {
    StdRng::seed_from_u64(mixed(seed, u64::from(round))).random_range(0..pools)
}

/// Returns the index of the change made in a round, and the number of turns before it; `None` for a round
/// without a change.
pub(super) fn change_of(seed: u64, round: u32, changes: usize) -> Option<(usize, u32)> {
    let mut random = StdRng::seed_from_u64(mixed(!seed, u64::from(round)));
    let made = changes > 0 && random.random_ratio(1, ROUNDS_PER_CHANGE);
    made.then(|| (random.random_range(0..changes), random.random_range(0..=TURNS_OF_OTHERS_MAX)))
}

/// A step of SplitMix64: neighbouring numbers give unrelated seeds.
fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn steps(manner: Manner, seed: u64, round: u32, client: u32) -> Vec<Step> {
        let mut script = Script::new(manner, seed, round, client);
        std::iter::successors(script.next(false), |_| script.next(true)).collect()
    }

    #[test]
    fn a_seed_gives_the_same_steps_again() {
        assert_eq!(steps(Manner::Machine, 7, 3, 9), steps(Manner::Machine, 7, 3, 9));
    }

    #[test]
    fn clients_rounds_and_seeds_differ() {
        let all: HashSet<_> = [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1)]
            .into_iter()
            .map(|(seed, round, client)| {
                (0..8)
                    .map(|more| steps(Manner::Machine, seed, round, client + 10 * more))
                    .collect::<Vec<_>>()
                    .into_iter()
                    .map(|steps| format!("{steps:?}"))
                    .collect::<String>()
            })
            .collect();
        assert_eq!(all.len(), 4);
    }

    #[test]
    fn every_step_is_taken_by_someone() {
        let taken = |manner| {
            let steps = (0..1_000).flat_map(|client| steps(manner, 1, 1, client));
            steps.map(|step| std::mem::discriminant(&step)).collect::<HashSet<_>>().len()
        };
        assert_eq!([Manner::Machine, Manner::Device, Manner::SilentDevice].map(taken), [8, 11, 9]);
    }
}
