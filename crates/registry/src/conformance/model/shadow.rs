//! The shadow of a pool: its state by the rule.

use seatkeeper_core::rule::{self, Decision, Renewal};
use seatkeeper_core::{
    Authority, Change, Claim, Denial, DenialFold, EndReason, Ending, Event, Folded, Holder, Origin, Outcome,
    Particulars, Policy, Pool, PoolId, PoolKind, Reach, Region, RegistryTime, Seats, Session, SessionId,
    Span, Standing, Terms, Tier, Users, WhenFull, WhenHeld, WhenNamed,
};

use super::dice::Dice;
use crate::conformance::books::Account;
use crate::{Answer, Granted, Live};

pub(super) const TENANT: &str = "acme";

/// Number of remembered sessions per pool, live or ended, for later operations.
const SEEN_MAX: usize = 24;

const POOLS_PER_KIND: u64 = 3;

/// Few buckets, so that pools share buckets.
const BUCKETS_USED: u16 = 3;

/// An expected record of a step.
pub(super) type Entry = (Origin, Change);

/// The rule's pool, the account of the backend's events, and the current terms.
pub(super) struct Shadow {
    pub(super) id: PoolId,
    pub(super) pool: Pool,
    pub(super) account: Account,
    pub(super) policy: Policy,
    pub(super) today: Terms,
    pub(super) ttl: Span,
    pub(super) denials: Option<DenialFold>,
    seen: Vec<SessionId>,
}

impl Shadow {
    /// Creates pools of every policy.
    pub(super) fn some(dice: &mut Dice, ttl: Span) -> Vec<Self> {
        let kinds = [
            (PoolKind::License, WhenFull::Deny, WhenHeld::Resume),
            (PoolKind::Subscriber, WhenFull::Evict, WhenHeld::Supersede),
            (PoolKind::Subscriber, WhenFull::Deny, WhenHeld::Supersede),
            (PoolKind::Capacity, WhenFull::Deny, WhenHeld::Upgrade),
            (PoolKind::Group, WhenFull::Deny, WhenHeld::Resume),
        ];
        let mut shadows: Vec<Self> = Vec::new();
        for (kind, when_full, when_held) in kinds {
            for _ in 0..POOLS_PER_KIND {
                let when_named = match kind {
                    PoolKind::Subscriber | PoolKind::Group => WhenNamed::SameDevice,
                    PoolKind::License | PoolKind::Capacity => WhenNamed::SameHolder,
                };
                let policy = Policy { terms: None, ttl_default: ttl, when_named, when_full, when_held };
                let id = pool_in_a_used_bucket(kind, shadows.len());
                let limit = if kind == PoolKind::Capacity { 1 } else { 1 + dice.below(4) as u32 };
                shadows.push(Self::new(id, policy, limit));
            }
        }
        shadows
    }

    fn new(id: PoolId, policy: Policy, limit: u32) -> Self {
        let ttl = policy.ttl_default;
        let today = Terms { version: 3, limit: Seats(limit), ttl, ends_at: None, standing: Standing::Open };
        let nowhere = SessionId::mint(RegistryTime::default(), id.bucket(), Region::default(), 0);
        Self {
            id,
            pool: Pool::new(Some(today)),
            account: Account::default(),
            policy,
            today,
            ttl,
            denials: None,
            seen: vec![nowhere],
        }
    }

    /// Returns a session of the pool, live or ended.
    pub(super) fn some_session(&self, dice: &mut Dice) -> SessionId {
        *dice.pick(&self.seen)
    }

    pub(super) fn remember(&mut self, id: SessionId) {
        if self.seen.len() >= SEEN_MAX {
            self.seen.remove(0);
        }
        self.seen.push(id);
    }

    /// Returns a session as read from the ledger after a restart.
    pub(super) fn known_to_the_ledger(&self, holder: &str, now: RegistryTime, number: u64) -> Session {
        // A session without heartbeats and with this age would be over.
        let age = if self.id.kind.has_heartbeats() { Span::from_secs(3_600) } else { Span::ZERO };
        let started = now - age;
        Session {
            id: SessionId::mint(started, self.id.bucket(), Region::default(), number),
            holder: holder.into(),
            users: Users::one("olga".into()),
            started,
            last_heartbeat: started,
            ttl: self.ttl,
            tier: Tier(1),
        }
    }

    /// Ends the sessions that the backend ended early as expired, except `but`, the subject of the step.
    pub(super) fn expire_early(
        &mut self,
        events: &[Event],
        but: Option<SessionId>,
        now: RegistryTime,
    ) -> Vec<Entry> {
        let mut ended = Vec::new();
        for event in events {
            let Change::Ended { session: id, reason: EndReason::Expired, .. } = event.change else {
                continue;
            };
            let over = self.pool.get(id).is_some_and(|session| self.pool.expiry_of(session) <= now);
            if over && but != Some(id) {
                ended.extend(rule::end(&mut self.pool, id, EndReason::Expired, now));
            }
        }
        entries(&ended, &Origin::SYSTEM)
    }

    /// Returns the expected answer to a claim, and the expected records.
    pub(super) fn claim(
        &mut self,
        claim: &Claim,
        policy: &Policy,
        origin: &Origin,
        fresh: SessionId,
        now: RegistryTime,
    ) -> (Answer, Vec<Entry>) {
        let decision = rule::admit(&mut self.pool, claim, policy, fresh, now);
        let mut recorded = entries(&decision.ended, origin);
        let answer = self.answer(&decision, now);
        if let Answer::Granted { how: Granted::Admitted, session, .. } = &answer {
            let change = Change::Admitted {
                session: Box::new(session.session.clone()),
                expires: session.expires,
                particulars: Box::new(Particulars::default()),
            };
            recorded.push((origin.clone(), change));
            self.remember(fresh);
        }
        (answer, recorded)
    }

    fn answer(&self, decision: &Decision, now: RegistryTime) -> Answer {
        let (how, id) = match decision.outcome {
            Outcome::Admitted(id) => (Granted::Admitted, id),
            Outcome::Refreshed(id) => (Granted::Refreshed, id),
            Outcome::Resumed(id) => (Granted::Resumed, id),
            Outcome::Existing(id) => (Granted::Existing, id),
            Outcome::Denied(denial) => return Answer::Denied(denial),
            Outcome::MakingRoom => unreachable!("pools of the model are small"),
        };
        let made_room = decision.ended.iter().filter(|ending| ending.reason != EndReason::Expired);
        Answer::Granted {
            how,
            session: Box::new(self.live(id, now).expect("a granted session is live")),
            ended: made_room.map(|ending| (ending.session.id, ending.reason)).collect(),
        }
    }

    /// Returns the expected records of a denial.
    pub(super) fn deny(
        &mut self,
        holder: &Holder,
        why: Denial,
        origin: &Origin,
        now: RegistryTime,
    ) -> Vec<Entry> {
        let Some(fold) = &mut self.denials else {
            let (fold, first) = DenialFold::start(holder.clone(), why, now);
            self.denials = Some(fold);
            return vec![(origin.clone(), Change::Denied(first))];
        };
        let Folded { earlier, this } = fold.note(holder.clone(), why, now);
        let earlier = earlier.map(|counted| (Origin::SYSTEM, Change::Denied(counted)));
        let this = this.map(|denied| (origin.clone(), Change::Denied(denied)));
        earlier.into_iter().chain(this).collect()
    }

    pub(super) fn renew(&mut self, id: SessionId, now: RegistryTime) -> Renewal {
        rule::renew(&mut self.pool, self.id.kind, id, now)
    }

    pub(super) fn end(
        &mut self,
        id: SessionId,
        reason: EndReason,
        origin: &Origin,
        now: RegistryTime,
    ) -> Vec<Entry> {
        entries(rule::end(&mut self.pool, id, reason, now).as_slice(), origin)
    }

    pub(super) fn end_all(&mut self, reason: EndReason, origin: &Origin, now: RegistryTime) -> Vec<Entry> {
        entries(&rule::end_all(&mut self.pool, reason, now), origin)
    }

    pub(super) fn revise(&mut self, terms: Terms, origin: &Origin, now: RegistryTime) -> Vec<Entry> {
        entries(&rule::revise(&mut self.pool, terms, now), origin)
    }

    pub(super) fn forget_over(&mut self, now: RegistryTime) -> Vec<Entry> {
        entries(&rule::forget_over(&mut self.pool, now), &Origin::SYSTEM)
    }

    /// Returns the expected records of a sweep.
    pub(super) fn sweep(&mut self, now: RegistryTime) -> Vec<Entry> {
        let mut recorded = self.forget_over(now);
        let counted = self.denials.as_mut().and_then(|fold| fold.flush(now));
        recorded.extend(counted.map(|counted| (Origin::SYSTEM, Change::Denied(counted))));
        recorded
    }

    /// Returns the latest time by which the pool must be due.
    pub(super) fn due(&self) -> Option<RegistryTime> {
        let counted = self.denials.as_ref().and_then(DenialFold::due);
        self.pool.next_expiry().into_iter().chain(counted).min()
    }

    pub(super) fn limit(&self) -> Seats {
        self.pool.terms().map_or(Seats(1), |terms| terms.limit)
    }

    /// Removes a user from a shared session, if the end is a release by one of several users. Returns whether
    /// the user left.
    pub(super) fn leaves(
        &mut self,
        who: &Authority,
        id: SessionId,
        reason: EndReason,
        now: RegistryTime,
    ) -> bool {
        match (&who.reach, reason) {
            (Reach::Own(user), EndReason::Released) => {
                self.covers(who, id) && rule::leave(&mut self.pool, id, user, now)
            }
            _ => false,
        }
    }

    pub(super) fn covers(&self, who: &Authority, id: SessionId) -> bool {
        self.pool.get(id).is_some_and(|session| who.covers(&self.id, session))
    }

    pub(super) fn live(&self, id: SessionId, now: RegistryTime) -> Option<Live> {
        let session = self.pool.get(id)?;
        let expires = self.pool.expiry_of(session);
        let live =
            Live { session: session.clone(), pool: self.id.clone(), expires, expires_in: expires.since(now) };
        (expires > now).then_some(live)
    }
}

/// Returns the records of ends caused by `origin`; an expiry has no origin.
pub(super) fn entries(ended: &[Ending], origin: &Origin) -> Vec<Entry> {
    let entry = |ending: &Ending| {
        let by_time = ending.reason == EndReason::Expired;
        let change = Change::Ended {
            session: ending.session.id,
            holder: ending.session.holder.clone(),
            tier: ending.session.tier,
            reason: ending.reason,
            last_heartbeat: ending.session.last_heartbeat,
            expires: ending.expires,
        };
        (if by_time { Origin::SYSTEM } else { origin.clone() }, change)
    };
    ended.iter().map(entry).collect()
}

fn pool_in_a_used_bucket(kind: PoolKind, number: usize) -> PoolId {
    let mut names = (0_u32..).map(|n| format!("pool {number}.{n}"));
    names
        .find_map(|name| {
            let id = PoolId::new(kind, TENANT.into(), name.as_str());
            (id.bucket().number() < BUCKETS_USED).then_some(id)
        })
        .expect("names spread over all buckets")
}
