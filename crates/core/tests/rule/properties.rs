//! Properties that hold after every step of every run.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::test_runner::Config;
use seatkeeper_core::rule::Renewal;
use seatkeeper_core::{Denial, EndReason, Outcome, Pool, Session, Span, Terms};

use crate::runs::{Done, Step, by_id, runs};

/// A configuration with `cases` cases. A failure prints its smallest form, which then becomes a test case of
/// its own.
pub(crate) fn config(cases: u32) -> Config {
    Config { cases, failure_persistence: None, max_shrink_iters: 4_096, ..Config::default() }
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn no_admission_leaves_a_pool_above_its_limit(run in runs()) {
        run.play(|step| {
            if let Some(Outcome::Admitted(_)) = outcome(step) {
                let limit = step.after.terms().map_or(1, |terms| terms.limit.0);
                prop_assert!(step.after.live() <= limit);
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_holder_is_never_told_that_the_pool_is_full(run in runs()) {
        run.play(|step| {
            if let Done::Claim { claim, decision, .. } = &step.done
                && matches!(decision.outcome, Outcome::Denied(Denial::Full { .. }))
            {
                let held = step.before.held_by(&claim.holder);
                prop_assert!(held.is_none_or(|held| step.before.expiry_of(held) <= step.now));
            }
            Ok(())
        })?;
    }

    #[test]
    fn whoever_is_evicted_unnamed_was_the_least_in_the_order(run in runs()) {
        run.play(|step| {
            let Done::Claim { claim, fresh, .. } = &step.done else { return Ok(()) };
            let named = claim.replace.map(|named| named.session);
            let unnamed = step.ended().into_iter().filter(|ending| {
                ending.reason == EndReason::Evicted && Some(ending.session.id) != named
            });
            let victims: Vec<_> = unnamed.map(|ending| rank(&ending.session)).collect();
            prop_assert!(victims.is_sorted());
            let spared = step.after.iter().filter(|session| session.id != *fresh).map(rank).min();
            prop_assert!(victims.last().is_none_or(|last| spared.is_none_or(|least| *last < least)));
            Ok(())
        })?;
    }

    #[test]
    fn a_session_ends_once_and_nothing_brings_it_back(run in runs()) {
        let mut gone = HashSet::new();
        run.play(|step| {
            for ending in step.ended() {
                prop_assert!(gone.insert(ending.session.id), "{} ended twice", ending.session.id);
            }
            prop_assert!(step.after.iter().all(|session| !gone.contains(&session.id)));
            Ok(())
        })?;
    }

    #[test]
    fn a_session_leaves_its_pool_by_an_end_and_no_other_way(run in runs()) {
        run.play(|step| {
            let ended: HashSet<_> = step.ended().iter().map(|ending| ending.session.id).collect();
            for session in step.before.iter() {
                prop_assert_eq!(ended.contains(&session.id), step.after.get(session.id).is_none());
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_session_that_is_over_survives_a_claim_or_gets_renewed(run in runs()) {
        run.play(|step| {
            let over = |session: &&Session| step.before.expiry_of(session) <= step.now;
            let over: Vec<_> = step.before.iter().filter(over).map(|session| session.id).collect();
            match &step.done {
                Done::Claim { .. } => prop_assert!(over.iter().all(|&id| step.after.get(id).is_none())),
                Done::Heartbeat { id, found: Renewal::Renewed, .. } => prop_assert!(!over.contains(id)),
                Done::Heartbeat { .. } | Done::End { .. } | Done::Revise { .. } | Done::Forget { .. }
                | Done::Nothing => {}
            }
            Ok(())
        })?;
    }

    #[test]
    fn no_session_expires_before_its_time(run in runs()) {
        run.play(|step| {
            for ending in step.ended() {
                let expired = ending.reason == EndReason::Expired;
                prop_assert!(!expired || ending.expires <= step.now);
                prop_assert!(expired || ending.expires > step.now);
            }
            Ok(())
        })?;
    }

    #[test]
    fn an_unknown_limit_never_evicts(run in runs()) {
        run.play(|step| {
            if let Done::Claim { policy, decision, .. } = &step.done && policy.terms.is_none() {
                prop_assert!(decision.ended.iter().all(|ending| ending.reason != EndReason::Evicted));
            }
            Ok(())
        })?;
    }

    #[test]
    fn older_terms_never_replace_newer_ones(run in runs()) {
        run.play(|step| {
            let version = |pool: &Pool| pool.terms().map(|terms| terms.version);
            prop_assert!(version(&step.before) <= version(&step.after));
            if version(&step.before) == version(&step.after) {
                let but_ttl = |pool: &Pool| pool.terms().map(|terms| Terms { ttl: Span::ZERO, ..terms });
                prop_assert_eq!(but_ttl(&step.before), but_ttl(&step.after));
            }
            Ok(())
        })?;
    }

    #[test]
    fn a_denied_claim_changes_nothing_but_what_was_due(run in runs()) {
        run.play(|step| {
            if let Some(Outcome::Denied(_)) = outcome(step) {
                let due = |reason| matches!(reason, EndReason::Expired | EndReason::EntitlementEnded);
                prop_assert!(step.ended().iter().all(|ending| due(ending.reason)));
                let kept = step.before.iter().filter(|session| step.after.get(session.id).is_some());
                prop_assert_eq!(by_id(kept), by_id(step.after.iter()));
            }
            Ok(())
        })?;
    }
}

fn outcome(step: &Step) -> Option<Outcome> {
    let Done::Claim { decision, .. } = &step.done else { return None };
    Some(decision.outcome)
}

fn rank(session: &Session) -> impl Ord + Copy + std::fmt::Debug + use<> {
    (session.last_heartbeat, session.started, session.id)
}
