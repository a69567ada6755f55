//! Walks through models: all of one, or until a promise is broken.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, Model};

/// A walk takes some seconds. A machine that is busy with other things may take longer.
const WALK_MAX: Duration = Duration::from_secs(3600);

const THREADS: usize = 2;

/// The limit of a search for a path that breaks a promise, in states.
const SEARCH_MAX: usize = 3_000_000;

/// Walks through all of a model, and asserts that every promise is kept.
pub(crate) fn assert_kept<M>(model: M)
where
    M: Model + Debug + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let (began, name) = (Instant::now(), format!("{model:?}"));
    let checker = model.checker().threads(THREADS).timeout(WALK_MAX).spawn_bfs().join();
    println!("{} states in {:?}: {name}", checker.unique_state_count(), began.elapsed());
    assert!(checker.is_done(), "the walk was cut short");
    checker.assert_properties();
}

/// Asserts that a promise is broken, and prints a shortest path to the first state that breaks it.
pub(crate) fn assert_broken<M>(model: &M, promise: &'static str)
where
    M: Model,
    M::State: Clone + Debug + Hash + Eq,
    M::Action: Clone + Debug,
{
    let property = model.property(promise);
    assert!(matches!(property.expectation, Expectation::Always), "{promise:?} is no promise");
    let mut seen: HashSet<M::State> = HashSet::new();
    // Each state with the number of the state before it, and the step from there.
    let mut reached: Vec<(M::State, Option<(usize, M::Action)>)> = Vec::new();
    for state in model.init_states() {
        seen.insert(state.clone());
        reached.push((state, None));
    }
    let (mut next, mut steps) = (0, Vec::new());
    while next < reached.len() && reached.len() < SEARCH_MAX {
        let state = reached[next].0.clone();
        if !(property.condition)(model, &state) {
            print_path(promise, &reached, next);
            return;
        }
        model.actions(&state, &mut steps);
        for step in steps.drain(..) {
            let Some(state) = model.next_state(&state, step.clone()) else { continue };
            if seen.insert(state.clone()) {
                reached.push((state, Some((next, step))));
            }
        }
        next += 1;
    }
    panic!("{promise:?} is kept in {next} states");
}

fn print_path<S: Debug, A: Debug>(promise: &str, reached: &[(S, Option<(usize, A)>)], last: usize) {
    let (mut at, mut path) = (last, Vec::new());
    while let Some((before, step)) = &reached[at].1 {
        path.push(format!("{step:?}"));
        at = *before;
    }
    path.reverse();
    let (count, path) = (path.len(), path.join(", "));
    println!("{promise:?} is broken after {last} states, by {count} steps: {path}\n{:?}", reached[last].0);
}
