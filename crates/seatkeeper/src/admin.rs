//! Access to a server's admin API for the commands: paths, client and token. The path of a new API goes here.

use std::time::Duration;

use seatkeeper_server::auth::{MintError, TokenRequest, mint};
use serde::Deserialize;

use crate::api_client::{self, ApiClient};
use crate::args::ServerArgs;
use crate::settings;

/// The path of licenses.
pub(crate) const LICENSES: &str = "/api/v1/admin/licenses";
/// The path of plans.
pub(crate) const PLANS: &str = "/api/v1/admin/plans";
/// The path of subscriptions.
pub(crate) const SUBSCRIPTIONS: &str = "/api/v1/admin/subscriptions";
/// The path of sessions of every pool.
pub(crate) const SESSIONS: &str = "/api/v1/admin/sessions";
/// The path of the windows of metered usage.
pub(crate) const USAGE: &str = "/api/v1/admin/usage";
/// The path of batches of usage records.
pub(crate) const USAGE_BATCHES: &str = "/api/v1/admin/usage/batches";
/// The path of the comparison of held, recorded and delivered usage.
pub(crate) const USAGE_RECONCILIATION: &str = "/api/v1/admin/usage/reconciliation";
/// The path of the audit log.
pub(crate) const AUDIT: &str = "/api/v1/admin/audit";

/// The path of the regions of the deployment.
pub(crate) const REGIONS: &str = "/api/v1/admin/regions";
/// The path of moves of homes.
pub(crate) const HOME_MOVES: &str = "/api/v1/admin/homes/moves";

/// The path of the server's jobs.
pub(crate) const JOBS: &str = "/api/v1/admin/jobs";

/// The lifetime of a token signed for a single command.
const TOKEN_TTL: Duration = Duration::from_secs(60);

/// The user in a token signed by a command, as shown in the audit log.
const TOKEN_USER: &str = "seatkeeper-cli";

/// The reason why the admin API cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The settings cannot be loaded, so no key is known.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// No token was given, and no token can be signed.
    #[error("no token: give --token, or --data-dir with the data directory of the server")]
    NoToken(#[source] MintError),
    /// The client cannot be made.
    #[error(transparent)]
    Client(#[from] api_client::Error),
}

/// Returns a client of the admin API. Without a token, the key in the data directory signs one.
pub(crate) fn connect(args: &ServerArgs) -> Result<ApiClient, Error> {
    Ok(ApiClient::new(&args.server, token(args, "admin", TOKEN_TTL)?, args.ca_file.as_deref())?)
}

/// Returns the given token. Without a token, signs one with these scopes for `ttl`, by the key in the data
/// directory.
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

/// A license, with the fields for tables.
#[derive(Debug, Deserialize)]
pub(crate) struct License {
    pub license_id: String,
    pub license_key: String,
    pub max_seats: u64,
    /// `None` while no registry serves the license.
    pub seats_used: Option<u64>,
    pub status: String,
    pub expires_at: Option<String>,
    pub count_per: String,
    pub clients: String,
    pub ttl_seconds: Option<u64>,
    pub grace_seconds: u64,
    pub reacquire: String,
    pub contact: Option<String>,
    pub version: u64,
    pub created_at: String,
    pub updated_at: String,
}
