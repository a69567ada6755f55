//! Region tokens: a forwarding region signs a token for a single receiver, valid for a minute. The token carries the
//! client's address and the request's id.

use std::net::IpAddr;
use std::time::Duration;

use axum::http::HeaderName;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, Header, Validation};
use seatkeeper_core::Region;
use seatkeeper_engine::wall_clock;
use seatkeeper_ledger::homes::DeploymentId;
use serde::{Deserialize, Serialize};

use super::keys::RegionKeys;

/// The header with the token.
pub(crate) const REGION_TOKEN: HeaderName = HeaderName::from_static("seatkeeper-region-token");

/// Longest token, in bytes. The parser of a header that nobody has verified goes as deep as the header is long.
const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// Lifetime of a token, in seconds.
const LIFETIME_SECONDS: i64 = 60;

/// The `typ` in the header of a token (RFC 8725, 3.11).
const TYPE: &str = "seatkeeper-region+jwt";

/// Signs tokens for peers, and checks the tokens of peers.
pub(super) struct PeerTokens {
    own: Region,
    deployment: DeploymentId,
    keys: RegionKeys,
    validation: Validation,
}

/// The claims of a token.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    exp: i64,
    /// The deployment that sends.
    deployment: DeploymentId,
    /// The receiving deployment, if known to the sender: a rival behind the same URL must not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    receiver: Option<DeploymentId>,
    #[serde(flatten)]
    client: Client,
}

/// The client of a forwarded request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Client {
    /// The address of the client.
    #[serde(rename = "client", skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<IpAddr>,
    /// The id of the client's request.
    #[serde(rename = "request", skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
}

/// The origin of a forwarded request, by a valid token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Forwarder {
    /// The region that sent the request.
    pub(crate) region: Region,
    /// The deployment that sent the request.
    pub(crate) deployment: DeploymentId,
    /// The sender knows no rival of the receiving deployment.
    pub(crate) knows_receiver: bool,
    /// The client behind the region.
    pub(crate) client: Client,
}

impl PeerTokens {
    pub(super) fn new((own, deployment): (Region, DeploymentId), keys: RegionKeys, leeway: Duration) -> Self {
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.leeway = leeway.as_secs();
        validation.set_audience(&[name_of(own)]);
        validation.set_required_spec_claims(&["exp", "aud", "iss"]);
        Self { own, deployment, keys, validation }
    }

    /// Returns the deployment of this region.
    pub(super) fn deployment(&self) -> DeploymentId {
        self.deployment
    }

    /// Signs a token for a region, and for the region's deployment if known.
    pub(super) fn sign(
        &self,
        (receiver, known): (Region, Option<DeploymentId>),
        client: Client,
    ) -> Result<String, Error> {
        let signing = self.keys.signing().ok_or(ErrorKind::InvalidKeyFormat)?;
        let claims = Claims {
            iss: name_of(self.own),
            aud: name_of(receiver),
            exp: wall_clock::now().timestamp().saturating_add(LIFETIME_SECONDS),
            deployment: self.deployment,
            receiver: known,
            client,
        };
        let header = Header { typ: Some(TYPE.to_owned()), ..Header::new(Algorithm::EdDSA) };
        jsonwebtoken::encode(&header, &claims, &signing)
    }

    /// Returns the peer that a token claims to be from. Nothing in the token is verified.
    pub(super) fn claimed(&self, token: &str) -> Option<Region> {
        let claimed = jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(token).ok()?;
        self.keys.peer(|region| name_of(region) == claimed.iss).map(|(region, _)| region)
    }

    /// Returns the forwarder named by a token. The issuer that the token claims chooses the keys, and nothing else.
    pub(super) fn check(&self, token: &str) -> Result<Forwarder, Error> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(ErrorKind::InvalidToken.into());
        }
        let claimed = jsonwebtoken::dangerous::insecure_decode_claims::<Claims>(token)?;
        let known = self.keys.peer(|region| name_of(region) == claimed.iss);
        let (region, keys) = known.ok_or(ErrorKind::InvalidIssuer)?;
        let mut refused = ErrorKind::InvalidSignature.into();
        for key in keys.iter() {
            match jsonwebtoken::decode::<Claims>(token, key, &self.validation) {
                Ok(data) if data.header.typ.as_deref() != Some(TYPE) => {
                    return Err(ErrorKind::InvalidToken.into());
                }
                Ok(data) if self.lives_too_long(&data.claims) => return Err(ErrorKind::InvalidToken.into()),
                Ok(data) => {
                    let Claims { deployment, receiver, client, .. } = data.claims;
                    let knows_receiver = receiver.is_none_or(|receiver| receiver == self.deployment);
                    return Ok(Forwarder { region, deployment, knows_receiver, client });
                }
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn lives_too_long(&self, claims: &Claims) -> bool {
        let leeway = i64::try_from(self.validation.leeway).unwrap_or(i64::MAX);
        let last = wall_clock::now().timestamp().saturating_add(LIFETIME_SECONDS).saturating_add(leeway);
        claims.exp > last
    }
}

/// Returns the name of a region as issuer and audience of tokens.
fn name_of(region: Region) -> String {
    format!("seatkeeper-region-{}", region.number())
}

#[cfg(test)]
mod tests;
