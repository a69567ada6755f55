//! A small license server in memory, correct or with a chosen fault.
#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::http::{StatusCode, header::RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, patch, post};
use axum::{Json, Router};
use seatkeeper_load::Target;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

/// The promise broken by the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    AdmitsOneTooMany,
    ForgetsHeartbeats,
    DeniesHolders,
    GivesEachRequestASeat,
    LosesReleasedSeats,
}

pub(crate) struct FakeServer {
    pub(crate) address: String,
    serving: AbortHandle,
}

impl FakeServer {
    /// Starts a server of licenses named `seats:ttl_seconds:anything`.
    pub(crate) async fn start(fault: Fault) -> Self {
        let state = Arc::new(Licenses { fault, pools: Mutex::default() });
        let app = Router::new()
            .route("/api/v1/licenses/acquire", post(acquire))
            .route("/api/v1/licenses/sessions/{id}/heartbeat", patch(heartbeat))
            .route("/api/v1/licenses/sessions/{id}", delete(release))
            .with_state(state);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, serving: serving.abort_handle() }
    }

    pub(crate) fn target(&self) -> Target {
        Target::new(&self.address, Some("token")).unwrap()
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

struct Licenses {
    fault: Fault,
    pools: Mutex<HashMap<String, Pool>>,
}

struct Pool {
    seats: usize,
    ttl: Duration,
    sessions: HashMap<String, Session>,
}

struct Session {
    machine: String,
    until: Instant,
}

impl Pool {
    fn named(key: &str) -> Self {
        let mut parts = key.split(':');
        let mut number = || parts.next().unwrap().parse().unwrap();
        let (seats, ttl) = (number(), number());
        Self { seats, ttl: Duration::from_secs(ttl as u64), sessions: HashMap::new() }
    }

    fn expire(&mut self) {
        let now = Instant::now();
        self.sessions.retain(|_, session| session.until > now);
    }

    fn granted(&mut self, id: &str, machine: &str, how: &str) -> Value {
        let session = Session { machine: machine.to_owned(), until: Instant::now() + self.ttl };
        self.sessions.insert(id.to_owned(), session);
        let used = self.sessions.len().min(self.seats);
        json!({
            "session_id": id, "status": how, "seats_used": used, "seats_remaining": self.seats - used,
            "seats_total": self.seats, "expires_in_seconds": self.ttl.as_secs(),
            "heartbeat_interval_seconds": 1,
        })
    }
}

async fn acquire(State(licenses): State<Arc<Licenses>>, Json(ask): Json<Value>) -> Response {
    let (key, machine) = (ask["license_key"].as_str().unwrap(), ask["machine_id"].as_str().unwrap());
    let fault = licenses.fault;
    let mut pools = licenses.pools.lock().unwrap();
    let pool = pools.entry(key.to_owned()).or_insert_with(|| Pool::named(key));
    pool.expire();
    let own = pool.sessions.iter().find(|(_, session)| session.machine == machine).map(|(id, _)| id.clone());
    let full = pool.sessions.len() >= pool.seats + usize::from(fault == Fault::AdmitsOneTooMany);
    match own {
        Some(id) if fault != Fault::GivesEachRequestASeat && !(full && fault == Fault::DeniesHolders) => {
            Json(pool.granted(&id, machine, "resumed")).into_response()
        }
        _ if full => denied(pool.seats),
        _ => {
            let id = uuid::Uuid::new_v4().to_string();
            (StatusCode::CREATED, Json(pool.granted(&id, machine, "acquired"))).into_response()
        }
    }
}

fn denied(seats: usize) -> Response {
    let body = json!({
        "error": "All license seats are currently in use", "seats_available": 0, "seats_total": seats,
        "retry_after_seconds": 1,
    });
    (StatusCode::FORBIDDEN, [(RETRY_AFTER, "1")], Json(body)).into_response()
}

async fn heartbeat(State(licenses): State<Arc<Licenses>>, Path(id): Path<String>) -> Response {
    let mut pools = licenses.pools.lock().unwrap();
    for pool in pools.values_mut() {
        pool.expire();
        let ttl = pool.ttl;
        let Some(session) = pool.sessions.get_mut(&id) else { continue };
        if licenses.fault != Fault::ForgetsHeartbeats {
            session.until = Instant::now() + ttl;
        }
        return Json(json!({"session_id": id, "expires_in_seconds": ttl.as_secs()})).into_response();
    }
    (StatusCode::GONE, Json(json!({"error": "Session has ended", "reason": "expired"}))).into_response()
}

async fn release(State(licenses): State<Arc<Licenses>>, Path(id): Path<String>) -> StatusCode {
    let mut pools = licenses.pools.lock().unwrap();
    for pool in pools.values_mut() {
        pool.expire();
        let Some(session) = pool.sessions.get_mut(&id) else { continue };
        if licenses.fault == Fault::LosesReleasedSeats {
            session.machine.push_str(" (lost)");
            session.until = Instant::now() + Duration::from_secs(3_600);
        } else {
            pool.sessions.remove(&id);
        }
        return StatusCode::NO_CONTENT;
    }
    StatusCode::NOT_FOUND
}
