//! What a rate is counted by.

use std::net::IpAddr;

use seatkeeper_core::{PoolKind, SessionId, TenantId};

use crate::auth::Caller;
use crate::hash;

/// Enough that no two are alike.
const KEY_BYTES: usize = 16;

/// Whose rate it is: a hash, so that names of any length and kind take the same room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) [u8; KEY_BYTES]);

impl Key {
    /// What a caller asks for of an API, whatever the token and the address.
    pub(super) fn of_acquires(kind: PoolKind, who: &Caller) -> Self {
        Self::of(&[b"acquire", kind.as_str().as_bytes()], who)
    }

    /// Heartbeats of a session. They are counted for each caller: nobody uses up what is another's.
    pub(super) fn of_heartbeats(id: SessionId, who: &Caller) -> Self {
        Self::of(&[b"heartbeat", id.as_bytes()], who)
    }

    /// Heartbeats of sessions that never were, of an API.
    pub(super) fn of_unknown_sessions(kind: PoolKind, who: &Caller) -> Self {
        Self::of(&[b"unknown", kind.as_str().as_bytes()], who)
    }

    /// Requests for license tokens from an address. An IPv6 client has a network of 64 bits, and counts as one address.
    pub(super) fn of_license_tokens_at(ip: Option<IpAddr>) -> Self {
        let network = match ip {
            Some(IpAddr::V4(ip)) => ip.octets().to_vec(),
            Some(IpAddr::V6(ip)) => ip.octets()[..8].to_vec(),
            None => Vec::new(),
        };
        Self(hash::of(&[b"license token", b"address", &network]))
    }

    /// Requests for license tokens of a license key.
    pub(super) fn of_license_tokens_for(tenant: &TenantId, license_key: &str) -> Self {
        Self(hash::of(&[b"license token", b"key", tenant.as_str().as_bytes(), license_key.as_bytes()]))
    }

    fn of([what, whose]: &[&[u8]; 2], who: &Caller) -> Self {
        let class: &[u8] = if who.scopes.service { b"service" } else { b"user" };
        let (tenant, user) = (who.tenant.as_str().as_bytes(), who.user.as_str().as_bytes());
        Self(hash::of(&[what, whose, class, tenant, user]))
    }
}
