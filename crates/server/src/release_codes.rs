//! Release codes: with the code of a session, a caller without a token gives the session's seat back. A page that closes
//! has no time for a token or a preflight.
//!
//! A code names tenant and user of the holder after a MAC over session, tenant and user, so no code is stored. All nodes
//! share the keys of the MAC, in the ledger.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws_lc_rs::{constant_time, hmac};
use parking_lot::RwLock;
use seatkeeper_core::{PoolKind, SessionId, Span, TenantId, UserId};
use seatkeeper_engine::{Progress, Worker};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::release_keys::ReleaseKey;

use crate::auth::Caller;

/// Bytes of a code's MAC: the first 128 bits of HMAC-SHA256.
const MAC_BYTES: usize = 16;

/// Hexadecimal digits of a code's MAC.
const MAC_DIGITS: usize = 2 * MAC_BYTES;

/// Interval at which a node reads the keys.
const READ_INTERVAL: Duration = Duration::from_secs(300);

/// Age from which a key signs. By then every node has read the key.
const SIGNS_FROM: Span = Span::from_secs(3_600);

/// Length of the longest code, in characters: a MAC, and two names of 255 characters.
pub(crate) const RELEASE_CODE_CHARS_MAX: usize = 600;

/// Signs and checks release codes.
pub(crate) struct ReleaseCodes {
    ledger: Ledger,
    keys: RwLock<Keys>,
}

struct Keys {
    signing: hmac::Key,
    /// The keys whose codes count, the newest first.
    valid: Vec<hmac::Key>,
}

/// The holder of a session, as named by a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeHolder {
    pub(crate) tenant: TenantId,
    pub(crate) user: UserId,
}

impl CodeHolder {
    /// Returns the holder of sessions that `caller` acquires.
    pub(crate) fn from_caller(caller: &Caller) -> Self {
        Self { tenant: caller.tenant.clone(), user: caller.user.clone() }
    }
}

impl ReleaseCodes {
    /// Reads the keys from the ledger.
    pub(crate) async fn new(ledger: Ledger) -> Result<Self, seatkeeper_ledger::Error> {
        let keys = RwLock::new(Keys::new(&ledger.release_keys().await?)?);
        Ok(Self { ledger, keys })
    }

    /// Returns the code with which a holder's session can be released.
    pub(crate) fn sign(&self, session: (PoolKind, SessionId), holder: &CodeHolder) -> String {
        let mac = session_mac(&self.keys.read().signing, session, holder);
        let CodeHolder { tenant, user } = holder;
        format!("{:032x}:{}:{tenant}{user}", u128::from_be_bytes(mac), tenant.as_str().len())
    }

    /// Returns the holder named by `code`, if the code is the code of the session. The time of the check does not depend
    /// on the first wrong byte.
    pub(crate) fn check(&self, session: (PoolKind, SessionId), code: &str) -> Option<CodeHolder> {
        let (shown, holder) = parse(code)?;
        let keys = self.keys.read();
        let fits = |key: &hmac::Key| {
            constant_time::verify_slices_are_equal(&session_mac(key, session, &holder), &shown).is_ok()
        };
        keys.valid.iter().any(fits).then_some(holder)
    }

    /// Returns the first 128 bits of the HMAC of `parts`, by the signing key.
    pub(crate) fn sign_parts(&self, parts: &[&[u8]]) -> [u8; MAC_BYTES] {
        mac(&self.keys.read().signing, parts)
    }

    /// Checks the MAC of `parts` against every valid key, in a time that does not depend on the first wrong byte.
    pub(crate) fn check_parts(&self, parts: &[&[u8]], shown: &[u8; MAC_BYTES]) -> bool {
        let fits = |key: &hmac::Key| constant_time::verify_slices_are_equal(&mac(key, parts), shown).is_ok();
        self.keys.read().valid.iter().any(fits)
    }

    async fn read(&self) -> Result<(), seatkeeper_ledger::Error> {
        let keys = Keys::new(&self.ledger.release_keys().await?)?;
        *self.keys.write() = keys;
        Ok(())
    }
}

impl Keys {
    fn new(keys: &[ReleaseKey]) -> Result<Self, seatkeeper_ledger::Error> {
        // A young key may be unknown to other nodes. The first key of a ledger signs at once.
        let signing = keys.iter().find(|key| key.age >= SIGNS_FROM).or(keys.last());
        let signing = signing.ok_or(seatkeeper_ledger::Error::NotFound)?;
        let of_sha256 = |key: &ReleaseKey| hmac::Key::new(hmac::HMAC_SHA256, &key.secret);
        Ok(Self { signing: of_sha256(signing), valid: keys.iter().map(of_sha256).collect() })
    }
}

fn session_mac(key: &hmac::Key, (kind, id): (PoolKind, SessionId), holder: &CodeHolder) -> [u8; MAC_BYTES] {
    let (tenant, user) = (holder.tenant.as_str().as_bytes(), holder.user.as_str().as_bytes());
    mac(key, &[kind.as_str().as_bytes(), id.as_bytes(), tenant, user])
}

fn mac(key: &hmac::Key, parts: &[&[u8]]) -> [u8; MAC_BYTES] {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        // With its length before each part, no two lists of parts give the same input.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let mut first = [0; MAC_BYTES];
    first.copy_from_slice(&context.sign().as_ref()[..MAC_BYTES]);
    first
}

/// Parses a code: MAC in hexadecimal digits, length of the tenant in bytes, tenant and user.
fn parse(code: &str) -> Option<([u8; MAC_BYTES], CodeHolder)> {
    let (digits, rest) = code.split_once(':')?;
    let (length, names) = rest.split_once(':')?;
    let (tenant, user) = names.split_at_checked(length.parse().ok()?)?;
    let holder = CodeHolder { tenant: TenantId::new(tenant), user: UserId::new(user) };
    if digits.len() != MAC_DIGITS || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let shown = u128::from_str_radix(digits, 16).ok()?;
    Some((shown.to_be_bytes(), holder))
}

/// A worker that reads the keys again, so that the node learns of a rotation before a code needs the new key.
pub(crate) struct ReleaseKeyReader(pub(crate) Arc<ReleaseCodes>);

#[async_trait]
impl Worker for ReleaseKeyReader {
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "release-keys"
    }

    fn rest(&self) -> Duration {
        READ_INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Self::Error> {
        if let Err(error) = self.0.read().await {
            let causes = seatkeeper_engine::with_causes(&error);
            tracing::warn!(%causes, "reading the keys of release codes failed: the known keys stay in use");
        }
        Ok(Progress::Idle)
    }
}

#[cfg(test)]
mod tests;
