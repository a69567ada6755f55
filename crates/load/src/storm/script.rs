//! What a client does next, drawn from the storm's seed.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The most steps that a client takes before it goes.
const STEPS_MAX: u32 = 4;

/// How many times the others get their turn, at most, before a connection is torn down.
const TURNS_BEFORE_TEAR_MAX: u32 = 24;

/// One thing that a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Asks for a seat, also when it holds one.
    Acquire,
    /// Asks for a seat twice at once.
    AcquireTwice,
    /// Asks for a seat and does not look at the answer.
    AcquireUnheard,
    /// Asks for a seat and tears the connection down after the others have had so many turns.
    AcquireTorn { turns: u32 },
    /// Renews its seat.
    Heartbeat,
    /// Gives its seat back.
    Release,
    /// Gives its seat back and does not look at the answer.
    ReleaseUnheard,
    /// Stops, and is not heard of in this round again.
    Crash,
}

/// The steps of one client in one round.
pub(super) struct Script {
    random: StdRng,
    left: u32,
}

impl Script {
    pub(super) fn of(seed: u64, round: u32, client: u32) -> Self {
        let mut random = StdRng::seed_from_u64(mixed(mixed(seed, u64::from(round)), u64::from(client)));
        let left = random.random_range(1..=STEPS_MAX);
        Self { random, left }
    }

    /// The next step of a client that holds a seat, or does not; none after the last.
    pub(super) fn next(&mut self, holds: bool) -> Option<Step> {
        self.left = self.left.checked_sub(1)?;
        let percent = self.random.random_range(0..100);
        Some(if holds { self.with_a_seat(percent) } else { self.without_a_seat(percent) })
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

    fn torn(&mut self) -> Step {
        Step::AcquireTorn { turns: self.random.random_range(0..=TURNS_BEFORE_TEAR_MAX) }
    }
}

/// Which of so many licenses a round is played on.
pub(super) fn license_of(seed: u64, round: u32, licenses: usize) -> usize {
    StdRng::seed_from_u64(mixed(seed, u64::from(round))).random_range(0..licenses)
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

    fn steps(seed: u64, round: u32, client: u32) -> Vec<Step> {
        let mut script = Script::of(seed, round, client);
        std::iter::successors(script.next(false), |_| script.next(true)).collect()
    }

    #[test]
    fn a_seed_gives_the_same_steps_again() {
        assert_eq!(steps(7, 3, 9), steps(7, 3, 9));
    }

    #[test]
    fn clients_rounds_and_seeds_differ() {
        let all: HashSet<_> = [(1, 1, 1), (1, 1, 2), (1, 2, 1), (2, 1, 1)]
            .into_iter()
            .map(|(seed, round, client)| {
                (0..8)
                    .map(|more| steps(seed, round, client + 10 * more))
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
        let taken: HashSet<_> = (0..1_000)
            .flat_map(|client| steps(1, 1, client))
            .map(|step| std::mem::discriminant(&step))
            .collect();
        assert_eq!(taken.len(), 8);
    }
}
