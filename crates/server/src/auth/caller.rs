//! The caller of a request, as named by a valid token.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{Actor, Authority, Reach, TenantId, UserId};
use seatkeeper_ledger::licenses::LicenseId;

use super::Refusal;
use seatkeeper_engine::wall_clock;

/// The tenant and user named by a valid token, with the token's scopes and expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Tenant of the caller.
    pub tenant: TenantId,
    /// Name of the caller within the tenant.
    pub user: UserId,
    /// Scopes granted by the token.
    pub scopes: Scopes,
    /// Expiry of the token, in seconds since the Unix epoch.
    pub expires_at_seconds: i64,
}

/// The words of the scopes that a token may list.
pub const SCOPE_WORDS: [&str; 2] = [ADMIN, SERVICE];

const ADMIN: &str = "admin";
const SERVICE: &str = "service";

/// Scopes of a token. Unknown scopes are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    /// Permits the admin API of the caller's tenant.
    pub admin: bool,
    /// Marks a program that acts for many users.
    pub service: bool,
    /// The license of a license token. `Some`: the caller may use seats of this license and nothing else.
    pub license: Option<LicenseId>,
}

impl Scopes {
    /// Parses a list of scopes, separated by spaces. A license in the list is ignored: license tokens alone
    /// name a license.
    pub fn parse(list: &str) -> Self {
        let has = |scope| list.split_ascii_whitespace().any(|listed| listed == scope);
        Self { admin: has(ADMIN), service: has(SERVICE), license: None }
    }
}

impl Caller {
    /// Returns the caller's authority: over every session of the tenant for an admin, over the user's own
    /// sessions otherwise.
    pub(crate) fn authority(&self) -> Authority {
        let reach = if self.scopes.admin { Reach::Tenant } else { Reach::Own(self.user.clone()) };
        Authority::new(self.tenant.clone(), reach)
    }

    /// Returns the caller, or `Err(LicenseTokenElsewhere)` for a caller with a license token.
    pub(crate) fn without_license_token(self: Arc<Self>) -> Result<Arc<Self>, Refusal> {
        if self.scopes.license.is_some() { Err(Refusal::LicenseTokenElsewhere) } else { Ok(self) }
    }

    /// Returns the remaining lifetime of the token, zero after the expiry.
    pub(crate) fn lasts(&self) -> Duration {
        let seconds = self.expires_at_seconds.saturating_sub(wall_clock::now().timestamp());
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// Returns the caller as the actor of audit records, for requests to client APIs.
    pub(crate) fn as_user(&self) -> Actor {
        Actor::User(self.user.clone())
    }

    /// Returns the caller as the actor of audit records, for requests to the admin API.
    pub(crate) fn as_admin(&self) -> Actor {
        Actor::Admin(self.user.clone())
    }
}
