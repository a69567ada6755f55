//! A sink that accepts batches by HTTP `POST`.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response};
use seatkeeper_ledger::usage::DueBatch;

use super::body::Body;
use super::{Reply, Sink};
use crate::bearer::{BearerToken, TokenFileError};
use crate::outbound;
use crate::settings::{Secret, SinkFormat, UsageSettings};
use seatkeeper_engine::WorkerSet;

/// Maximum of characters kept of an error text.
const SAID_CHARS_MAX: usize = 300;

pub(crate) struct HttpSink {
    client: Client,
    url: String,
    /// The bearer token for the sink.
    token: Option<BearerToken>,
    format: SinkFormat,
    event_source: String,
}

/// A failure that keeps usage from the sink.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// No client can be made.
    #[error("no client can be made")]
    Client(#[from] reqwest::Error),
    /// The token's file cannot be used.
    #[error("there is no token for the sink")]
    Token(#[from] TokenFileError),
}

impl HttpSink {
    /// Creates the sink of `settings`; `None` without `sink_url`. A worker in `upkeep` reloads the token's
    /// file.
    pub(crate) fn from_settings(
        settings: &UsageSettings,
        upkeep: &WorkerSet,
    ) -> Result<Option<Self>, SinkError> {
        let Some(url) = &settings.sink_url else { return Ok(None) };
        let (fixed, file) = (settings.sink_token.as_ref(), settings.sink_token_file.as_ref());
        let token = BearerToken::from_settings("token of the sink", fixed, file, upkeep)?;
        let client = outbound::client(Duration::from_secs(settings.sink_timeout_seconds))?;
        Ok(Some(Self {
            client,
            url: url.clone(),
            token,
            format: settings.sink_format,
            event_source: settings.event_source.clone(),
        }))
    }

    async fn post(
        &self,
        batch: &DueBatch,
        body: Body,
        token: Option<&Secret>,
    ) -> Result<Response, reqwest::Error> {
        let mut request = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, body.content_type)
            .header("Idempotency-Key", batch.id.to_string())
            .body(body.bytes);
        if let Some(token) = token {
            request = request.bearer_auth(token.reveal());
        }
        request.send().await
    }
}

#[async_trait]
impl Sink for HttpSink {
    async fn send(&self, batch: &DueBatch) -> Reply {
        let body = match Body::new(batch, self.format, &self.event_source) {
            Ok(body) => body,
            Err(error) => {
                return Reply::Unanswered { why: bounded(&error.to_string()), may_be_stored: false };
            }
        };
        let token = self.token.as_ref().map(BearerToken::now);
        match self.post(batch, body, token.as_ref()).await {
            Ok(response) => answered(response, token.as_ref()).await,
            Err(error) => {
                let may_be_stored = !error.is_connect();
                Reply::Unanswered { why: bounded(&outbound::causes(error)), may_be_stored }
            }
        }
    }
}

async fn answered(response: Response, token: Option<&Secret>) -> Reply {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    // The status decides. A body that breaks off changes no outcome.
    let said = outbound::beginning(response).await;
    let said = String::from_utf8_lossy(&said);
    // Admins of tenants can read the recorded text, and a sink may echo the token.
    let said = match token {
        Some(token) => token.masked_in(&said),
        None => said.into_owned(),
    };
    Reply::Answered { status, retry_after: retry_after.map(Duration::from_secs), said: bounded(&said) }
}

/// Returns the beginning of a text, without control characters, for a record and a log line.
fn bounded(text: &str) -> String {
    text.trim().chars().take(SAID_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
