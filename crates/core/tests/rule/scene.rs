//! Builders that let a test case read as sentences and state only the facts under test.

use seatkeeper_core::rule::{self, Renewal};
use seatkeeper_core::{
    Bucket, Claim, Decision, Denial, EndReason, Ending, Outcome, Policy, Pool, PoolKind, Region,
    RegistryTime, Replacement, Seats, SessionId, Span, Standing, Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};

/// The TTL of a scene by default.
pub(crate) const TTL: Span = Span::from_secs(60);

/// The TTL of a pool without known terms.
pub(crate) const TTL_DEFAULT: Span = Span::from_secs(7);

/// A pool, the policy of its claims, and a clock.
pub(crate) struct Scene {
    pub(crate) pool: Pool,
    pub(crate) policy: Policy,
    pub(crate) now: RegistryTime,
    minted: u64,
}

/// Machines that share a license: a newcomer is denied, a holder resumes.
pub(crate) fn license(limit: u32) -> Scene {
    Scene::new(limit, WhenFull::Deny, WhenHeld::Resume)
}

/// Devices of a subscriber: the stalest session is evicted, a holder supersedes its own session.
pub(crate) fn devices(limit: u32) -> Scene {
    Scene::new(limit, WhenFull::Evict, WhenHeld::Supersede)
}

/// Devices of a subscriber on a plan that denies newcomers.
pub(crate) fn devices_that_deny(limit: u32) -> Scene {
    Scene::new(limit, WhenFull::Deny, WhenHeld::Supersede)
}

/// A (user, capacity) pool: a higher tier replaces a lower tier.
pub(crate) fn capacity() -> Scene {
    Scene::new(1, WhenFull::Deny, WhenHeld::Upgrade)
}

/// A scene for every policy, with `limit` seats.
pub(crate) fn every_kind(limit: u32) -> [Scene; 4] {
    let tiered = Scene::new(limit, WhenFull::Deny, WhenHeld::Upgrade);
    [license(limit), devices(limit), devices_that_deny(limit), tiered]
}

/// A scene for every policy that denies a newcomer to a full pool.
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

    /// Replaces the pool by a pool without terms, and lets claims come without terms.
    pub(crate) fn of_which_nothing_is_known(mut self) -> Self {
        self.pool = Pool::new(None);
        self.policy.terms = None;
        self
    }

    /// Lets claims come without terms from the next claim on: the entitlement is unavailable.
    pub(crate) fn entitlement_is_out_of_reach(&mut self) {
        self.policy.terms = None;
    }

    /// Lets the next claim carry a new version of the terms, changed by `change`.
    pub(crate) fn next_claim_brings(&mut self, change: impl FnOnce(&mut Terms)) {
        self.policy.terms = Some(self.changed(change));
    }

    /// Applies a new version of the terms to the pool at once.
    pub(crate) fn revise(&mut self, change: impl FnOnce(&mut Terms)) -> Vec<(String, EndReason)> {
        let terms = self.changed(change);
        self.policy.terms = Some(terms);
        told(&rule::revise(&mut self.pool, terms, self.now))
    }

    /// Returns the newest known terms, changed by `change` and raised by a version.
    pub(crate) fn changed(&self, change: impl FnOnce(&mut Terms)) -> Terms {
        let known = self.policy.terms.or(self.pool.terms());
        let mut terms = known.expect("a scene that knows its terms");
        terms.version += 1;
        change(&mut terms);
        terms
    }

    /// Sets the limit from the next claim on.
    pub(crate) fn lower_the_limit_to(&mut self, limit: u32) {
        self.next_claim_brings(|terms| terms.limit = Seats(limit));
    }

    pub(crate) fn pass(&mut self, span: Span) {
        self.now = self.now + span;
    }

    /// Makes a claim with a holder and no further details.
    #[track_caller]
    pub(crate) fn claim(&mut self, holder: &str) -> Decided {
        self.ask(by(holder))
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, By(claim): By) -> Decided {
        let fresh = marked(self.fresh_id(), &claim);
        let decision = self.ask_with_id(By(claim), fresh);
        Decided { decision, ends: Vec::new(), fresh }
    }

    /// Makes a claim whose new session gets the id `fresh`.
    pub(crate) fn ask_with_id(&mut self, By(claim): By, fresh: SessionId) -> Decision {
        rule::admit(&mut self.pool, &claim, &self.policy, fresh, self.now)
    }

    /// Sends a heartbeat of a license's holder.
    pub(crate) fn heartbeat(&mut self, id: SessionId) -> Renewal {
        self.heartbeat_of(PoolKind::License, id)
    }

    pub(crate) fn heartbeat_of(&mut self, kind: PoolKind, id: SessionId) -> Renewal {
        rule::renew(&mut self.pool, kind, id, self.now)
    }

    /// Returns the names of the holders in the pool, sorted, including holders past their expiry.
    pub(crate) fn holders(&self) -> Vec<&str> {
        let mut holders: Vec<_> = self.pool.iter().map(|session| session.holder.as_str()).collect();
        holders.sort_unstable();
        holders
    }

    /// Returns a new id, less than the previous id, so that an order by id cannot pass for an order by start.
    pub(crate) fn fresh_id(&mut self) -> SessionId {
        self.minted += 1;
        a_session_id(1_000_000 - self.minted)
    }
}

/// Returns the session id `number`. Ids are ordered by number.
pub(crate) fn a_session_id(number: u64) -> SessionId {
    let bucket = Bucket::new(0).expect("the first bucket");
    SessionId::mint(RegistryTime::default(), bucket, Region::default(), number)
}

/// Returns `fresh` with the mark of a session that `claim` admits to a seat.
pub(crate) fn marked(fresh: SessionId, claim: &Claim) -> SessionId {
    match claim.replace {
        Some(Replacement { is_handed_over: true, .. }) => fresh.with_handed_over_seat(),
        Some(Replacement { is_handed_over: false, .. }) | None => fresh,
    }
}

/// A claim under construction.
pub(crate) struct By(Claim);

/// Begins a claim by `holder`, and by a user of equal name.
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

    /// Names a session that the client believes to hold.
    pub(crate) fn naming(mut self, id: SessionId) -> Self {
        self.0.session = Some(id);
        self
    }

    /// Names a session to end if the pool is full.
    pub(crate) fn replacing(mut self, id: SessionId) -> Self {
        self.0.replace = Some(Replacement { session: id, is_handed_over: false });
        self
    }

    /// Names a session of the claimant whose seat is handed over.
    pub(crate) fn handing_over(mut self, id: SessionId) -> Self {
        self.0.replace = Some(Replacement { session: id, is_handed_over: true });
        self
    }
}

/// A decision, with the ends expected by the test case: none by default.
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    ends: Vec<(String, EndReason)>,
    fresh: SessionId,
}

impl Decided {
    /// Expects the ends, in order, before the answer.
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

    /// Asserts a denial for lack of a seat, and returns the time until a seat can come free.
    #[track_caller]
    pub(crate) fn full(self) -> Option<Span> {
        let Outcome::Denied(Denial::Full { free_in }) = self.decision.outcome else {
            panic!("expected a full pool, got {:?}", self.decision);
        };
        assert_eq!(told(&self.decision.ended), self.ends);
        free_in
    }
}

/// Returns the holder and reason of every end.
pub(crate) fn told(ended: &[Ending]) -> Vec<(String, EndReason)> {
    ended.iter().map(|ending| (ending.session.holder.as_str().to_owned(), ending.reason)).collect()
}
