//! Sessions that begin during a fault, in every registry that serves meanwhile. None may be lost with the fault.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt as _};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::licenses::make_license;
use super::{AGAIN, STANDSTILL_MAX, patient};
use crate::failover::support::Nodes;
use crate::harness::{Answer, Client};
use crate::support::books::Books;
use crate::support::knobs;
use crate::support::scene::{License, text};

/// The number of licenses, each in a bucket of its own, as a rule.
const POOLS: usize = 4;

/// The pause between two sessions of a license.
const PAUSE: Duration = Duration::from_millis(100);

/// Longer than any test: no client heartbeats during the fault.
const TTL_SECONDS: u64 = 24 * 3_600;

/// The number of heartbeats in flight after the fault.
const RENEWED_AT_ONCE: usize = 16;

/// The most sessions that begin during one fault.
const SESSIONS_MAX: u64 = 400;

/// The answered sessions of a license.
type Answered = Arc<Mutex<Vec<String>>>;

/// Clients that take seats for as long as a fault lasts.
pub(crate) struct Latecomers {
    client: Client,
    licenses: Vec<(License, Answered)>,
    taking: JoinSet<Result<(), Answer>>,
}

/// Sessions that began during a fault, on record to the end of the storm.
#[derive(Debug)]
pub(crate) struct LateSessions {
    license: License,
    sessions: Vec<String>,
}

impl Latecomers {
    /// Begins to take seats. All faults of a run together get as many sessions as were there before the first fault.
    pub(crate) async fn begin(nodes: &Nodes) -> Self {
        let sessions = (knobs::fault_sessions() / knobs::fault_cycles().max(1)).min(SESSIONS_MAX);
        let seats = u32::try_from(sessions.div_ceil(POOLS as u64)).expect("a few");
        let (admin, token) =
            tokio::task::block_in_place(|| (nodes.harnesses[0].admin(), nodes.harnesses[0].token("late")));
        let admin = Client::with(admin.http, nodes.doors(), admin.token);
        let client = Client::with(patient(), nodes.doors(), token);
        let mut latecomers = Self { client: client.clone(), licenses: Vec::new(), taking: JoinSet::new() };
        for _ in 0..POOLS {
            let (license, answered) = (make_license(&admin, seats, TTL_SECONDS).await, Answered::default());
            latecomers.taking.spawn(takes_seats(client.clone(), license.clone(), Arc::clone(&answered)));
            latecomers.licenses.push((license, answered));
        }
        latecomers
    }

    /// Stops the clients. Requests in flight count as unanswered. Fails the test if a client was refused, unless
    /// the ledger `may_forget`.
    pub(crate) async fn stop(&mut self, may_forget: bool) {
        self.taking.abort_all();
        while let Some(taken) = self.taking.join_next().await {
            match taken {
                Ok(Err(refused)) => assert!(refused.status == 404 && may_forget, "{refused:?}"),
                Ok(Ok(())) => {}
                Err(stopped) => assert!(stopped.is_cancelled(), "a client broke off: {stopped}"),
            }
        }
    }

    /// Renews every answered session. Returns the longest wait of a session for its renewal. Fails the test if a
    /// session is gone, unless the ledger `may_forget`.
    pub(crate) async fn are_renewed(&self, may_forget: bool) -> Duration {
        let answered = self.licenses.iter().flat_map(|(_, answered)| lock(answered).clone());
        let answered: Vec<String> = answered.collect();
        let renewals = answered.iter().map(|session| self.renewal_of(session, may_forget));
        stream::iter(renewals)
            .buffer_unordered(RENEWED_AT_ONCE)
            .fold(Duration::ZERO, async |longest, wait| longest.max(wait))
            .await
    }

    /// Returns the answered sessions.
    pub(crate) fn into_sessions(self) -> Vec<LateSessions> {
        let sessions = |answered: &Answered| std::mem::take(&mut *lock(answered));
        let licenses = self.licenses.into_iter();
        licenses.map(|(license, answered)| LateSessions { license, sessions: sessions(&answered) }).collect()
    }

    /// Renews a session, and returns the wait for the answer.
    async fn renewal_of(&self, session: &str, may_forget: bool) -> Duration {
        let (asked, path) = (Instant::now(), format!("/api/v1/licenses/sessions/{session}/heartbeat"));
        loop {
            match self.client.try_send(Method::PATCH, &path, None).await {
                Ok(answer) if answer.status == 200 || answer.status == 404 && may_forget => {
                    return asked.elapsed();
                }
                Ok(answer) if !is_retried(answer.status) => {
                    panic!("{session} began during the fault and is gone: {:#}", answer.body)
                }
                Ok(_) | Err(_) => tokio::time::sleep(AGAIN).await,
            }
            assert!(asked.elapsed() < STANDSTILL_MAX, "{session} began during the fault and is not served");
        }
    }
}

impl LateSessions {
    /// Returns the number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Fails the test if a session is not live on record, or if the license was above its limit.
    pub(super) fn are_on_record(&self, books: &Books) {
        for session in &self.sessions {
            let story = books.story(session);
            assert!(story.end.is_none(), "{session} began during a fault and was ended: {story:?}");
        }
        let most = books.most_at_once(&self.license.id);
        assert!(most <= i64::from(self.license.seats), "{most} sessions of {}", self.license.id);
    }
}

/// Takes every seat of a license, one after the other. Returns `Err` with the answer if a claim is refused.
async fn takes_seats(client: Client, license: License, answered: Answered) -> Result<(), Answer> {
    for machine in 0..license.seats {
        let ask = json!({ "license_key": license.key, "machine_id": format!("late-{machine}") });
        let session = admitted(&client, &ask).await?;
        lock(&answered).push(session);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Retries a claim until the answer comes from a node that serves. Returns the session, or the refusal.
async fn admitted(client: &Client, ask: &Value) -> Result<String, Answer> {
    loop {
        match client.try_send(Method::POST, "/api/v1/licenses/acquire", Some(ask.clone())).await {
            Ok(answer) if [200, 201].contains(&answer.status) => return Ok(text(&answer.body["session_id"])),
            Ok(answer) if !is_retried(answer.status) => return Err(answer),
            Ok(_) | Err(_) => tokio::time::sleep(AGAIN).await,
        }
    }
}

/// Returns `true` for the answers of a node that cannot serve at present. A node whose clock is wrong refuses every
/// token with 401.
fn is_retried(status: u16) -> bool {
    [401, 503].contains(&status)
}

fn lock(answered: &Answered) -> std::sync::MutexGuard<'_, Vec<String>> {
    answered.lock().unwrap_or_else(PoisonError::into_inner)
}
