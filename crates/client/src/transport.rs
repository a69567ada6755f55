//! Requests of the machine as HTTP.

use std::sync::Arc;

use reqwest::Method;
use seatkeeper_client_core::{Failure, Method as Verb, Request, Response};
use tokio::time::{Instant, timeout_at};

use crate::tokens::{NoToken, TokenOwner, Tokens};
use crate::wire::{Call, Wire};

/// The servers, and the tokens for them.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    pub wire: Arc<Wire>,
    pub tokens: Arc<Tokens>,
}

impl Transport {
    /// Sends the request with the token of `owner`, and returns its response within the request's timeout.
    pub(crate) async fn send(self, owner: TokenOwner, request: Request) -> Result<Response, Failure> {
        let deadline = Instant::now() + request.timeout;
        let token = match timeout_at(deadline, self.token(&owner, request.bearer)).await {
            Ok(Ok(token)) => token,
            Ok(Err(NoToken::Answer(answer))) => return answer_without_token(request.method, answer),
            Ok(Err(NoToken::Failure(failure))) => return Err(failure),
            Ok(Err(NoToken::Source)) => return Err(Failure::NoToken),
            Err(_) => return Err(self.tokens.late()),
        };
        let method = match request.method {
            Verb::Post => Method::POST,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let call = Call { method, path: &request.path, body: request.body.as_ref(), token: token.as_deref() };
        self.wire.send(call, deadline).await
    }

    /// Returns the token of `owner` for a request that needs one.
    async fn token(&self, owner: &TokenOwner, bearer: bool) -> Result<Option<String>, NoToken> {
        if !bearer {
            return Ok(None);
        }
        self.tokens.current(owner).await.map(Some)
    }
}

/// Returns the outcome of a request whose token the server did not give. A refused license token refuses the acquire as
/// well, but tells nothing of a session.
fn answer_without_token(method: Verb, answer: Response) -> Result<Response, Failure> {
    let is_transient = matches!(answer.status, 408 | 429 | 500..=599);
    if method == Verb::Post || is_transient { Ok(answer) } else { Err(Failure::NoToken) }
}
