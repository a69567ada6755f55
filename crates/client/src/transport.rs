//! Requests of the machine as HTTP.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::{Method, Url};
use seatkeeper_client_core::{Failure, Method as Verb, Request, Response};

use crate::tokens::TokenCache;

/// The largest body that is read: no answer of a server comes near.
const BODY_BYTES_MAX: usize = 1 << 20;

/// A server, and the way to it.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    pub http: reqwest::Client,
    pub base: Url,
    pub tokens: Arc<TokenCache>,
}

impl Transport {
    /// Sends the request, and returns its response within the request's timeout.
    pub(crate) async fn send(self, request: Request) -> Result<Response, Failure> {
        let timeout = request.timeout;
        tokio::time::timeout(timeout, self.exchange(request)).await.unwrap_or(Err(Failure::Timeout))
    }

    async fn exchange(&self, request: Request) -> Result<Response, Failure> {
        let token = self.tokens.current().await.map_err(|_| Failure::NoToken)?;
        let method = match request.method {
            Verb::Post => Method::POST,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let url = self.base.join(&request.path).map_err(|_| Failure::Garbage)?;
        let mut builder = self.http.request(method, url).bearer_auth(token);
        if let Some(body) = &request.body {
            builder = builder.json(body);
        }
        let mut answer = builder.send().await.map_err(|error| failure(&error))?;
        let status = answer.status().as_u16();
        let seconds = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|_| Failure::Truncated)? {
            body.extend_from_slice(&chunk);
            if body.len() > BODY_BYTES_MAX {
                return Err(Failure::Garbage);
            }
        }
        Ok(Response { status, retry_after: seconds.map(Duration::from_secs), body })
    }
}

fn failure(error: &reqwest::Error) -> Failure {
    if error.is_timeout() {
        Failure::Timeout
    } else if error.is_connect() {
        Failure::Refused
    } else if error.is_builder() {
        Failure::ResetBeforeSend
    } else {
        Failure::ResetAfterSend
    }
}
