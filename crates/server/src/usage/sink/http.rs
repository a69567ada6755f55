//! A sink that takes batches by `POST`.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response};
use seatkeeper_ledger::DueBatch;

use super::body::Body;
use super::token::{SinkError, TokenFile};
use super::{Reply, Sink};
use crate::outbound;
use crate::reload::Reload;
use crate::settings::{Secret, SinkFormat, UsageSettings};
use crate::workers::Crew;

/// How much of what went wrong is kept.
const SAID_CHARS_MAX: usize = 300;

pub(crate) struct HttpSink {
    client: Client,
    url: String,
    token: Token,
    format: SinkFormat,
    event_source: String,
}

/// What the sink is shown.
enum Token {
    None,
    Fixed(Secret),
    InFile(TokenFile),
}

impl Token {
    fn of(settings: &UsageSettings) -> Result<Self, SinkError> {
        Ok(match (&settings.sink_token_file, &settings.sink_token) {
            (Some(path), _) => Self::InFile(TokenFile::of(path.clone())?),
            (None, Some(token)) => Self::Fixed(token.clone()),
            (None, None) => Self::None,
        })
    }

    fn now(&self) -> Option<Secret> {
        match self {
            Self::None => None,
            Self::Fixed(token) => Some(token.clone()),
            Self::InFile(file) => Some(file.token()),
        }
    }
}

impl HttpSink {
    /// The sink that the settings name, if they name one. `upkeep` sees to it that it goes on with a newer token.
    pub(crate) fn of(settings: &UsageSettings, upkeep: &Crew) -> Result<Option<Self>, SinkError> {
        let Some(url) = &settings.sink_url else { return Ok(None) };
        let token = Token::of(settings)?;
        if let Token::InFile(file) = &token {
            upkeep.start(Reload::new(file.clone(), file.token()));
        }
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
        let body = match Body::of(batch, self.format, &self.event_source) {
            Ok(body) => body,
            Err(error) => return Reply::Unanswered { why: bounded(&error.to_string()) },
        };
        let token = self.token.now();
        match self.post(batch, body, token.as_ref()).await {
            Ok(response) => answered(response, token.as_ref()).await,
            Err(error) => Reply::Unanswered { why: bounded(&outbound::causes(error)) },
        }
    }
}

async fn answered(response: Response, token: Option<&Secret>) -> Reply {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    // The status is the answer; a text that breaks off changes nothing.
    let said = outbound::beginning(response).await;
    let said = String::from_utf8_lossy(&said);
    // It goes on record, where admins of tenants read it, and a sink may repeat what it was sent.
    let said = match token {
        Some(token) => token.masked_in(&said),
        None => said.into_owned(),
    };
    Reply::Answered { status, retry_after: retry_after.map(Duration::from_secs), said: bounded(&said) }
}

/// The beginning of a text, fit for a record and a log line.
fn bounded(text: &str) -> String {
    text.trim().chars().take(SAID_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
