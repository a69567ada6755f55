//! Random runs of every step of a pool. Small numbers make ties common, and some runs have enough sessions
//! for a pool to need an index.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::Index;
use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{
    Claim, Decision, EndReason, Ending, Holder, Policy, Pool, PoolKind, RegistryTime, Replacement, Seats,
    Session, SessionId, Span, Standing, Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};

use crate::scene::{a_session_id, marked};

/// A single step of a run.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Claim(Ask),
    Heartbeat(Index, PoolKind),
    End(Index),
    Revise(Terms),
    Forget,
    Pass(Span),
}

/// A claim with its sessions still to be picked from the sessions seen by the run.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    holder: u8,
    user: u8,
    tier: u8,
    session: Option<Index>,
    replace: Option<(Index, bool)>,
    terms: Option<Terms>,
}

/// A policy and the steps under the policy.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) when_named: WhenNamed,
    pub(crate) when_full: WhenFull,
    pub(crate) when_held: WhenHeld,
    pub(crate) ops: Vec<Op>,
}

/// The result of a step.
#[derive(Debug)]
pub(crate) enum Done {
    Claim { claim: Claim, policy: Policy, fresh: SessionId, decision: Decision },
    Heartbeat { id: SessionId, kind: PoolKind, found: Renewal },
    End { id: SessionId, found: Option<Ending> },
    Revise { terms: Terms, ended: Vec<Ending> },
    Forget { ended: Vec<Ending> },
    Nothing,
}

/// A step: the pool before and after, the time, and the result.
pub(crate) struct Step {
    pub(crate) before: Pool,
    pub(crate) after: Pool,
    pub(crate) now: RegistryTime,
    pub(crate) done: Done,
}

impl Step {
    /// Returns the sessions ended by the step.
    pub(crate) fn ended(&self) -> Vec<&Ending> {
        match &self.done {
            Done::Claim { decision, .. } => decision.ended.iter().collect(),
            Done::Heartbeat { found: Renewal::Over(ending), .. } => vec![&**ending],
            Done::Heartbeat { found: Renewal::Renewed | Renewal::Missing, .. } | Done::Nothing => vec![],
            Done::End { found, .. } => found.iter().collect(),
            Done::Revise { ended, .. } | Done::Forget { ended } => ended.iter().collect(),
        }
    }
}

impl Run {
    /// Plays the run on a new pool and shows every step to `look`.
    pub(crate) fn play(
        &self,
        mut look: impl FnMut(&Step) -> Result<(), TestCaseError>,
    ) -> Result<(), TestCaseError> {
        let mut pool = Pool::new(None);
        let mut now = RegistryTime::from_millis(1_000);
        let mut seen = vec![an_id(0)];
        for op in &self.ops {
            if let Op::Pass(span) = op {
                now = now + *span;
            }
            let before = pool.clone();
            let done = self.step(op, &mut pool, &mut seen, now);
            look(&Step { before, after: pool.clone(), now, done })?;
        }
        Ok(())
    }

    fn step(&self, op: &Op, pool: &mut Pool, seen: &mut Vec<SessionId>, now: RegistryTime) -> Done {
        match op {
            Op::Claim(ask) => {
                let (claim, policy) = (ask.claim(seen), self.policy(ask.terms));
                let fresh = marked(an_id(seen.len()), &claim);
                seen.push(fresh);
                let decision = rule::admit(pool, &claim, &policy, fresh, now);
                Done::Claim { claim, policy, fresh, decision }
            }
            Op::Heartbeat(which, kind) => {
                let id = *which.get(seen);
                Done::Heartbeat { id, kind: *kind, found: rule::renew(pool, *kind, id, now) }
            }
            Op::End(which) => {
                let id = *which.get(seen);
                Done::End { id, found: rule::end(pool, id, EndReason::Released, now) }
            }
            Op::Revise(terms) => Done::Revise { terms: *terms, ended: rule::revise(pool, *terms, now) },
            Op::Forget => Done::Forget { ended: rule::forget_over(pool, now) },
            Op::Pass(_) => Done::Nothing,
        }
    }

    fn policy(&self, terms: Option<Terms>) -> Policy {
        let ttl_default = Span::from_millis(12);
        let Self { when_named, when_full, when_held, .. } = *self;
        Policy { terms, ttl_default, when_named, when_full, when_held }
    }
}

impl Ask {
    fn claim(&self, seen: &[SessionId]) -> Claim {
        Claim {
            holder: Holder::fingerprint(
                &format!("device{}", self.holder % 4),
                &format!("net{}", self.holder / 4),
            ),
            user: format!("user-{}", self.user).as_str().into(),
            tier: Tier(self.tier),
            session: self.session.map(|which| *which.get(seen)),
            replace: self
                .replace
                .map(|(which, is_handed_over)| Replacement { session: *which.get(seen), is_handed_over }),
        }
    }
}

/// Returns the sessions in the order of their ids.
pub(crate) fn by_id<'a>(sessions: impl Iterator<Item = &'a Session>) -> Vec<&'a Session> {
    let mut sessions: Vec<_> = sessions.collect();
    sessions.sort_by_key(|session| session.id);
    sessions
}

/// Generates distinct ids in an order unrelated to the order of creation.
fn an_id(count: usize) -> SessionId {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    a_session_id((count as u64).wrapping_mul(ODD) >> 3)
}

/// Generates runs under every mix of policies.
pub(crate) fn runs() -> impl Strategy<Value = Run> {
    let when_full = prop_oneof![Just(WhenFull::Deny), Just(WhenFull::Evict)];
    let when_held = prop_oneof![Just(WhenHeld::Resume), Just(WhenHeld::Supersede), Just(WhenHeld::Upgrade)];
    let when_named = prop_oneof![Just(WhenNamed::SameHolder), Just(WhenNamed::SameDevice)];
    (when_named, when_full, when_held, vec(op(), 1..120))
        .prop_map(|(when_named, when_full, when_held, ops)| Run { when_named, when_full, when_held, ops })
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => ask().prop_map(Op::Claim),
        4 => (any::<Index>(), kind()).prop_map(|(which, kind)| Op::Heartbeat(which, kind)),
        1 => any::<Index>().prop_map(Op::End),
        1 => terms().prop_map(Op::Revise),
        1 => Just(Op::Forget),
        4 => (0_u64..8).prop_map(|millis| Op::Pass(Span::from_millis(millis))),
    ]
}

fn kind() -> impl Strategy<Value = PoolKind> {
    prop_oneof![Just(PoolKind::License), Just(PoolKind::Subscriber)]
}

fn ask() -> impl Strategy<Value = Ask> {
    let session = option::weighted(0.2, any::<Index>());
    let replace = option::weighted(0.2, any::<(Index, bool)>());
    let terms = option::weighted(0.7, terms());
    (0_u8..6, 0_u8..3, 1_u8..4, session, replace, terms).prop_map(
        |(holder, user, tier, session, replace, terms)| Ask { holder, user, tier, session, replace, terms },
    )
}

fn terms() -> impl Strategy<Value = Terms> {
    let ends_at = option::weighted(0.2, 1_000_u64..1_200);
    let standing = prop_oneof![9 => Just(Standing::Open), 1 => Just(Standing::Closed)];
    let limit = prop_oneof![3 => 0_u32..5, 1 => 5_u32..20];
    (0_u64..12, limit, 8_u64..24, ends_at, standing).prop_map(|(version, limit, ttl, ends_at, standing)| {
        Terms {
            version,
            limit: Seats(limit),
            // Rounded, so that queues of a TTL hold more than one session.
            ttl: Span::from_millis(ttl / 8 * 8),
            ends_at: ends_at.map(RegistryTime::from_millis),
            standing,
        }
    })
}
