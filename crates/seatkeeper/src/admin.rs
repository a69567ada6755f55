//! The admin API as the commands use it.

use std::time::Duration;

use seatkeeper_server::auth::{MintError, TokenRequest, mint};
use serde::Deserialize;

use crate::api_client::{self, ApiClient};
use crate::args::ServerArgs;
use crate::settings;

/// Licenses.
pub(crate) const LICENSES: &str = "/api/v1/admin/licenses";
/// Plans.
pub(crate) const PLANS: &str = "/api/v1/admin/plans";
/// Subscriptions.
pub(crate) const SUBSCRIPTIONS: &str = "/api/v1/admin/subscriptions";
/// Sessions of every pool.
pub(crate) const SESSIONS: &str = "/api/v1/admin/sessions";
/// Windows in which capacities were metered.
pub(crate) const USAGE: &str = "/api/v1/admin/usage";
/// Batches of usage records.
pub(crate) const USAGE_BATCHES: &str = "/api/v1/admin/usage/batches";
/// What was held, recorded and delivered.
pub(crate) const USAGE_RECONCILIATION: &str = "/api/v1/admin/usage/reconciliation";
/// The audit log.
pub(crate) const AUDIT: &str = "/api/v1/admin/audit";

/// The server's jobs.
pub(crate) const JOBS: &str = "/api/v1/admin/jobs";

/// How long a token lives that is signed for one command.
const TOKEN_TTL: Duration = Duration::from_secs(60);

/// Who the record says it was, if the command signed its own token.
const TOKEN_USER: &str = "seatkeeper-cli";

/// Why there is no way to a server's admin API.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No settings, hence no key.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// No token was given, and none can be signed.
    #[error("no token: give --token, or --data-dir with the data directory of the server")]
    NoToken(#[source] MintError),
    /// No client.
    #[error(transparent)]
    Client(#[from] api_client::Error),
}

/// A client of the admin API. Without a token one is signed with the key in the data directory.
pub(crate) fn connect(args: &ServerArgs) -> Result<ApiClient, Error> {
    Ok(ApiClient::new(&args.server, token(args, "admin", TOKEN_TTL)?, args.ca_file.as_deref())?)
}

/// The token that was given, or one with these scopes for `ttl` that the key in the data directory signs.
pub(crate) fn token(args: &ServerArgs, scopes: &str, ttl: Duration) -> Result<String, Error> {
    if let Some(token) = &args.token {
        return Ok(token.clone());
    }
    let settings = settings::load(&args.data.sources())?;
    let request = TokenRequest {
        tenant: args.tenant.clone(),
        user: TOKEN_USER.to_owned(),
        scopes: scopes.to_owned(),
        ttl,
    };
    mint(&settings, &request).map_err(Error::NoToken)
}

/// A license, as far as tables show it.
#[derive(Debug, Deserialize)]
pub(crate) struct License {
    pub license_id: String,
    pub license_key: String,
    pub max_seats: u64,
    pub seats_used: u64,
    pub status: String,
    pub expires_at: Option<String>,
    pub count_per: String,
    pub clients: String,
    pub ttl_seconds: Option<u64>,
    pub contact: Option<String>,
    pub version: u64,
    pub created_at: String,
    pub updated_at: String,
}
