//! Join codes. A code names its group and its expiry before a MAC over group, expiry, tenant and scope, so no code is
//! stored. The scope is the user of the group's screen, or every user of the tenant.

use seatkeeper_core::{RegistryTime, SessionId};
use seatkeeper_engine::wall_clock;
use seatkeeper_ledger::plans::GroupScope;
use uuid::Uuid;

use crate::auth::Caller;
use crate::release_codes::ReleaseCodes;

/// Lifetime of a join code, in seconds.
pub(super) const JOIN_CODE_SECONDS: u64 = 600;

/// Lifetime of a join code, in milliseconds.
const JOIN_CODE_MILLIS: u64 = JOIN_CODE_SECONDS * 1_000;

/// Length of a join code in characters: group, expiry and MAC in hexadecimal digits.
pub(super) const JOIN_CODE_CHARS: usize = 80;

/// A join code that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct JoinCode {
    pub(super) group: SessionId,
    /// Time at which the code was made.
    pub(super) made: RegistryTime,
}

/// Separates the MAC of a code for devices of one user from the MACs of other codes.
const FOR_SAME_USER: &[u8] = b"join-group";

/// Separates the MAC of a code for devices of every user from the MACs of other codes.
const FOR_ANY_USER: &[u8] = b"join-group-of-any-user";

/// Returns a code with which devices within the scope join the group of the caller.
pub(super) fn sign(codes: &ReleaseCodes, group: SessionId, who: &Caller, scope: GroupScope) -> String {
    sign_until(codes, group, who, scope, now_millis() + JOIN_CODE_MILLIS)
}

fn sign_until(
    codes: &ReleaseCodes,
    group: SessionId,
    who: &Caller,
    scope: GroupScope,
    expires: u64,
) -> String {
    let mac = codes.sign_parts(&parts(&group, &expires.to_be_bytes(), who, scope));
    format!("{:032x}{expires:016x}{:032x}", group.as_uuid().as_u128(), u128::from_be_bytes(mac))
}

/// Returns the content of a code, if the caller is within the scope of the code and the code has not expired.
pub(super) fn check(codes: &ReleaseCodes, code: &str, who: &Caller) -> Option<JoinCode> {
    if code.len() != JOIN_CODE_CHARS || !code.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let group = SessionId::try_from(Uuid::from_u128(u128::from_str_radix(&code[..32], 16).ok()?)).ok()?;
    let expires = u64::from_str_radix(&code[32..48], 16).ok()?;
    let shown = u128::from_str_radix(&code[48..], 16).ok()?.to_be_bytes();
    let is_signed = |scope| codes.check_parts(&parts(&group, &expires.to_be_bytes(), who, scope), &shown);
    let counts = GroupScope::ALL.into_iter().any(is_signed) && now_millis() < expires;
    let made = RegistryTime::from_millis(expires.saturating_sub(JOIN_CODE_MILLIS));
    counts.then_some(JoinCode { group, made })
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

fn now_millis() -> u64 {
    u64::try_from(wall_clock::now().timestamp_millis()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
