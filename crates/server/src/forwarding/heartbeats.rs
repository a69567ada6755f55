//! Plain heartbeats of sessions at home elsewhere, renewed in batches by the home.

mod plain;

use std::time::Instant;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use seatkeeper_core::Region;

use crate::app::App;
use crate::error::Error;
use crate::metrics::BatchOutcome;
use crate::outbound::PeerFault;
use crate::regions::{
    BATCH_BYTES_MAX, BatchAnswer, HEARTBEATS_PATH, HeartbeatAnswer, HeartbeatBatches, Outcome, Regions,
    Renewal, Sent, Step, Waiting, body_of, settle, without_abandoned,
};
pub(super) use plain::PlainHeartbeat;

/// The reason of an undecided heartbeat, for the log.
const UNDECIDED: &str = "the region could not decide about the heartbeat in time";

/// Returns the home's answer to a heartbeat. `None`: the heartbeat must be forwarded by itself.
pub(super) async fn renew(
    app: &App,
    batches: &HeartbeatBatches,
    home: Region,
    plain: &PlainHeartbeat,
) -> Result<Option<Response>, Error> {
    if batches.goes_alone(plain.id(), plain.token()) {
        return Ok(None);
    }
    let began = Instant::now();
    let Some((outcome, step)) = batches.push(home, &plain.heartbeat) else { return Ok(None) };
    carry_out(app, home, step);
    // A batch that broke off has no outcome.
    match outcome.await.unwrap_or(Outcome::Forward) {
        Outcome::Renewed(renewal) => {
            app.metrics.regions.renewed(began.elapsed());
            if plain.heartbeat.token.is_some() {
                // The home has checked the token itself.
                batches.confirm(plain.id(), plain.token());
            }
            Ok(Some(answer_of(renewal, plain)))
        }
        Outcome::Forward => {
            batches.refuse(plain.id(), plain.token());
            Ok(None)
        }
        Outcome::Unavailable(cause) => {
            Err(Error::RegionUnavailable { peer: home, source: PeerFault::Transport(cause) })
        }
    }
}

fn answer_of(renewal: Renewal, plain: &PlainHeartbeat) -> Response {
    let Renewal { body, standing } = renewal;
    if let (Some(standing), Some(note)) = (standing, &plain.standing) {
        note.write(standing);
    }
    match body {
        Some(body) => {
            let headers = [(CONTENT_TYPE, HeaderValue::from_static("application/json"))];
            (headers, String::from(Box::<str>::from(body))).into_response()
        }
        None => StatusCode::NO_CONTENT.into_response(),
    }
}

/// Carries out the step of a queue, beside the request that caused the step.
fn carry_out(app: &App, home: Region, step: Step<Waiting>) {
    match step {
        Step::Send(batch) => drop(tokio::spawn(send(app.clone(), home, batch))),
        Step::WakeAt(at) => drop(tokio::spawn(wake(app.clone(), home, at))),
        Step::Wait => {}
    }
}

async fn wake(app: App, home: Region, mut at: std::time::Duration) {
    let Some(batches) = app.regions.as_ref().and_then(|regions| regions.heartbeats()) else { return };
    loop {
        tokio::time::sleep_until(batches.instant(at).into()).await;
        match batches.wake(home) {
            Step::Send(batch) => return send(app.clone(), home, batch).await,
            Step::WakeAt(later) => at = later,
            Step::Wait => return,
        }
    }
}

/// Sends a batch to its home, and gives each heartbeat its outcome.
async fn send(app: App, home: Region, batch: Vec<Waiting>) {
    let batch = without_abandoned(batch);
    let Some(regions) = app.regions.as_ref().filter(|_| !batch.is_empty()) else { return };
    match exchange(regions, home, &batch).await {
        Ok(answers) => {
            app.metrics.regions.batch(BatchOutcome::Answered);
            let mut answers = answers.into_iter();
            settle(batch, || answers.next().map_or(Outcome::Forward, outcome_of));
        }
        // A home that takes no batches may be of an older version, and takes each heartbeat by itself.
        Err(Error::RegionUnavailable { source: PeerFault::Refused { status, body }, .. })
            if !is_passing(status) =>
        {
            app.metrics.regions.batch(BatchOutcome::Refused);
            tracing::warn!(
                region = home.number(),
                status,
                body,
                "a region refused a batch of heartbeats, so each is forwarded by itself: upgrade the region, or compare the [region] settings"
            );
            settle(batch, || Outcome::Forward);
        }
        Err(error) => {
            // The callers stay confirmed, so the next heartbeats go in batches again.
            app.metrics.regions.batch(BatchOutcome::Unavailable);
            let cause = cause_of(&error);
            settle(batch, || Outcome::Unavailable(cause.clone()));
        }
    }
}

/// Returns whether a home that answers a batch with `status` cannot decide now, and takes batches otherwise. Single
/// requests for the heartbeats of the batch would only add to the home's load.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429 | 500..)
}

fn outcome_of(answer: HeartbeatAnswer) -> Outcome {
    match answer {
        HeartbeatAnswer::Renewed(renewal) => Outcome::Renewed(renewal),
        HeartbeatAnswer::NotRenewed => Outcome::Forward,
        HeartbeatAnswer::Undecided => Outcome::Unavailable(UNDECIDED.to_owned()),
    }
}

async fn exchange(regions: &Regions, home: Region, batch: &[Waiting]) -> Result<Vec<HeartbeatAnswer>, Error> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let sent =
        Sent { method: Method::POST, path: HEARTBEATS_PATH, headers, body: Bytes::from(body_of(batch)) };
    let answer = regions.send_whole(home, sent, BATCH_BYTES_MAX).await?;
    let refused = |status, body: &[u8]| Error::RegionUnavailable {
        peer: home,
        source: PeerFault::refused(status, body),
    };
    match serde_json::from_slice::<BatchAnswer>(&answer.body) {
        Ok(answered) if answer.status == 200 && answered.answers.len() == batch.len() => Ok(answered.answers),
        Ok(_) | Err(_) => Err(refused(answer.status, &answer.body)),
    }
}

/// Returns the cause of an error, or the error itself without a cause.
fn cause_of(error: &Error) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}
