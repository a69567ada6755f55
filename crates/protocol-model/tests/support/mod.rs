//! Walks through models: complete, or up to a broken promise.
#![allow(dead_code, reason = "each test uses a part of the module")]
#![allow(clippy::panic, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, Model};

/// Time limit of a walk. A walk takes some seconds, and more on a busy machine.
const WALK_MAX: Duration = Duration::from_secs(3600);

const THREADS: usize = 2;

/// The limit of a search for a path that breaks a promise, in states.
const SEARCH_MAX: usize = 20_000_000;

/// The least number of distinct states of a walk that a setting of the environment lengthens.
pub(crate) const MORE_STATES_MIN: usize = 5_000_000;

/// The least number of distinct states of each complete walk, as the tests are. A model that lost steps has
/// fewer states.
pub(crate) mod states_min {
    pub(crate) const FAILURE: usize = 34_000;
    pub(crate) const TWO_SEATS: usize = 1_300_000;
    pub(crate) const FAILURE_OR_FALLBACK: usize = 130_000;
    pub(crate) const FALLBACK_AND_RETURN: usize = 270_000;
    pub(crate) const TWO_REBUILDS: usize = 770_000;
    pub(crate) const JOURNAL: usize = 115_000;
    pub(crate) const JOURNAL_AND_FALLBACK: usize = 125_000;
    pub(crate) const LEDGER_ALONE: usize = 330_000;
    pub(crate) const LEDGER_ALONE_OR_FAILURE: usize = 215_000;
    pub(crate) const LEDGER_ALONE_TWO_SEATS: usize = 130_000;
    pub(crate) const PARTITION: usize = 3_100_000;
    pub(crate) const NEWCOMER: usize = 840_000;
    pub(crate) const NEWCOMER_WITH_REDIS: usize = 5_400_000;
    pub(crate) const SILENCES: usize = 3_100_000;
    pub(crate) const TWO_FAULTS: usize = 500_000;
    pub(crate) const BAD_NETWORK: usize = 15_000;
    pub(crate) const BAD_NETWORK_AND_FAULT: usize = 2_700_000;
    pub(crate) const FORGETFUL_LEDGER: usize = 470_000;
    pub(crate) const HOMES: usize = 11_000;
    pub(crate) const HOME_MOVES: usize = 550_000;
    pub(crate) const REGION_ADOPTION: usize = 2_000;

    /// Five million states without a broken promise, in all walks together.
    const _: () = assert!(
        FAILURE
            + TWO_SEATS
            + FAILURE_OR_FALLBACK
            + FALLBACK_AND_RETURN
            + TWO_REBUILDS
            + PARTITION
            + TWO_FAULTS
            + FORGETFUL_LEDGER
            >= 5_000_000
    );
}

/// Walks through a whole model of at least `states_min` states, and asserts every promise.
pub(crate) fn assert_kept<M>(model: M, states_min: usize)
where
    M: Model + Debug + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let checker = walk(model);
    checker.assert_properties();
    let states = checker.unique_state_count();
    assert!(states >= states_min, "the walk visited {states} states, and should visit {states_min}");
}

/// Walks through a whole model.
pub(crate) fn walk<M>(model: M) -> impl Checker<M>
where
    M: Model + Debug + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let (began, name) = (Instant::now(), format!("{model:?}"));
    let checker = model.checker().threads(THREADS).timeout(WALK_MAX).spawn_bfs().join();
    println!("{} states in {:?}: {name}", checker.unique_state_count(), began.elapsed());
    assert!(checker.is_done(), "the walk was cut short");
    checker
}

/// A reached state, with the number of the state before and the step in between.
struct Reached<M: Model> {
    state: M::State,
    from: Option<(usize, M::Action)>,
}

/// Asserts that a promise is broken, and prints a shortest path to a violating state.
pub(crate) fn assert_broken<M>(model: &M, promise: &'static str)
where
    M: Model,
    M::State: Clone + Debug + Hash + Eq,
    M::Action: Clone + Debug,
{
    let property = model.property(promise);
    assert!(matches!(property.expectation, Expectation::Always), "{promise:?} is no promise");
    // By fingerprint, as the checker does: a collision would only cut a path off.
    let mut seen: HashSet<u64> = model.init_states().iter().map(fingerprint).collect();
    let begin = |state| Reached { state, from: None };
    let mut reached: Vec<Reached<M>> = model.init_states().into_iter().map(begin).collect();
    let (mut next, mut steps) = (0, Vec::new());
    while next < reached.len() && reached.len() < SEARCH_MAX {
        let state = reached[next].state.clone();
        if !(property.condition)(model, &state) {
            let path = path_to(&reached, next);
            println!(
                "{promise:?} is broken after {next} states, by {} steps: {path:?}\n{state:?}",
                path.len()
            );
            return;
        }
        model.actions(&state, &mut steps);
        for step in steps.drain(..) {
            let Some(state) = model.next_state(&state, step.clone()) else { continue };
            if seen.insert(fingerprint(&state)) {
                reached.push(Reached { state, from: Some((next, step)) });
            }
        }
        next += 1;
    }
    panic!("{promise:?} is kept in {next} states");
}

fn fingerprint<T: Hash>(value: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

fn path_to<M: Model<Action: Clone>>(reached: &[Reached<M>], last: usize) -> Vec<M::Action> {
    let steps =
        std::iter::successors(reached[last].from.clone(), |(before, _)| reached[*before].from.clone());
    let mut path: Vec<M::Action> = steps.map(|(_, step)| step).collect();
    path.reverse();
    path
}

/// Returns the number that a setting of the environment asks for, or `default`.
pub(crate) fn number_or(setting: &str, default: u8) -> u8 {
    std::env::var(setting).map_or(default, |number| number.parse().expect("a number"))
}
