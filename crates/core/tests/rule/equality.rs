//! The rule agrees with the naive reference on every step and in every state reached by random runs.

use proptest::prelude::*;
use seatkeeper_core::rule::Renewal;
use seatkeeper_core::{EndReason, Ending, RegistryTime, Seats};

use crate::properties::config;
use crate::reference::{End, Heard, Naive};
use crate::runs::{Done, Step, by_id, runs};

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn the_rule_is_what_the_specification_says(run in runs()) {
        let mut naive = Naive::default();
        run.play(|step| {
            same_answer(&mut naive, step)?;
            same_state(&naive, step)
        })?;
    }
}

fn same_answer(naive: &mut Naive, step: &Step) -> Result<(), TestCaseError> {
    let now = step.now;
    match &step.done {
        Done::Claim { claim, policy, fresh, decision } => {
            let (outcome, ended) = naive.claim(claim, policy, *fresh, now);
            prop_assert_eq!(decision.outcome, outcome);
            prop_assert_eq!(in_order(told(&decision.ended)), in_order(ended));
        }
        Done::Heartbeat { id, kind, found } => {
            let heard = match found {
                Renewal::Renewed => Heard::Renewed,
                Renewal::Over(_) => Heard::Over,
                Renewal::Missing => Heard::Missing,
            };
            prop_assert_eq!(heard, naive.heartbeat(*id, *kind, now));
        }
        Done::End { id, found } => {
            let ended = found.as_ref().map(|ending| (ending.session.id, ending.reason));
            prop_assert_eq!(ended, naive.end(*id, EndReason::Released, now));
        }
        Done::Revise { terms, ended } => {
            prop_assert_eq!(in_order(told(ended)), in_order(naive.revise(*terms, now)));
        }
        Done::Forget { ended } => prop_assert_eq!(in_order(told(ended)), in_order(naive.forget(now))),
        Done::Nothing => {}
    }
    Ok(())
}

fn same_state(naive: &Naive, step: &Step) -> Result<(), TestCaseError> {
    let pool = &step.after;
    prop_assert_eq!(pool.terms(), naive.terms);
    prop_assert_eq!(pool.live() as usize, naive.live.len());
    prop_assert_eq!(by_id(pool.iter()), by_id(naive.live.iter()));
    prop_assert_eq!(pool.stalest(), naive.stalest().map(|at| &naive.live[at]));
    prop_assert_eq!(pool.stalest_first().collect::<Vec<_>>(), naive.in_order());
    prop_assert_eq!(pool.is_empty(), naive.live.is_empty());
    prop_assert_eq!(pool.next_expiry(), naive.live.iter().map(|it| naive.expiry(it)).min());
    for session in &naive.live {
        prop_assert_eq!(pool.get(session.id), Some(session));
        prop_assert_eq!(pool.held_by(&session.holder), Some(session));
        prop_assert_eq!(pool.expiry_of(session), naive.expiry(session));
    }
    let since = RegistryTime::from_millis(step.now.as_millis() - 5);
    let renewed = naive.live.iter().filter(|it| it.last_heartbeat > since);
    prop_assert_eq!(by_id(pool.renewed_since(since)), by_id(renewed));
    same_wait(naive, step)
}

fn same_wait(naive: &Naive, step: &Step) -> Result<(), TestCaseError> {
    let zero = RegistryTime::default();
    for limit in 0..=step.after.live() {
        let at = step.after.below_limit_at(Seats(limit));
        prop_assert_eq!(at.map(|at| at.since(zero)), naive.free_in(limit as usize, zero));
    }
    Ok(())
}

fn told(ended: &[Ending]) -> Vec<End> {
    ended.iter().map(|ending| (ending.session.id, ending.reason)).collect()
}

/// Sorts ends by id where the rule leaves the order open: sessions ended together without a choice by the
/// rule.
fn in_order(mut ended: Vec<End>) -> Vec<End> {
    let chosen = |&(_, reason): &End| {
        matches!(reason, EndReason::Evicted | EndReason::Superseded | EndReason::Upgraded)
    };
    let alike = |a: &End, b: &End| a.1 == b.1 && !chosen(a);
    for run in ended.chunk_by_mut(alike) {
        run.sort_by_key(|&(id, _)| id);
    }
    ended
}
