//! A pool with the calls of clauses.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use seatkeeper_core::{
    Actor, Authority, Bucket, Claim, Device, EndReason, Holder, Origin, Particulars, Policy, PoolId,
    PoolKind, Reach, Replacement, RequestId, Seats, Session, SessionId, Span, Terms, Tier, UserId,
};

use super::asked::ClaimResult;
use super::plan::Plan;
use crate::{Claimed, Ended, EndedAll, Error, Heartbeat, Live, Liveness, PoolView, Registry, Request};

const TENANT: &str = "acme";

/// A pool, and the policy of claims on the pool.
#[derive(Clone)]
pub(super) struct TestPool {
    pub(super) registry: Arc<dyn Registry>,
    pub(super) id: PoolId,
    policy: Policy,
    terms: Terms,
}

impl TestPool {
    pub(super) fn new(registry: Arc<dyn Registry>, plan: Plan, ttl_brief: Span) -> Self {
        let ttl = if plan.brief { ttl_brief } else { plan.terms.ttl };
        let terms = Terms { ttl, ..plan.terms };
        let policy = Policy {
            terms: Some(terms),
            ttl_default: ttl,
            when_named: plan.when_named(),
            when_full: plan.when_full,
            when_held: plan.when_held,
        };
        Self { registry, id: PoolId::new(plan.kind, TENANT.into(), plan.name), policy, terms }
    }

    /// Opens the pool with the state in the ledger.
    pub(super) async fn open(&self, seq: u64, live: Vec<Session>) {
        let opened = self.registry.open(&self.id, seq, Some(self.terms), live).await;
        opened.expect("a pool can be opened");
    }

    pub(super) fn bucket(&self) -> Bucket {
        self.id.bucket()
    }

    pub(super) fn ttl(&self) -> Span {
        self.terms.ttl
    }

    pub(super) fn terms(&self) -> Terms {
        self.terms
    }

    /// Returns the pool with changed terms of a new version, carried by later claims.
    pub(super) fn after(&self, change: impl FnOnce(&mut Terms)) -> Self {
        let mut terms = Terms { version: self.terms.version + 1, ..self.terms };
        change(&mut terms);
        Self { terms, policy: Policy { terms: Some(terms), ..self.policy }, ..self.clone() }
    }

    /// Returns the pool with claims whose terms are changed without a new version.
    pub(super) fn of_same_version(&self, change: impl FnOnce(&mut Terms)) -> Self {
        let version = self.terms.version;
        self.after(|terms| {
            terms.version = version;
            change(terms);
        })
    }

    /// Returns the pool with a new limit from the next claim on.
    pub(super) fn at_limit(&self, limit: u32) -> Self {
        self.after(|terms| terms.limit = Seats(limit))
    }

    /// Returns the pool with claims that carry no terms, as if the entitlement were unreachable.
    pub(super) fn out_of_reach(&self) -> Self {
        Self { policy: Policy { terms: None, ..self.policy }, ..self.clone() }
    }

    /// Builds a claim by a holder and a user of equal name, to be awaited.
    pub(super) fn claim(&self, holder: &str) -> Claiming<'_> {
        let claim =
            Claim { holder: holder.into(), user: holder.into(), tier: Tier(1), session: None, replace: None };
        Claiming { pool: self, claim }
    }

    pub(super) async fn claim_raw(&self, claim: &Claim) -> Result<Claimed, Error> {
        let origin = request_of(&claim.user, "claim");
        let particulars = particulars_of(&claim.holder);
        let request = Request {
            pool: &self.id,
            claim,
            policy: &self.policy,
            origin: &origin,
            particulars: &particulars,
        };
        self.registry.claim(request).await
    }

    pub(super) async fn heartbeat_by(&self, who: &Authority, id: SessionId) -> Heartbeat {
        let origin = request_of(&"ann".into(), "heartbeat");
        self.registry.heartbeat(id, who, &origin).await.expect("a registry answers heartbeats")
    }

    /// Renews a session by its own user, and expects a live session.
    pub(super) async fn heartbeat(&self, session: &Live) -> Liveness {
        match self.heartbeat_by(&owner(session), session.session.id).await {
            Heartbeat::Renewed(liveness) => liveness,
            other @ (Heartbeat::Over { .. } | Heartbeat::Missing | Heartbeat::NeverWas) => {
                panic!("not renewed: {other:?}")
            }
        }
    }

    pub(super) async fn end_by(&self, who: &Authority, id: SessionId, reason: EndReason) -> Ended {
        let origin = request_of(&"ann".into(), "end");
        self.registry.end(id, who, reason, &origin).await.expect("a registry ends sessions")
    }

    /// Releases a session by its own user. Returns the reason on record.
    pub(super) async fn release(&self, session: &Live) -> EndReason {
        match self.end_by(&owner(session), session.session.id, EndReason::Released).await {
            Ended::Now { reason, .. } => reason,
            Ended::Left | Ended::Missing => panic!("{session:?} is not live"),
        }
    }

    pub(super) async fn end_all(&self, reason: EndReason) -> EndedAll {
        let origin = request_of(&"admin".into(), "end all");
        self.registry.end_all(&self.id, reason, &origin).await.expect("a registry ends sessions")
    }

    pub(super) async fn revise(&self, terms: Terms) -> EndedAll {
        let origin = request_of(&"admin".into(), "revise");
        self.registry.revise(&self.id, terms, &origin).await.expect("a registry learns terms")
    }

    pub(super) async fn session_by(&self, who: &Authority, id: SessionId) -> Option<Live> {
        self.registry.session(id, who).await.expect("a registry shows sessions")
    }

    pub(super) async fn view(&self) -> PoolView {
        self.registry.view(&self.id, usize::MAX).await.expect("a registry shows pools")
    }

    /// Returns the holders with a live session, sorted.
    pub(super) async fn holders(&self) -> Vec<String> {
        let mut holders: Vec<_> =
            self.view().await.sessions.iter().map(|live| live.session.holder.to_string()).collect();
        holders.sort();
        holders
    }
}

/// A claim under construction.
pub(super) struct Claiming<'p> {
    pool: &'p TestPool,
    claim: Claim,
}

impl Claiming<'_> {
    pub(super) fn by(mut self, user: &str) -> Self {
        self.claim.user = user.into();
        self
    }

    pub(super) fn of_tier(mut self, tier: u8) -> Self {
        self.claim.tier = Tier(tier);
        self
    }

    /// Names the session that the holder believes to hold.
    pub(super) fn naming(mut self, session: &Live) -> Self {
        self.claim.session = Some(session.session.id);
        self
    }

    /// Names the session to be replaced.
    pub(super) fn replacing(mut self, session: &Live) -> Self {
        self.claim.replace = Some(Replacement { session: session.session.id, is_handed_over: false });
        self
    }

    /// Names the claimant's own session of another holder, whose seat is handed over.
    pub(super) fn handing_over(mut self, session: &Live) -> Self {
        self.claim.replace = Some(Replacement { session: session.session.id, is_handed_over: true });
        self
    }
}

impl<'p> IntoFuture for Claiming<'p> {
    type Output = ClaimResult;
    type IntoFuture = Pin<Box<dyn Future<Output = ClaimResult> + Send + 'p>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { ClaimResult(self.pool.claim_raw(&self.claim).await) })
    }
}

/// Returns the origin of a user's request.
pub(super) fn request_of(user: &UserId, request: &str) -> Origin {
    Origin { actor: Actor::User(user.clone()), request: Some(RequestId::from(request)) }
}

/// Returns the authority of the user who acquired the session.
pub(super) fn owner(session: &Live) -> Authority {
    user(session.session.users.first().as_str())
}

/// Returns a user of the tenant that owns every pool of the suite.
pub(super) fn user(name: &str) -> Authority {
    Authority::new(TENANT.into(), Reach::Own(name.into()))
}

/// Returns an admin of the tenant.
pub(super) fn admin() -> Authority {
    Authority::new(TENANT.into(), Reach::Tenant)
}

/// Returns a program of a foreign tenant, and the program's name as a user of the suite's tenant.
pub(super) fn service_abroad() -> (Authority, UserId) {
    let robot = UserId::from("robot");
    let name = UserId::from_abroad(&"globex".into(), &robot);
    let service =
        Authority { abroad: Some(name.clone()), ..Authority::new("globex".into(), Reach::Own(robot)) };
    (service, name)
}

/// Returns callers who must not see a license session of the tenant's user `ann`.
pub(super) fn strangers() -> Vec<Authority> {
    let elsewhere = |reach| Authority::new("globex".into(), reach);
    let at_another_door = admin().through(PoolKind::Subscriber);
    let (service, _) = service_abroad();
    vec![user("eve"), elsewhere(Reach::Own("ann".into())), elsewhere(Reach::Tenant), at_another_door, service]
}

/// Returns particulars with every field, derived from the holder.
pub(super) fn particulars_of(holder: &Holder) -> Particulars {
    Particulars {
        ip: Some([192, 0, 2, 7].into()),
        user_agent: Some(holder.as_str().into()),
        metadata: Some(format!(r#"{{"of":"{holder}"}}"#).into()),
        device: Some(Device { kind: "tv".into(), name: Some(format!("{holder}'s").into()) }),
    }
}
