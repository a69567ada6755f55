//! Builders that let a case read as sentences and name only what matters.

use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{
    Bucket, Claim, Decision, Denial, EndReason, Ending, Outcome, Policy, Pool, Region, RegistryTime, Seats,
    SessionId, Span, Standing, Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};

/// The TTL of every scene unless it says otherwise.
pub(crate) const TTL: Span = Span::from_secs(60);

/// The TTL of a pool about which nothing was ever known.
pub(crate) const TTL_DEFAULT: Span = Span::from_secs(7);

/// A pool, the policy that its claims come with, and a clock.
pub(crate) struct Scene {
    pub(crate) pool: Pool,
    pub(crate) policy: Policy,
    pub(crate) now: RegistryTime,
    minted: u64,
}

/// Machines that share a license: the newcomer is denied, the holder resumes.
pub(crate) fn license(limit: u32) -> Scene {
    Scene::new(limit, WhenFull::Deny, WhenHeld::Resume)
}

/// A subscriber's devices: the stalest is evicted, the holder supersedes itself.
pub(crate) fn devices(limit: u32) -> Scene {
    Scene::new(limit, WhenFull::Evict, WhenHeld::Supersede)
}

/// A subscriber's devices on a plan that denies.
pub(crate) fn devices_that_deny(limit: u32) -> Scene {
    Scene::new(limit, WhenFull::Deny, WhenHeld::Supersede)
}

/// One (user, capacity): a higher tier replaces a lower one.
pub(crate) fn capacity() -> Scene {
    Scene::new(1, WhenFull::Deny, WhenHeld::Upgrade)
}

/// Every policy there is, with `limit` seats each.
pub(crate) fn every_kind(limit: u32) -> [Scene; 4] {
    let tiered = Scene::new(limit, WhenFull::Deny, WhenHeld::Upgrade);
    [license(limit), devices(limit), devices_that_deny(limit), tiered]
}

/// The kinds that deny a newcomer when they are full.
pub(crate) fn every_denying_kind(limit: u32) -> [Scene; 3] {
    let [license, _, devices, capacity] = every_kind(limit);
    [license, devices, capacity]
}

impl Scene {
    fn new(limit: u32, when_full: WhenFull, when_held: WhenHeld) -> Self {
        let terms =
            Terms { version: 1, limit: Seats(limit), ttl: TTL, ends_at: None, standing: Standing::Open };
        Self {
            pool: Pool::new(Some(terms)),
            policy: Policy {
                terms: Some(terms),
                ttl_default: TTL_DEFAULT,
                when_named: match when_held {
                    WhenHeld::Supersede => WhenNamed::SameDevice,
                    WhenHeld::Resume | WhenHeld::Upgrade => WhenNamed::SameHolder,
                },
                when_full,
                when_held,
            },
            now: RegistryTime::from_millis(1_000_000),
            minted: 0,
        }
    }

    /// The same with a pool about which nothing was ever known, as far as the claims go.
    pub(crate) fn of_which_nothing_is_known(mut self) -> Self {
        self.pool = Pool::new(None);
        self.policy.terms = None;
        self
    }

    /// From now on claims come without terms: the entitlement cannot be learnt.
    pub(crate) fn entitlement_is_out_of_reach(&mut self) {
        self.policy.terms = None;
    }

    /// The next claim brings these changes of the entitlement along, as a new version.
    pub(crate) fn next_claim_brings(&mut self, change: impl FnOnce(&mut Terms)) {
        self.policy.terms = Some(self.changed(change));
    }

    /// The pool learns these changes of the entitlement at once.
    pub(crate) fn revise(&mut self, change: impl FnOnce(&mut Terms)) -> Vec<(String, EndReason)> {
        let terms = self.changed(change);
        self.policy.terms = Some(terms);
        told(&rule::revise(&mut self.pool, terms, self.now))
    }

    /// The newest terms that anybody has seen, changed and one version on.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut Terms)) -> Terms {
        let known = self.policy.terms.or(self.pool.terms());
        let mut terms = known.expect("a scene that knows its terms");
        terms.version += 1;
        change(&mut terms);
        terms
    }

    /// Lets the limit be `limit` from the next claim on.
    pub(crate) fn lower_the_limit_to(&mut self, limit: u32) {
        self.next_claim_brings(|terms| terms.limit = Seats(limit));
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now + span;
    }

    /// A claim that says nothing but who asks.
    #[track_caller]
    pub(crate) fn claim(&mut self, holder: &str) -> Asked {
        self.ask(by(holder))
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, By(claim): By) -> Asked {
        let fresh = self.fresh_id();
        let decision = rule::admit(&mut self.pool, &claim, &self.policy, fresh, self.now);
        Asked { decision, ends: Vec::new(), fresh }
    }

    pub(crate) fn heartbeat(&mut self, id: SessionId) -> Renewal {
        rule::renew(&mut self.pool, id, self.now)
    }

    /// Who is in, over or not, in the order of their names.
    pub(crate) fn holders(&self) -> Vec<&str> {
        let mut holders: Vec<_> = self.pool.iter().map(|session| session.holder.as_str()).collect();
        holders.sort_unstable();
        holders
    }

    /// Each id is less than the one before, so that an order by id cannot pass for one by start.
    pub(crate) fn fresh_id(&mut self) -> SessionId {
        self.minted += 1;
        a_session_id(1_000_000 - self.minted)
    }
}

/// The session id with this number; ids are ordered as their numbers are.
pub(crate) fn a_session_id(number: u64) -> SessionId {
    let bucket = Bucket::new(0).expect("the first bucket");
    SessionId::mint(RegistryTime::default(), bucket, Region::default(), number)
}

/// A claim in the making.
pub(crate) struct By(Claim);

/// A claim by this holder, and by a user of the same name.
pub(crate) fn by(holder: &str) -> By {
    By(Claim { holder: holder.into(), user: holder.into(), tier: Tier(1), session: None, replace: None })
}

impl By {
    pub(crate) fn user(mut self, user: &str) -> Self {
        self.0.user = user.into();
        self
    }

    pub(crate) fn tier(mut self, tier: u8) -> Self {
        self.0.tier = Tier(tier);
        self
    }

    /// It names a session that it believes to hold.
    pub(crate) fn naming(mut self, id: SessionId) -> Self {
        self.0.session = Some(id);
        self
    }

    /// It names a session that may end for it.
    pub(crate) fn replacing(mut self, id: SessionId) -> Self {
        self.0.replace = Some(id);
        self
    }
}

/// A decision, and the ends that the case expects with it: none unless it says so.
pub(crate) struct Asked {
    pub(crate) decision: Decision,
    ends: Vec<(String, EndReason)>,
    fresh: SessionId,
}

impl Asked {
    /// These end, in this order, before the answer.
    pub(crate) fn ending<const N: usize>(mut self, ends: [(&str, EndReason); N]) -> Self {
        self.ends = ends.map(|(holder, reason)| (holder.to_owned(), reason)).to_vec();
        self
    }

    #[track_caller]
    pub(crate) fn admitted(self) -> SessionId {
        let fresh = self.fresh;
        self.is(Outcome::Admitted(fresh));
        fresh
    }

    #[track_caller]
    pub(crate) fn is(self, outcome: Outcome) {
        assert_eq!((self.decision.outcome, told(&self.decision.ended)), (outcome, self.ends));
    }

    /// Denied for want of a seat; returns in how long one can come free.
    #[track_caller]
    pub(crate) fn full(self) -> Option<Span> {
        let Outcome::Denied(Denial::Full { free_in }) = self.decision.outcome else {
            panic!("expected a full pool, got {:?}", self.decision);
        };
        assert_eq!(told(&self.decision.ended), self.ends);
        free_in
    }
}

/// Who ended, and why.
pub(crate) fn told(ended: &[Ending]) -> Vec<(String, EndReason)> {
    ended.iter().map(|ending| (ending.session.holder.as_str().to_owned(), ending.reason)).collect()
}
