//! Names of a capacity's pool and holder, and the access of callers.

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
    /// Returns the pool. The pool belongs to the capacity's tenant, even if the caller belongs to a different
    /// tenant.
    pub(super) fn pool(&self) -> PoolId {
        let tenant = TenantId::new(self.tenant.to_string());
        PoolId::new(PoolKind::Capacity, tenant, joined(self.user, self.capacity))
    }

    /// Returns the holder, the user of the capacity.
    pub(super) fn holder(&self) -> Holder {
        Holder::new(self.user.to_string())
    }

    /// Returns the capacity behind a pool, or `None` for a pool of a different kind.
    pub(super) fn from_pool(pool: &PoolId) -> Option<Self> {
        let (user, capacity) = parted(&pool.name)?;
        Some(Self { tenant: Uuid::try_parse(pool.tenant.as_str()).ok()?, user, capacity })
    }
}

/// Normalizes the name of a pool, because UUIDs have several spellings. Returns `None` for a text without a
/// user and a capacity.
pub(crate) fn pool_name(text: &str) -> Option<String> {
    parted(text).map(|(user, capacity)| joined(user, capacity))
}

fn joined(user: Uuid, capacity: Uuid) -> String {
    format!("{user}/{capacity}")
}

fn parted(name: &str) -> Option<(Uuid, Uuid)> {
    let (user, capacity) = name.split_once('/')?;
    Some((Uuid::try_parse(user).ok()?, Uuid::try_parse(capacity).ok()?))
}

/// Checks that the caller may take the capacity. A service may take capacities in every tenant. An admin, or
/// the capacity's user, may do so in the own tenant only.
pub(super) fn may_take(capacity: Capacity, caller: &Caller) -> Result<(), Error> {
    if caller.scopes.service {
        return Ok(());
    }
    if caller.tenant != capacity.pool().tenant {
        return Err(Error::NotService);
    }
    // The ids are compared as UUIDs, because the token may use a different spelling.
    let is_owner = Uuid::try_parse(caller.user.as_str()).is_ok_and(|user| user == capacity.user);
    if is_owner || caller.scopes.admin { Ok(()) } else { Err(Error::NotCapacityOwner) }
}

/// Returns the caller's name within `tenant`. In a foreign tenant the name includes the caller's tenant, so
/// that no local user can have an equal name.
pub(super) fn name_in(tenant: &TenantId, caller: &Caller) -> UserId {
    if caller.tenant == *tenant {
        caller.user.clone()
    } else {
        UserId::from_abroad(&caller.tenant, &caller.user)
    }
}

/// Returns the caller's authority over capacities: the usual authority in the own tenant, and in foreign
/// tenants over the sessions that the caller acquired as a service.
pub(super) fn authority(caller: &Caller) -> Authority {
    let abroad = caller.scopes.service.then(|| UserId::from_abroad(&caller.tenant, &caller.user));
    Authority { abroad, ..caller.authority().through(PoolKind::Capacity) }
}
