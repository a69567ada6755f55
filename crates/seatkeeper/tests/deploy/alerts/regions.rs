//! Alerts about other regions, by a region whose only peer is a program of the test.

use std::net::SocketAddr;
use std::time::Duration;

use seatkeeper_core::{Bucket, Region, RegistryTime, SessionId};
use seatkeeper_server::auth::{TokenRequest, mint};
use seatkeeper_server::{HeartbeatForwarding, PeerSettings, Settings, start};
use serde_json::json;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::deploy::prometheus::Prometheus;
use crate::harness::{Client, write_ed25519_key};

pub(super) const ALERTS: [&str; 3] =
    ["SeatkeeperRegionSlow", "SeatkeeperRegionBatchesFail", "SeatkeeperRegionUnavailable"];

/// The time of the peer for an answer: more than the alert allows.
const SLOW: Duration = Duration::from_millis(1_500);

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_is_slow_knows_no_batches_and_is_then_gone() {
    let dir = tempfile::tempdir().expect("a directory");
    let (peer, stop_peer) = start_peer().await;
    let settings = settings_of(&dir, peer);
    let stop = CancellationToken::new();
    let running = start(settings.clone(), stop.clone()).await.expect("a region that starts");
    let request = TokenRequest {
        tenant: "acme".to_owned(),
        user: "ann".to_owned(),
        scopes: String::new(),
        ttl: Duration::from_secs(3_600),
    };
    let url = format!("http://{}", running.addr);
    let ann = Client::new(&url, mint(&settings, &request).expect("a token"));
    let mut prometheus = Prometheus::watching(&url).await;
    let [slow, batches, unavailable] = ALERTS;

    let session = SessionId::mint(
        RegistryTime::from_millis(1),
        Bucket::all().next().expect("a bucket"),
        Region::new(1),
        1,
    );
    let session = json!(session.as_uuid());
    prometheus.fires(&[slow, batches], async || drop(ann.heartbeat(&session).await)).await;
    stop_peer.cancel();
    let ask = async || {
        ann.acquire(&json!("ABC"), "machine").await.expect(503);
    };
    prometheus.fires(&[unavailable], ask).await;
    stop.cancel();
    running.finished().await;
}

/// Starts a peer that answers every request with an empty object.
async fn start_peer() -> (SocketAddr, CancellationToken) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("an address");
    let answer = async || {
        tokio::time::sleep(SLOW).await;
        axum::Json(json!({}))
    };
    let router = axum::Router::new().fallback(answer);
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            served = axum::serve(listener, router) => served.expect("a peer that serves"),
            () = stopped.cancelled() => {}
        }
    });
    (address, stop)
}

fn settings_of(dir: &TempDir, peer: SocketAddr) -> Settings {
    let path = |name: &str| dir.path().join(name);
    write_ed25519_key(&path("us.pem"));
    let mut settings = Settings::default();
    settings.server.listen = "127.0.0.1:0".parse().expect("an address");
    settings.ledger.data_dir = path("data");
    settings.metrics.refresh_seconds = 1;
    settings.limits.licenses_heartbeats_per_minute = 0;
    settings.limits.licenses_acquires_per_minute = 0;
    settings.region.number = 2;
    settings.region.name = "us".to_owned();
    settings.region.anchor = Some(1);
    settings.region.key_file = Some(path("us.pem"));
    settings.region.heartbeats = HeartbeatForwarding::Batched;
    settings.region.peers.push(PeerSettings {
        number: 1,
        name: "eu".to_owned(),
        url: format!("http://{peer}"),
        // The peer sends no request, and its key is never used.
        public_key_file: path("us.pem"),
    });
    settings
}
