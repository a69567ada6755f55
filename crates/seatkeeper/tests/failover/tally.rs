//! Counts of requests under a change of passwords: machines retry what a node refuses, and the test asks how
//! often.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use super::support::answered;
use crate::harness::{Answer, Client};

/// The number of requests of each machine served between two steps of a test. Each node connects again
/// meanwhile: a node that missed a change altogether knows neither the password before nor the password after
/// the next change.
const BETWEEN: usize = 8;

const PAUSE: Duration = Duration::from_millis(5);

/// Counts of the answers to a machine.
#[derive(Default)]
pub(crate) struct Tally {
    done: AtomicUsize,
    /// The number of requests whose first answer was 503.
    refused: AtomicUsize,
}

impl Tally {
    /// Plays a machine at a node until `is_over`: takes, renews and releases a seat, and renews the seat `held`. A request
    /// may take effect just before its connection is lost, and the retry then finds the effect.
    async fn machine(&self, client: &Client, key: &Value, held: &Value, number: usize, is_over: &AtomicBool) {
        let name = format!("machine-{number}");
        while !is_over.load(Relaxed) {
            let got = self.served(async || client.acquire(key, &name).await, &[200, 201]).await;
            let session = &got.body["session_id"];
            self.served(async || client.heartbeat(session).await, &[200]).await;
            self.served(async || client.heartbeat(held).await, &[200]).await;
            self.served(async || client.release(session).await, &[204, 404]).await;
        }
    }

    /// Retries `ask` until the answer is no 503. Fails the test if the answer's status is not in `wanted`.
    async fn served(&self, ask: impl AsyncFn() -> Answer, wanted: &[u16]) -> Answer {
        let first = ask().await;
        let answer = if first.status == 503 {
            self.refused.fetch_add(1, Relaxed);
            answered(ask).await
        } else {
            first
        };
        assert!(wanted.contains(&answer.status), "{answer:?}");
        self.done.fetch_add(1, Relaxed);
        answer
    }
}

/// Plays a machine for each tally, at the nodes in turn, until `is_over`.
pub(crate) async fn machines(
    tallies: &[Tally],
    clients: &[Client],
    key: &Value,
    held: &Value,
    is_over: &AtomicBool,
) {
    let at_work = tallies
        .iter()
        .enumerate()
        .map(|(number, tally)| tally.machine(&clients[number % clients.len()], key, held, number, is_over));
    join_all(at_work).await;
}

/// Waits until every machine was served [`BETWEEN`] more requests.
pub(crate) async fn some_are_done(tallies: &[Tally]) {
    for tally in tallies {
        let until = tally.done.load(Relaxed) + BETWEEN;
        while tally.done.load(Relaxed) < until {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Returns the number of requests refused since the last call.
pub(crate) fn refused(tallies: &[Tally]) -> usize {
    tallies.iter().map(|tally| tally.refused.swap(0, Relaxed)).sum()
}
