//! A partial view decides like the whole pool if it contains the sessions required by its `LoadBound`.

use std::collections::BTreeMap;

use proptest::prelude::*;
use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{EndReason, Holder, LoadBound, Others, Pool, RegistryTime, Session, SessionId, Span};

use crate::properties::config;
use crate::runs::{Done, Step, by_id, runs};

proptest! {
    #![proptest_config(config(512))]

    #[test]
    fn the_rule_decides_on_a_view_as_on_the_whole_pool(run in runs(), more in 0_u32..3) {
        run.play(|step| {
            let Step { before, now, .. } = step;
            let mut view;
            match &step.done {
                Done::Claim { claim, policy, fresh, decision } => {
                    let load_bound = LoadBound::to_admit(before.terms(), policy, before.live(), *now);
                    let asked = [claim.session, claim.replace.map(|named| named.session)];
                    view = view_of(step, load_bound, more, &asked, Some(&claim.holder));
                    let decided = rule::admit(&mut view, claim, policy, *fresh, *now);
                    prop_assert_eq!(decided.outcome, decision.outcome);
                    prop_assert_eq!(in_order(decided.ended), in_order(decision.ended.clone()));
                }
                Done::Heartbeat { id, kind, found } => {
                    view = view_of(step, LoadBound::ONE_SESSION, more, &[Some(*id)], None);
                    prop_assert_eq!(&rule::renew(&mut view, *kind, *id, *now), found);
                    if let Renewal::Renewed = found {
                        prop_assert_eq!(view.get(*id), step.after.get(*id));
                    }
                }
                Done::End { id, found } => {
                    view = view_of(step, LoadBound::ONE_SESSION, more, &[Some(*id)], None);
                    prop_assert_eq!(&rule::end(&mut view, *id, EndReason::Released, *now), found);
                }
                Done::Revise { terms, ended } => {
                    let load_bound = LoadBound::to_revise(before.terms(), Some(*terms), *now);
                    view = view_of(step, load_bound, more, &[], None);
                    prop_assert_eq!(in_order(rule::revise(&mut view, *terms, *now)), in_order(ended.clone()));
                }
                Done::Forget { ended } => {
                    view = view_of(step, LoadBound::to_forget(before.terms(), *now), more, &[], None);
                    prop_assert_eq!(in_order(rule::forget_over(&mut view, *now)), in_order(ended.clone()));
                }
                Done::Nothing => return Ok(()),
            }
            stands_for(&view, step)
        })?;
    }
}

/// Builds the view that a registry would load for `load_bound`, with `more` extra sessions of each TTL.
fn view_of(
    step: &Step,
    load_bound: LoadBound,
    more: u32,
    asked: &[Option<SessionId>],
    holder: Option<&Holder>,
) -> Pool {
    let pool = &step.before;
    let LoadBound::Stalest(count) = load_bound else { return pool.clone() };
    let mut by_ttl: BTreeMap<Span, Vec<&Session>> = BTreeMap::new();
    for session in pool.stalest_first() {
        by_ttl.entry(session.ttl).or_default().push(session);
    }
    let mut seen = Vec::new();
    let mut others = Others { count: 0, silent_from: RegistryTime::MAX };
    for sessions in by_ttl.into_values() {
        let (over, living): (Vec<&Session>, Vec<&Session>) =
            sessions.into_iter().partition(|session| session.silent_until() <= step.now);
        seen.extend(over);
        let (stalest, rest) = living.split_at(living.len().min((count + more) as usize));
        seen.extend(stalest);
        for session in rest {
            if asked.contains(&Some(session.id)) || holder == Some(&session.holder) {
                seen.push(session);
            } else {
                others.count += 1;
                others.silent_from = others.silent_from.min(session.silent_until());
            }
        }
    }
    Pool::in_view(pool.terms(), seen.into_iter().cloned(), others)
}

/// Asserts that the view after the step agrees with the pool, and counts the sessions outside the view.
fn stands_for(view: &Pool, step: &Step) -> Result<(), TestCaseError> {
    let after = &step.after;
    prop_assert_eq!((view.terms(), view.live()), (after.terms(), after.live()));
    for session in view.iter() {
        prop_assert_eq!(Some(session), after.get(session.id));
    }
    let in_view = after.iter().filter(|session| view.get(session.id).is_some());
    prop_assert_eq!(by_id(view.iter()), by_id(in_view));
    prop_assert!(view.next_expiry() <= after.next_expiry());
    prop_assert_eq!(view.next_expiry().is_some(), after.next_expiry().is_some());
    Ok(())
}

/// Puts the ends chosen by the rule first, in their order, then the ends by expiry or entitlement, by id.
fn in_order(mut ended: Vec<rule::Ending>) -> Vec<rule::Ending> {
    ended.sort_by_key(|ending| match ending.reason {
        EndReason::Expired | EndReason::EntitlementEnded | EndReason::Moved => Some(ending.session.id),
        EndReason::Released | EndReason::Evicted | EndReason::Superseded => None,
        EndReason::Upgraded | EndReason::Revoked | EndReason::GroupContent => None,
    });
    ended
}
