//! Requests of peers: the token of each is checked before anything else of the request counts.

use std::time::Instant;

use axum::extract::Request;
use seatkeeper_core::RequestId;
use seatkeeper_ledger::homes::Adoption;

use super::Layer;
use crate::error::Error;
use crate::http::Meta;
use crate::regions::{Client, DEPLOYMENTS_PATH, Forwarder, PEERS_PATH, REGION_TOKEN};
use crate::relocation::ADOPTIONS_PATH;

impl Layer {
    /// Checks the token of a forwarded request, and takes over the client's address and the id of the request. Returns
    /// `Ok(None)` for a request without a token, and an error for a token that does not count for the request's path.
    pub(super) async fn accept(&self, request: &mut Request) -> Result<Option<Forwarder>, Error> {
        let Some(token) = request.headers().get(REGION_TOKEN) else { return Ok(None) };
        let token = token.to_str().map_err(|_| Error::RegionTokenRefused(None))?;
        let path = request.uri().path();
        let forwarder = self.regions.forwarder(token).map_err(|error| self.refused(path, token, error))?;
        if path.starts_with(PEERS_PATH) && forwarder.client != Client::default() {
            // A region never forwards a client's request to this API: a proxy or a peer has changed the meaning of the
            // client's path.
            return Err(Error::RegionTokenRefused(None));
        }
        // The keys of a lost region count for its adoption alone.
        if let Some(adoption) = self.regions.adoption_of(forwarder.region)
            && !path.starts_with(ADOPTIONS_PATH)
        {
            return Err(match path == DEPLOYMENTS_PATH {
                true => adopted(adoption),
                false => Error::RegionTokenRefused(None),
            });
        }
        self.regions.check_deployment(forwarder.region, forwarder.deployment).await?;
        if !forwarder.knows_receiver {
            tracing::error!(
                region = forwarder.region.number(),
                "a peer knows another deployment by the number of this region, and the peer's requests are refused: run `seatkeeper \
                 repair region` on the peer's ledger"
            );
            return Err(Error::RegionTokenRefused(None));
        }
        if let Some(meta) = request.extensions_mut().get_mut::<Meta>() {
            meta.ip = forwarder.client.address;
            if let Some(id) = &forwarder.client.request_id {
                meta.id = RequestId::new(id.as_str());
            }
        }
        request.extensions_mut().insert(forwarder.clone());
        Ok(Some(forwarder))
    }

    /// Returns the error of a request whose token is not valid. The servers of a lost region, back again, must hear of
    /// the adoption, also with an old key or a wrong clock. A refusal needs no proof of the sender.
    fn refused(&self, path: &str, token: &str, error: jsonwebtoken::errors::Error) -> Error {
        if path == DEPLOYMENTS_PATH
            && let Some(adoption) = self.regions.adoption_of_claimed(token)
        {
            return adopted(adoption);
        }
        let cause = &error as &dyn std::error::Error;
        match self.refused_tokens.next_line(Instant::now()) {
            Some(unlogged) => tracing::warn!(
                error = cause,
                unlogged,
                "a token of another region was refused, and so was its request: check region.peers, the key files and the clocks of both"
            ),
            None => tracing::debug!(error = cause, "one of many tokens of other regions was refused"),
        }
        Error::RegionTokenRefused(Some(error))
    }
}

/// Returns the answer to a lost region that asks whether its deployment is accepted.
fn adopted(Adoption { lost, successor, .. }: Adoption) -> Error {
    Error::RegionAdopted { lost, successor }
}
