//! The names that a capacity goes by, and who may ask for it.

use seatkeeper_core::{Authority, Holder, PoolId, PoolKind, TenantId, UserId};
use uuid::Uuid;

use crate::auth::Caller;
use crate::error::Error;

/// One user's hold on one capacity of a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Capacity {
    pub(super) tenant: Uuid,
    pub(super) user: Uuid,
    pub(super) capacity: Uuid,
}

impl Capacity {
    /// The pool: its tenant is the capacity's, whoever asks.
    pub(super) fn pool(&self) -> PoolId {
        let name = format!("{}/{}", self.user, self.capacity);
        PoolId::new(PoolKind::Capacity, TenantId::new(self.tenant.to_string()), name)
    }

    /// The holder: the user whom the capacity is for.
    pub(super) fn holder(&self) -> Holder {
        Holder::new(self.user.to_string())
    }

    /// The capacity that a pool stands for; none if it is of another kind.
    pub(super) fn of(pool: &PoolId) -> Option<Self> {
        let (user, capacity) = pool.name.split_once('/')?;
        Some(Self {
            tenant: Uuid::try_parse(pool.tenant.as_str()).ok()?,
            user: Uuid::try_parse(user).ok()?,
            capacity: Uuid::try_parse(capacity).ok()?,
        })
    }
}

/// The name that the caller acquires sessions of this tenant under. Only a service may do so for
/// another tenant than its own, and has a name there that no user of that tenant can have.
pub(super) fn name_in(tenant: Uuid, caller: &Caller) -> Result<UserId, Error> {
    if caller.tenant.as_str() == tenant.to_string() {
        return Ok(caller.user.clone());
    }
    if !caller.scopes.service {
        return Err(Error::NotService);
    }
    Ok(UserId::from_abroad(&caller.tenant, &caller.user))
}

/// What the caller may see and end: in its tenant as everywhere, in others what it acquired as a service.
pub(super) fn authority(caller: &Caller) -> Authority {
    let abroad = caller.scopes.service.then(|| UserId::from_abroad(&caller.tenant, &caller.user));
    Authority { abroad, ..caller.authority().through(PoolKind::Capacity) }
}
