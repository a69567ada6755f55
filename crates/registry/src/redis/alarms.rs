//! Hears when a bucket is due, where Redis tells of keys that expire. It is a wake-up call that nothing depends on:
//! what is told while nobody listens is lost, and a server need not tell.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::select_all;
use parking_lot::Mutex;
use redis::RedisResult;
use redis::aio::PubSub;
use seatkeeper_core::BucketSet;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::keys::bucket_of_alarm;
use super::servers::Servers;

/// Where Redis tells of keys that expired in the first database.
const CHANNEL: &str = "__keyevent@0__:expired";

/// How long it listens before it makes sure that it listens to every server there is.
const LISTEN_MAX: Duration = Duration::from_secs(30);

/// How long it takes to subscribe at most, and how long it rests if it could not.
const SUBSCRIBE_MAX: Duration = Duration::from_secs(5);
const REST: Duration = Duration::from_secs(5);

/// The buckets whose alarm has gone off.
#[derive(Debug)]
pub(super) struct Alarms {
    rung: Arc<Rung>,
    listener: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Rung {
    buckets: Mutex<BucketSet>,
    stirred: Notify,
}

impl Alarms {
    /// Listens to these servers.
    pub(super) fn new(servers: Servers) -> Self {
        let rung = Arc::new(Rung::default());
        let listener = tokio::spawn(listen_for_ever(servers, Arc::clone(&rung)));
        Self { rung, listener }
    }

    /// The buckets whose alarm has gone off since the last call, once there is one.
    pub(super) async fn rung(&self) -> BucketSet {
        loop {
            let rung = std::mem::take(&mut *self.rung.buckets.lock());
            if !rung.is_empty() {
                return rung;
            }
            self.rung.stirred.notified().await;
        }
    }
}

impl Drop for Alarms {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn listen_for_ever(servers: Servers, rung: Arc<Rung>) {
    loop {
        match tokio::time::timeout(SUBSCRIBE_MAX, subscribed(&servers)).await {
            Ok(Ok(connections)) if !connections.is_empty() => {
                let heard = connections.into_iter().map(|connection| Box::pin(hear(connection, &rung)));
                // If one ends, or after a while, all are made anew.
                let _ = tokio::time::timeout(LISTEN_MAX, select_all(heard)).await;
            }
            // Whoever needs Redis says why it cannot be reached.
            Ok(_) | Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

/// A connection to each server: in a cluster each tells of its own keys alone.
async fn subscribed(servers: &Servers) -> RedisResult<Vec<PubSub>> {
    let mut connections = servers.pubsubs().await?;
    for connection in &mut connections {
        connection.subscribe(CHANNEL).await?;
    }
    Ok(connections)
}

/// Hears until the connection ends.
async fn hear(connection: PubSub, rung: &Rung) {
    let mut messages = connection.into_on_message();
    while let Some(message) = messages.next().await {
        if let Some(bucket) = bucket_of_alarm(message.get_payload_bytes()) {
            rung.buckets.lock().insert(bucket);
            rung.stirred.notify_one();
        }
    }
}
