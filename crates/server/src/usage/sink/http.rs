//! A sink that takes batches by `POST`.

use std::time::Duration;

use async_trait::async_trait;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, redirect};
use seatkeeper_ledger::DueBatch;

use super::body::Body;
use super::{Reply, Sink};
use crate::settings::{Secret, SinkFormat, UsageSettings};

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of an answer is read; the connection of a longer one is closed.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How much of what went wrong is kept.
const SAID_CHARS_MAX: usize = 300;

pub(crate) struct HttpSink {
    client: Client,
    url: String,
    token: Option<Secret>,
    format: SinkFormat,
    event_source: String,
}

impl HttpSink {
    /// The sink that the settings name, if they name one.
    pub(crate) fn of(settings: &UsageSettings) -> Result<Option<Self>, reqwest::Error> {
        let Some(url) = &settings.sink_url else { return Ok(None) };
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(Duration::from_secs(settings.sink_timeout_seconds))
            .build()?;
        Ok(Some(Self {
            client,
            url: url.clone(),
            token: settings.sink_token.clone(),
            format: settings.sink_format,
            event_source: settings.event_source.clone(),
        }))
    }

    async fn post(&self, batch: &DueBatch, body: Body) -> Result<Response, reqwest::Error> {
        let mut request = self
            .client
            .post(&self.url)
            .header(CONTENT_TYPE, body.content_type)
            .header("Idempotency-Key", batch.id.to_string())
            .body(body.bytes);
        if let Some(token) = &self.token {
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
        match self.post(batch, body).await {
            Ok(response) => answered(response).await,
            // The settings have the address; a log need not repeat it.
            Err(error) => Reply::Unanswered { why: bounded(&causes(&error.without_url())) },
        }
    }
}

async fn answered(mut response: Response) -> Reply {
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    let mut said = Vec::new();
    // The status is the answer; a text that breaks off changes nothing.
    while let Ok(Some(chunk)) = response.chunk().await {
        said.extend_from_slice(&chunk[..chunk.len().min(ANSWER_BYTES_MAX - said.len())]);
        if said.len() == ANSWER_BYTES_MAX {
            break;
        }
    }
    Reply::Answered {
        status,
        retry_after: retry_after.map(Duration::from_secs),
        said: bounded(&String::from_utf8_lossy(&said)),
    }
}

fn causes(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// The beginning of a text, fit for a record and a log line.
fn bounded(text: &str) -> String {
    text.trim().chars().take(SAID_CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
