//! Join codes. A code names its group and its expiry before a MAC over group, expiry, tenant and scope, so no code is
//! stored. The scope is the user of the group's screen, or every user of the tenant.
//!
//! Times are of the registry that dates the group's memberships: the removal of a member is compared with the time of a
//! code, and the clocks of two nodes may differ.

use seatkeeper_core::{RegistryTime, SessionId, Span};
use seatkeeper_ledger::plans::GroupScope;
use uuid::Uuid;

use crate::auth::Caller;
use crate::release_codes::ReleaseCodes;

/// Lifetime of a join code.
pub(super) const JOIN_CODE_LIFETIME: Span = Span::from_secs(600);

/// Length of a join code in characters: group, expiry and MAC in hexadecimal digits.
pub(super) const JOIN_CODE_CHARS: usize = 80;

/// The content of a join code whose signature is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JoinCode {
    pub(super) group: SessionId,
    expires: RegistryTime,
}

impl JoinCode {
    /// Returns the time at which the code was made.
    pub(super) fn made(self) -> RegistryTime {
        self.expires - JOIN_CODE_LIFETIME
    }

    pub(super) fn has_expired(self, now: RegistryTime) -> bool {
        self.expires <= now
    }
}

/// Separates the MAC of a code for devices of one user from the MACs of other codes.
const FOR_SAME_USER: &[u8] = b"join-group";

/// Separates the MAC of a code for devices of every user from the MACs of other codes.
const FOR_ANY_USER: &[u8] = b"join-group-of-any-user";

/// Returns a code with which devices within the scope join the group of the caller from `now` on.
pub(super) fn sign(
    codes: &ReleaseCodes,
    group: SessionId,
    who: &Caller,
    scope: GroupScope,
    now: RegistryTime,
) -> String {
    let expires = (now + JOIN_CODE_LIFETIME).as_millis();
    let mac = codes.sign_parts(&parts(&group, &expires.to_be_bytes(), who, scope));
    format!("{:032x}{expires:016x}{:032x}", group.as_uuid().as_u128(), u128::from_be_bytes(mac))
}

/// Returns the content of a code, expired or not, if the caller is within the scope of the code.
pub(super) fn check(codes: &ReleaseCodes, code: &str, who: &Caller) -> Option<JoinCode> {
    if code.len() != JOIN_CODE_CHARS || !code.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let group = SessionId::try_from(Uuid::from_u128(u128::from_str_radix(&code[..32], 16).ok()?)).ok()?;
    let expires = u64::from_str_radix(&code[32..48], 16).ok()?;
    let shown = u128::from_str_radix(&code[48..], 16).ok()?.to_be_bytes();
    let is_signed = |scope| codes.check_parts(&parts(&group, &expires.to_be_bytes(), who, scope), &shown);
    let expires_at = RegistryTime::from_millis(expires);
    GroupScope::ALL.into_iter().any(is_signed).then_some(JoinCode { group, expires: expires_at })
}

/// Returns the parts of a code's MAC.
fn parts<'a>(
    group: &'a SessionId,
    expires: &'a [u8; 8],
    who: &'a Caller,
    scope: GroupScope,
) -> [&'a [u8]; 5] {
    let (purpose, user) = match scope {
        GroupScope::SameUser => (FOR_SAME_USER, who.user.as_str()),
        GroupScope::AnyUser => (FOR_ANY_USER, ""),
    };
    [purpose, group.as_bytes(), expires, who.tenant.as_str().as_bytes(), user.as_bytes()]
}

#[cfg(test)]
mod tests;
