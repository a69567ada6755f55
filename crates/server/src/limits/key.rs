//! The keys that rates are counted by.

use std::net::IpAddr;

use seatkeeper_core::{PoolKind, SessionId, TenantId};

use crate::auth::Caller;
use crate::hash;

/// Length of a key in bytes: enough to make collisions negligible.
const KEY_BYTES: usize = 16;

/// The key of a rate: a hash, so that names of any length and kind take the same space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(pub(super) [u8; KEY_BYTES]);

impl Key {
    /// Returns the key of a caller's acquires in an API, independent of token and address.
    pub(super) fn of_acquires(kind: PoolKind, who: &Caller) -> Self {
        Self::hashed(&[b"acquire", kind.as_str().as_bytes()], who)
    }

    /// Returns the key of a session's heartbeats by a caller. The caller is part of the key, so that a caller
    /// cannot use up the rate of another caller.
    pub(super) fn of_heartbeats(id: SessionId, who: &Caller) -> Self {
        Self::hashed(&[b"heartbeat", id.as_bytes()], who)
    }

    /// Returns the key of a caller's heartbeats in an API for sessions that never existed.
    pub(super) fn of_unknown_sessions(kind: PoolKind, who: &Caller) -> Self {
        Self::hashed(&[b"unknown", kind.as_str().as_bytes()], who)
    }

    /// Returns the key of requests for license tokens from an address. An IPv6 client has a
    /// network of 64 bits, and counts as one address.
    pub(super) fn of_license_tokens_at(ip: Option<IpAddr>) -> Self {
        Self(hash::digest(&[b"license token", b"address", &network(ip)]))
    }

    /// Returns the key of the joins of a group, by any user.
    pub(super) fn of_group_joins(group: SessionId) -> Self {
        Self(hash::digest(&[b"join", b"group", group.as_bytes()]))
    }

    /// Returns the key of the joins of a group by one guest.
    pub(super) fn of_guest_joins(group: SessionId, guest: &Caller) -> Self {
        Self::hashed(&[b"join", group.as_bytes()], guest)
    }

    /// Returns the key of a caller's open event streams.
    pub(super) fn of_event_streams(who: &Caller) -> Self {
        Self::hashed(&[b"event", b"streams"], who)
    }

    /// Returns the key of releases by code from an address.
    pub(super) fn of_releases_at(ip: Option<IpAddr>) -> Self {
        Self(hash::digest(&[b"release by code", b"address", &network(ip)]))
    }

    /// Returns the key of requests for license tokens of a license key.
    pub(super) fn of_license_tokens_for(tenant: &TenantId, license_key: &str) -> Self {
        Self(hash::digest(&[b"license token", b"key", tenant.as_str().as_bytes(), license_key.as_bytes()]))
    }

    fn hashed([what, whose]: &[&[u8]; 2], who: &Caller) -> Self {
        let class: &[u8] = if who.scopes.service { b"service" } else { b"user" };
        let (tenant, user) = (who.tenant.as_str().as_bytes(), who.user.as_str().as_bytes());
        Self(hash::digest(&[what, whose, class, tenant, user]))
    }
}

/// Returns the part of an address that counts as one client: an IPv6 client has a network of 64 bits.
fn network(ip: Option<IpAddr>) -> Vec<u8> {
    match ip {
        Some(IpAddr::V4(ip)) => ip.octets().to_vec(),
        Some(IpAddr::V6(ip)) => ip.octets()[..8].to_vec(),
        None => Vec::new(),
    }
}
