//! Who may touch a session.

use crate::{PoolId, PoolKind, Session, TenantId, UserId};

/// The caller of a session operation, as far as ownership goes: a tenant always, and in it one user or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The caller's tenant.
    pub tenant: TenantId,
    /// Whose sessions in it the caller may touch.
    pub reach: Reach,
    /// The only kind of pool that the caller came for; none: any.
    pub kind: Option<PoolKind>,
    /// The name under which the caller acquires sessions in other tenants, and may touch those again;
    /// none: it does not. See [`UserId::from_abroad`].
    pub abroad: Option<UserId>,
}

/// How far a caller reaches within its tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The sessions that this user acquired.
    Own(UserId),
    /// Every session of the tenant.
    Tenant,
}

impl Authority {
    /// A caller that comes for any kind of pool and stays in its tenant.
    pub const fn new(tenant: TenantId, reach: Reach) -> Self {
        Self { tenant, reach, kind: None, abroad: None }
    }

    /// The caller, come for one kind of pool alone.
    pub fn through(self, kind: PoolKind) -> Self {
        Self { kind: Some(kind), ..self }
    }

    /// Whether the caller may see and change `session` of `pool`. To others it looks missing.
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
