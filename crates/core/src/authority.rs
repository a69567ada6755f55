//! Ownership of sessions: decides which sessions a caller may see and change.

use crate::{PoolId, PoolKind, Session, TenantId, UserId};

/// The identity of a caller for ownership checks: a tenant, and in it a single user or every user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The caller's tenant.
    pub tenant: TenantId,
    /// The sessions of the tenant within the caller's reach.
    pub reach: Reach,
    /// Restricts the caller to a kind of pool. `None` allows every kind.
    pub kind: Option<PoolKind>,
    /// The caller's name in foreign tenants. The caller may touch sessions acquired under the name; `None`
    /// forbids access to foreign tenants. See [`UserId::from_abroad`].
    pub abroad: Option<UserId>,
}

/// The reach of a caller within its tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The sessions acquired by the user.
    Own(UserId),
    /// Every session of the tenant.
    Tenant,
}

impl Authority {
    /// Creates a caller for every kind of pool, confined to its tenant.
    pub const fn new(tenant: TenantId, reach: Reach) -> Self {
        Self { tenant, reach, kind: None, abroad: None }
    }

    /// Restricts the caller to `kind`.
    pub fn through(self, kind: PoolKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Returns `true` if the caller may see and change `session` of `pool`. A session outside the caller's
    /// authority must look missing.
    pub fn covers(&self, pool: &PoolId, session: &Session) -> bool {
        let kind_fits = self.kind.is_none_or(|kind| kind == pool.kind);
        kind_fits && if self.tenant == pool.tenant { self.reaches(session) } else { self.is_abroad(session) }
    }

    fn reaches(&self, session: &Session) -> bool {
        match &self.reach {
            Reach::Own(user) => session.users.contains(user),
            Reach::Tenant => true,
        }
    }

    fn is_abroad(&self, session: &Session) -> bool {
        self.abroad.as_ref().is_some_and(|user| session.users.contains(user))
    }
}

#[cfg(test)]
mod tests;
