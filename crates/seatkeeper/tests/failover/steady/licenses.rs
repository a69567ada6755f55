//! A machine of the storm, and the observations of a license's machines.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use seatkeeper_load::{Checker, Denial, Grant};
use serde_json::json;

use super::caller::{Caller, Reply};
use super::deeds::Deeds;
use crate::failover::support::answered;
use crate::harness::Client;
use crate::support::scene::License;

/// A license, and the observations of its machines.
pub(super) struct Pool {
    pub(super) license: License,
    checker: Mutex<Checker>,
}

/// A machine that uses a license.
pub(super) struct Machine {
    pub(super) name: Arc<str>,
    pub(super) pool: Arc<Pool>,
    pub(super) caller: Caller,
}

/// Creates a license. A busy machine may answer 503 while another storm runs: the request is retried.
pub(super) async fn make_license(admin: &Client, seats: u32, ttl_seconds: u64) -> License {
    let ask = json!({ "max_seats": seats, "ttl_seconds": ttl_seconds });
    let made = answered(async || admin.post("/api/v1/admin/licenses", ask.clone()).await).await;
    License::from_answer(&made.expect(201), seats)
}

impl Pool {
    pub(super) fn new(license: License) -> Self {
        let checker = Mutex::new(Checker::new(license.id.as_str()));
        Self { license, checker }
    }

    pub(super) fn kept_its_promises(&self) {
        let checker = self.checker();
        let told: Vec<_> = checker.violations().first().iter().map(ToString::to_string).collect();
        assert_eq!(checker.violations().count(), 0, "{told:#?}");
    }

    /// Forgets every earlier answer.
    pub(super) fn forget(&self) {
        self.checker().forget_all();
    }

    fn checker(&self) -> MutexGuard<'_, Checker> {
        self.checker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Machine {
    /// Takes, keeps and releases a seat until the storm is over.
    pub(super) async fn play(mut self) -> Deeds {
        let mut deeds = Deeds::new(Some(Arc::clone(&self.name)), &self.pool.license.id, "released");
        while !self.caller.storm.is_over() {
            if let Some(grant) = self.acquire(&mut deeds).await
                && self.keep(&grant).await
            {
                self.release(&grant.session_id, &mut deeds).await;
            }
            self.caller.rest().await;
        }
        deeds
    }

    async fn acquire(&mut self, deeds: &mut Deeds) -> Option<Grant> {
        let ask = json!({ "license_key": self.pool.license.key, "machine_id": &*self.name });
        let Reply { answer, asked, first_asked, .. } =
            self.caller.ask(Method::POST, "/api/v1/licenses/acquire", Some(&ask)).await;
        match answer.status {
            200 | 201 => {
                let grant: Grant = serde_json::from_value(answer.body).expect("a grant");
                self.pool.checker().granted(&self.name, &grant, asked);
                self.caller.pulse.admitted(first_asked);
                deeds.admitted(&grant.session_id, asked.answered);
                Some(grant)
            }
            403 => {
                let header =
                    answer.headers.get("retry-after").and_then(|text| text.to_str().ok()?.parse().ok());
                let denial: Denial = serde_json::from_value(answer.body).expect("a denial");
                let denial = Denial { retry_after_header: header, ..denial };
                self.pool.checker().denied(&self.name, &denial, asked);
                None
            }
            status => panic!("{} asked for a seat and was told {status}: {:#}", self.name, answer.body),
        }
    }

    /// Renews the session a few times. Returns whether the session is live.
    async fn keep(&mut self, grant: &Grant) -> bool {
        let session = &grant.session_id;
        let interval = Duration::from_secs(grant.heartbeat_interval_seconds);
        for _ in 0..self.caller.heartbeats() {
            self.caller.rest_until_heartbeat(interval).await;
            if self.caller.goes() {
                break;
            }
            let path = format!("/api/v1/licenses/sessions/{session}/heartbeat");
            let Reply { answer, asked, first_asked, .. } = self.caller.ask(Method::PATCH, &path, None).await;
            match answer.status {
                200 => {
                    let seconds = answer.body["expires_in_seconds"].as_u64().expect("a span");
                    self.pool.checker().renewed(&self.name, session, seconds, asked);
                    self.caller.pulse.renewed(first_asked);
                }
                404 | 410 => {
                    println!("{} lost {session}: {}", self.name, answer.body);
                    self.pool.checker().lost(session, asked);
                    return false;
                }
                status => panic!("{} renewed and was told {status}: {:#}", self.name, answer.body),
            }
        }
        true
    }

    async fn release(&mut self, session: &Arc<str>, deeds: &mut Deeds) {
        self.caller.rest().await;
        let until = self.pool.checker().releasing(session);
        let path = format!("/api/v1/licenses/sessions/{session}");
        let Reply { answer, asked, is_repeated, .. } = self.caller.ask(Method::DELETE, &path, None).await;
        match answer.status {
            204 => deeds.released(session, asked.answered),
            // The first attempt may have released the session, with its answer lost.
            404 if is_repeated => {}
            404 => self.pool.checker().release_missed(session, until, asked),
            status => panic!("{} gave back and was told {status}: {:#}", self.name, answer.body),
        }
    }
}
