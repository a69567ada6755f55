//! A pool as a clause speaks to it.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use seatkeeper_core::{
    Actor, Authority, Bucket, Claim, Device, EndReason, Holder, Origin, Particulars, Policy, PoolId,
    PoolKind, Reach, RequestId, Seats, Session, SessionId, Span, Terms, Tier, UserId,
};

use super::asked::Asked;
use super::plan::Plan;
use crate::{Claimed, Ended, EndedAll, Error, Heartbeat, Live, PoolView, Registry, Request};

const TENANT: &str = "acme";

/// A pool, and the policy that claims on it come with.
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

    /// Opens it with what the ledger has of it.
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

    /// The same pool, with claims that bring these changes of the terms along, as a new version.
    pub(super) fn after(&self, change: impl FnOnce(&mut Terms)) -> Self {
        let mut terms = Terms { version: self.terms.version + 1, ..self.terms };
        change(&mut terms);
        Self { terms, policy: Policy { terms: Some(terms), ..self.policy }, ..self.clone() }
    }

    /// The same pool with another limit, from the next claim on.
    pub(super) fn at_limit(&self, limit: u32) -> Self {
        self.after(|terms| terms.limit = Seats(limit))
    }

    /// The same pool, with claims that could not learn its terms.
    pub(super) fn out_of_reach(&self) -> Self {
        Self { policy: Policy { terms: None, ..self.policy }, ..self.clone() }
    }

    /// A claim by this holder and a user of the same name, to be awaited.
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

    /// A heartbeat of the session by its own user, who must find it alive.
    pub(super) async fn heartbeat(&self, session: &Live) -> Live {
        match self.heartbeat_by(&owner(session), session.session.id).await {
            Heartbeat::Renewed(live) => *live,
            other @ (Heartbeat::Over { .. } | Heartbeat::Missing | Heartbeat::NeverWas) => {
                panic!("not renewed: {other:?}")
            }
        }
    }

    pub(super) async fn end_by(&self, who: &Authority, id: SessionId, reason: EndReason) -> Ended {
        let origin = request_of(&"ann".into(), "end");
        self.registry.end(id, who, reason, &origin).await.expect("a registry ends sessions")
    }

    /// The session's own user gives its seat back; returns the reason that it ended for.
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

    /// Who is in, in the order of their names.
    pub(super) async fn holders(&self) -> Vec<String> {
        let mut holders: Vec<_> =
            self.view().await.sessions.iter().map(|live| live.session.holder.to_string()).collect();
        holders.sort();
        holders
    }
}

/// A claim in the making.
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

    /// It names the session that it believes to hold.
    pub(super) fn naming(mut self, session: &Live) -> Self {
        self.claim.session = Some(session.session.id);
        self
    }

    /// It names the session that may end for it.
    pub(super) fn replacing(mut self, session: &Live) -> Self {
        self.claim.replace = Some(session.session.id);
        self
    }
}

impl<'p> IntoFuture for Claiming<'p> {
    type Output = Asked;
    type IntoFuture = Pin<Box<dyn Future<Output = Asked> + Send + 'p>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { Asked(self.pool.claim_raw(&self.claim).await) })
    }
}

/// A request of this user's.
pub(super) fn request_of(user: &UserId, request: &str) -> Origin {
    Origin { actor: Actor::User(user.clone()), request: Some(RequestId::from(request)) }
}

/// The user who acquired the session.
pub(super) fn owner(session: &Live) -> Authority {
    user(session.session.users.first().as_str())
}

/// A user of the tenant that owns every pool of the suite.
pub(super) fn user(name: &str) -> Authority {
    Authority::new(TENANT.into(), Reach::Own(name.into()))
}

/// An admin of that tenant.
pub(super) fn admin() -> Authority {
    Authority::new(TENANT.into(), Reach::Tenant)
}

/// A program of another tenant, and the name under which it acquires sessions in this one.
pub(super) fn service_abroad() -> (Authority, UserId) {
    let robot = UserId::from("robot");
    let name = UserId::from_abroad(&"globex".into(), &robot);
    let service =
        Authority { abroad: Some(name.clone()), ..Authority::new("globex".into(), Reach::Own(robot)) };
    (service, name)
}

/// Callers who must not see a session of a license that `ann` of the tenant holds.
pub(super) fn strangers() -> Vec<Authority> {
    let elsewhere = |reach| Authority::new("globex".into(), reach);
    let at_another_door = admin().through(PoolKind::Subscriber);
    let (service, _) = service_abroad();
    vec![user("eve"), elsewhere(Reach::Own("ann".into())), elsewhere(Reach::Tenant), at_another_door, service]
}

/// Returns particulars of a holder's client with every field, all derived from the holder.
pub(super) fn particulars_of(holder: &Holder) -> Particulars {
    Particulars {
        ip: Some([192, 0, 2, 7].into()),
        user_agent: Some(holder.as_str().into()),
        metadata: Some(format!(r#"{{"of":"{holder}"}}"#).into()),
        device: Some(Device { kind: "tv".into(), name: Some(format!("{holder}'s").into()) }),
    }
}
