//! Join codes. A code names its group and its expiry before a MAC over group, expiry, tenant and user, so no code is
//! stored, and a code counts for devices of the same user alone.

use seatkeeper_core::SessionId;
use seatkeeper_engine::wall_clock;
use uuid::Uuid;

use crate::auth::Caller;
use crate::release_codes::ReleaseCodes;

/// Lifetime of a join code, in seconds.
pub(super) const JOIN_CODE_SECONDS: u64 = 600;

/// Length of a join code in characters: group, expiry and MAC in hexadecimal digits.
pub(super) const JOIN_CODE_CHARS: usize = 80;

/// Separates a join code's MAC from the MAC of a release code.
const PURPOSE: &[u8] = b"join-group";

/// Returns a code with which devices of the caller join the group.
pub(super) fn sign(codes: &ReleaseCodes, group: SessionId, who: &Caller) -> String {
    sign_until(codes, group, who, now_seconds() + JOIN_CODE_SECONDS)
}

fn sign_until(codes: &ReleaseCodes, group: SessionId, who: &Caller, expires: u64) -> String {
    let (tenant, user) = (who.tenant.as_str().as_bytes(), who.user.as_str().as_bytes());
    let mac = codes.sign_parts(&[PURPOSE, group.as_bytes(), &expires.to_be_bytes(), tenant, user]);
    format!("{:032x}{expires:016x}{:032x}", group.as_uuid().as_u128(), u128::from_be_bytes(mac))
}

/// Returns the group of a code, if the code is the caller's and has not expired.
pub(super) fn check(codes: &ReleaseCodes, code: &str, who: &Caller) -> Option<SessionId> {
    if code.len() != JOIN_CODE_CHARS || !code.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let group = SessionId::try_from(Uuid::from_u128(u128::from_str_radix(&code[..32], 16).ok()?)).ok()?;
    let expires = u64::from_str_radix(&code[32..48], 16).ok()?;
    let shown = u128::from_str_radix(&code[48..], 16).ok()?.to_be_bytes();
    let (tenant, user) = (who.tenant.as_str().as_bytes(), who.user.as_str().as_bytes());
    let parts: [&[u8]; 5] = [PURPOSE, group.as_bytes(), &expires.to_be_bytes(), tenant, user];
    (codes.check_parts(&parts, &shown) && now_seconds() < expires).then_some(group)
}

fn now_seconds() -> u64 {
    u64::try_from(wall_clock::now().timestamp()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
