use std::time::Duration;

use seatkeeper_core::{Actor, Authority, Reach, TenantId, UserId};
use seatkeeper_ledger::licenses::LicenseId;

use seatkeeper_engine::wall_clock;

/// Who a valid token speaks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The tenant.
    pub tenant: TenantId,
    /// The user.
    pub user: UserId,
    /// What else the token allows.
    pub scopes: Scopes,
    /// When the token expires, in seconds since the Unix epoch.
    pub expires_at_seconds: i64,
}

/// The scopes of a token; unknown ones count for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes {
    /// May use the admin API of its tenant.
    pub admin: bool,
    /// A program that acts for many users.
    pub service: bool,
    /// The license of a license token. `Some`: the caller may use seats of this license and nothing else.
    pub license: Option<LicenseId>,
}

impl Scopes {
    /// Reads a list separated by spaces. A license in the list counts for nothing: license tokens alone name a license.
    pub fn parse(list: &str) -> Self {
        let has = |scope| list.split_ascii_whitespace().any(|listed| listed == scope);
        Self { admin: has("admin"), service: has("service"), license: None }
    }
}

impl Caller {
    /// Whose sessions the caller may touch: all of the tenant's for its admins, else the caller's own.
    pub(crate) fn authority(&self) -> Authority {
        let reach = if self.scopes.admin { Reach::Tenant } else { Reach::Own(self.user.clone()) };
        Authority::new(self.tenant.clone(), reach)
    }

    /// How long the token is good for from now on.
    pub(crate) fn lasts(&self) -> Duration {
        let seconds = self.expires_at_seconds.saturating_sub(wall_clock::now().timestamp());
        Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
    }

    /// The caller as the record names it when it uses a client's API.
    pub(crate) fn as_user(&self) -> Actor {
        Actor::User(self.user.clone())
    }

    /// The caller as the record names it when it uses the admin API.
    pub(crate) fn as_admin(&self) -> Actor {
        Actor::Admin(self.user.clone())
    }
}
