//! A registry in this process, and claims on its pools as a server would make them.

use std::sync::Arc;

use seatkeeper_core::{
    Actor, Authority, Claim, EndReason, Holder, Origin, Particulars, Policy, PoolId, PoolKind, Reach, Region,
    RegistryTime, RequestId, Seats, SessionId, Span, Standing, TenantId, Terms, Tier, UserId, WhenFull,
    WhenHeld, WhenNamed,
};
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{Answer, Ended, MonotonicClock, Registry, Request};

use crate::error::Error;

/// TTL of every session, longer than any benchmark.
const TTL: Span = Span::from_secs(24 * 3_600);

/// Capacity of the journal. It never fills, because each claim is acknowledged at once.
const JOURNAL_EVENTS_MAX: usize = 10_000;

/// A license in the registry.
pub(crate) struct License {
    pool: PoolId,
    terms: Terms,
}

/// A registry and the tenant of every claim.
pub(crate) struct Crowd {
    registry: Arc<dyn Registry>,
    tenant: TenantId,
}

impl Crowd {
    pub(crate) fn new() -> Self {
        let clock = MonotonicClock::starting_at(RegistryTime::from_millis(1_700_000_000_000));
        let registry = MemoryRegistry::new(1, Region::default(), JOURNAL_EVENTS_MAX, clock);
        Self { registry: Arc::new(registry), tenant: TenantId::new("default") }
    }

    pub(crate) async fn license(&self, seats: u32) -> Result<License, Error> {
        let name = uuid::Uuid::new_v4().to_string();
        let pool = PoolId::new(PoolKind::License, self.tenant.clone(), name);
        let terms =
            Terms { version: 1, limit: Seats(seats), ttl: TTL, ends_at: None, standing: Standing::Open };
        self.registry.open(&pool, 0, Some(terms), Vec::new()).await?;
        Ok(License { pool, terms })
    }

    /// Takes a seat that must be free. The claim's strings are allocated anew, as for a request.
    pub(crate) async fn acquire(&self, license: &License, number: u64) -> Result<SessionId, Error> {
        let user = UserId::new(format!("user-{number:010}"));
        let claim = Claim {
            holder: Holder::new(format!("machine-{number:010}")),
            user: user.clone(),
            tier: Tier::default(),
            session: None,
            replace: None,
        };
        let policy = Policy {
            terms: Some(license.terms),
            ttl_default: TTL,
            when_named: WhenNamed::SameHolder,
            when_full: WhenFull::Deny,
            when_held: WhenHeld::Resume,
        };
        let request = Some(RequestId::new(format!("{number:032x}")));
        let origin = Origin { actor: Actor::User(user), request };
        let particulars = Particulars::default();
        let request = Request {
            pool: &license.pool,
            claim: &claim,
            policy: &policy,
            origin: &origin,
            particulars: &particulars,
        };
        let claimed = self.registry.claim(request).await?;
        self.registry.journal_acknowledge(claimed.receipt).await?;
        match claimed.answer {
            Answer::Granted { session, .. } => Ok(session.session.id),
            Answer::Denied(why) => Err(Error::Worthless { why: format!("denied: {why:?}") }),
        }
    }

    pub(crate) async fn release(&self, session: SessionId) -> Result<(), Error> {
        let who = Authority::new(self.tenant.clone(), Reach::Tenant);
        match self.registry.end(session, &who, EndReason::Released, &Origin::SYSTEM).await? {
            Ended::Now { receipt, .. } => Ok(self.registry.journal_acknowledge(receipt).await?),
            Ended::Left | Ended::Missing => Err(Error::Worthless { why: "a session is missing".to_owned() }),
        }
    }
}
