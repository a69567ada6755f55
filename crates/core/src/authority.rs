//! Who may touch a session.

use crate::{PoolId, Session, TenantId, UserId};

/// The caller of a session operation, as far as ownership goes: a tenant always, and in it one user or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authority {
    /// The caller's tenant.
    pub tenant: TenantId,
    /// Whose sessions in it the caller may touch.
    pub reach: Reach,
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
    /// Whether the caller may see and change `session` of `pool`. To others it looks missing.
    pub fn covers(&self, pool: &PoolId, session: &Session) -> bool {
        self.tenant == pool.tenant
            && match &self.reach {
                Reach::Own(user) => session.users.contains(user),
                Reach::Tenant => true,
            }
    }
}

#[cfg(test)]
mod tests;
