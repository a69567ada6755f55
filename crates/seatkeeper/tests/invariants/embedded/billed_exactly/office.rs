//! A server in this process with a manual clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_registry::ManualClock;
use seatkeeper_server::auth::{TokenRequest, mint};
use seatkeeper_server::{Running, Settings, start_with_clock};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;

use super::lives::TENANTS;
use crate::harness::{Answer, Client};

/// The longest time that a capacity can be held.
pub(super) const TERM: Span = Span::from_secs(30 * 24 * 3_600);

/// A time in 2033, so that the machine's own clock is behind.
const START: RegistryTime = RegistryTime::from_millis(2_000_000_000_123);

/// Time limit for a run of a job.
const RUN_MAX: Duration = Duration::from_secs(60);

pub(super) struct Office {
    _dir: TempDir,
    settings: Settings,
    clock: Arc<ManualClock>,
    now: RegistryTime,
    server: Option<Server>,
    pub(super) clients: Vec<Client>,
}

struct Server {
    runtime: Runtime,
    stop: CancellationToken,
    running: Running,
}

impl Office {
    pub(super) async fn open(sink_url: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let mut settings = Settings::default();
        settings.ledger.data_dir = dir.path().to_owned();
        settings.ledger.commit_timeout_milliseconds = 60_000;
        settings.server.listen = ([127, 0, 0, 1], 0).into();
        settings.usage.sink_url = Some(sink_url.to_owned());
        settings.limits.capacities_acquires_per_minute = 0;
        settings.usage.sink_timeout_seconds = 1;
        settings.usage.batch_records = 200;
        // Emissions run only when the test asks for a run.
        settings.usage.emission_interval_seconds = 86_400;
        let clock = Arc::new(ManualClock::at(START));
        let mut office = Self { _dir: dir, settings, clock, now: START, server: None, clients: Vec::new() };
        office.start().await;
        office
    }

    pub(super) fn now(&self) -> RegistryTime {
        self.now
    }

    pub(super) fn pass(&mut self, span: Span) {
        self.now = self.now + span;
        self.clock.set(self.now);
    }

    /// Restarts the server, after a graceful shutdown or in the middle of its work.
    pub(super) async fn restart(&mut self, politely: bool) {
        // A server runs the job every ten minutes and records trusted time: the time until now is no outage.
        self.run("housekeeping").await;
        let Server { runtime, stop, running } = self.server.take().expect("a server");
        if politely {
            stop.cancel();
            running.finished().await;
        } else {
            drop(running);
        }
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(RUN_MAX)).await.expect("an end");
        // Locks of jobs that the old server held expire.
        self.pass(Span::from_secs(120));
        self.start().await;
    }

    async fn start(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (stop, settings, clock) = (CancellationToken::new(), self.settings.clone(), self.clock.clone());
        let started = runtime.spawn(start_with_clock(settings, stop.clone(), clock));
        let running = started.await.expect("a task").expect("a server");
        let url = format!("http://{}", running.addr);
        let client = |tenant: &String| Client::new(&url, self.token(tenant));
        self.clients = TENANTS.iter().map(|tenant| client(&tenant.to_string())).collect();
        self.server = Some(Server { runtime, stop, running });
    }

    fn token(&self, tenant: &str) -> String {
        let (user, scopes) = ("ops".to_owned(), "admin".to_owned());
        let request =
            TokenRequest { tenant: tenant.to_owned(), user, scopes, ttl: Duration::from_secs(36_000) };
        mint(&self.settings, &request).expect("a token")
    }

    pub(super) async fn close(mut self) {
        let Server { runtime, stop, running } = self.server.take().expect("a server");
        stop.cancel();
        running.finished().await;
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(RUN_MAX)).await.expect("an end");
    }

    /// Requests a run of a job, and waits for the end of a run that began after the request.
    pub(super) async fn run(&self, job: &str) {
        let (client, path) = (&self.clients[0], format!("/api/v1/admin/jobs/{job}"));
        let newest = async || {
            let runs = client.get(&format!("{path}/runs?limit=1")).await.expect(200);
            runs["items"][0].clone()
        };
        let before = newest().await;
        let wanted = before["fencing_token"].as_u64().unwrap_or_default() + 1;
        client.post(&format!("{path}/run"), json!({})).await.expect(202);
        let asked = Instant::now();
        loop {
            let run = newest().await;
            if run["fencing_token"].as_u64() >= Some(wanted) && run["outcome"] != "running" {
                return;
            }
            assert!(asked.elapsed() < RUN_MAX, "{job} does not run: {run}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Returns true if a batch still waits for delivery.
    pub(super) async fn undelivered(&self) -> bool {
        for client in &self.clients {
            let pending = client.get("/api/v1/admin/usage/batches?state=pending&limit=1").await.expect(200);
            if pending["items"] != json!([]) {
                return true;
            }
        }
        false
    }

    /// Checks that the server's own reconciliation agrees.
    pub(super) async fn reconciled(&self) {
        for client in &self.clients {
            let span = "from=2030-01-01T00:00:00Z&to=2040-01-01T00:00:00Z";
            let path = format!("/api/v1/admin/usage/reconciliation?{span}");
            let books = client.get(&path).await.expect(200);
            assert_eq!(books["agrees"], Value::Bool(true), "{books:#}");
        }
    }

    /// Sends a request as a tenant's admin.
    pub(super) async fn ask(&self, tenant: usize, method: Method, path: &str, body: Option<Value>) -> Answer {
        self.clients[tenant].send(method, path, body).await
    }
}
