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
        let tenant = TenantId::new(self.tenant.to_string());
        PoolId::new(PoolKind::Capacity, tenant, joined(self.user, self.capacity))
    }

    /// The holder: the user whom the capacity is for.
    pub(super) fn holder(&self) -> Holder {
        Holder::new(self.user.to_string())
    }

    /// The capacity that a pool stands for; none if it is of another kind.
    pub(super) fn of(pool: &PoolId) -> Option<Self> {
        let (user, capacity) = parted(&pool.name)?;
        Some(Self { tenant: Uuid::try_parse(pool.tenant.as_str()).ok()?, user, capacity })
    }
}

/// The name of the pool that a text stands for, however the ids in it are spelt; none if it is no such text.
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

/// Refuses a caller that may not take this capacity. In its own tenant, the capacity's user may, and a service or an admin;
/// in others only a service.
pub(super) fn may_take(capacity: Capacity, caller: &Caller) -> Result<(), Error> {
    if caller.scopes.service {
        return Ok(());
    }
    if caller.tenant != capacity.pool().tenant {
        return Err(Error::NotService);
    }
    // However the subject spells its id.
    let is_owner = Uuid::try_parse(caller.user.as_str()).is_ok_and(|user| user == capacity.user);
    if is_owner || caller.scopes.admin { Ok(()) } else { Err(Error::NotCapacityOwner) }
}

/// The name that the caller goes by in a tenant: in others than its own one that no user there can have.
pub(super) fn name_in(tenant: &TenantId, caller: &Caller) -> UserId {
    if caller.tenant == *tenant {
        caller.user.clone()
    } else {
        UserId::from_abroad(&caller.tenant, &caller.user)
    }
}

/// What the caller may see and end: in its tenant as everywhere, in others what it acquired as a service.
pub(super) fn authority(caller: &Caller) -> Authority {
    let abroad = caller.scopes.service.then(|| UserId::from_abroad(&caller.tenant, &caller.user));
    Authority { abroad, ..caller.authority().through(PoolKind::Capacity) }
}
