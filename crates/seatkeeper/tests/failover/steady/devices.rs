//! A device of the storm, and the observations of a subscriber's devices.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use seatkeeper_load::{Grant, Moment, Witness};
use serde_json::json;

use super::caller::{Caller, Reply};
use super::deeds::Deeds;
use crate::failover::support::{Nodes, answered};
use crate::harness::Client;

pub(super) const PATH: &str = "/api/v1/devices/sessions";

/// The longest delay after which an unanswered claim, held up in a frozen node, may supersede a later claim.
const LATE_CLAIM_MAX: Duration = Duration::from_secs(60);

/// A subscriber, and the observations of their devices. The plan denies and never evicts.
pub(super) struct Screens {
    pub(super) user: String,
    pub(super) limit: u32,
    pub(super) client: Client,
    witness: Mutex<Witness>,
}

/// A device of a subscriber.
pub(super) struct Device {
    pub(super) name: Arc<str>,
    pub(super) screens: Arc<Screens>,
    pub(super) caller: Caller,
    pub(super) last_unanswered: Option<Moment>,
}

impl Screens {
    pub(super) async fn make(nodes: &Nodes, user: &str, limit: u32) -> Self {
        let harness = &nodes.harnesses[0];
        let (admin, plan) = (harness.admin(), format!("plan-of-{user}"));
        let ask = json!({ "name": plan, "device_limit": limit, "when_full": "deny" });
        make(&admin, "/api/v1/admin/plans", ask).await;
        make(&admin, "/api/v1/admin/subscriptions", json!({ "user": user, "plan": plan })).await;
        let witness = Mutex::new(Witness::new(user));
        Self { user: user.to_owned(), limit, client: Client::at(nodes.doors(), harness.token(user)), witness }
    }

    pub(super) fn kept_their_promises(&self) {
        let violations = self.witness().clone().verdict();
        let told: Vec<_> = violations.first().iter().map(ToString::to_string).collect();
        assert_eq!(violations.count(), 0, "{told:#?}");
    }

    /// Forgets every earlier answer.
    pub(super) fn forget(&self) {
        *self.witness() = Witness::new(self.user.as_str());
    }

    fn witness(&self) -> MutexGuard<'_, Witness> {
        self.witness.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a plan or a subscription. A retry after a 503 may find it created.
async fn make(admin: &Client, path: &str, ask: serde_json::Value) {
    let made = answered(async || admin.post(path, ask.clone()).await).await;
    assert!([201, 409].contains(&made.status), "{:#}", made.body);
}

impl Device {
    /// Takes, keeps and releases a screen until the storm is over.
    pub(super) async fn play(mut self) -> Deeds {
        let mut deeds = Deeds::new(None, &self.screens.user, "revoked");
        while !self.caller.storm.is_over() {
            if let Some(grant) = self.acquire(&mut deeds).await
                && self.keep(&grant, &deeds).await
            {
                self.release(&grant.session_id, &mut deeds).await;
            }
            self.caller.rest().await;
        }
        deeds
    }

    async fn acquire(&mut self, deeds: &mut Deeds) -> Option<Grant> {
        let ask = json!({ "device_id": &*self.name, "device_type": "tv" });
        let Reply { answer, asked, first_asked, was_unanswered, .. } =
            self.caller.ask(Method::POST, PATH, Some(&ask)).await;
        if was_unanswered {
            self.last_unanswered = Some(asked.answered);
        }
        match answer.status {
            201 => {
                let grant: Grant = serde_json::from_value(answer.body).expect("a grant");
                self.screens.witness().granted(&self.name, &grant, None, asked);
                self.caller.pulse.admitted(first_asked);
                deeds.admitted(&grant.session_id, asked.answered);
                if self.last_unanswered.is_some_and(|at| asked.answered.since(at) < LATE_CLAIM_MAX) {
                    deeds.contestable.insert(Arc::clone(&grant.session_id));
                }
                Some(grant)
            }
            403 => {
                self.screens.witness().denied(&self.name, asked);
                None
            }
            status => panic!("{} asked for a screen and was told {status}: {:#}", self.name, answer.body),
        }
    }

    /// Renews the session a few times. Returns whether the session is live.
    async fn keep(&mut self, grant: &Grant, deeds: &Deeds) -> bool {
        let (session, seconds) = (&grant.session_id, grant.expires_in_seconds);
        let interval = Duration::from_secs(grant.heartbeat_interval_seconds);
        for _ in 0..self.caller.heartbeats() {
            self.caller.rest_until_heartbeat(interval).await;
            if self.caller.goes() {
                break;
            }
            let ask = json!({ "session_id": &**session });
            let path = format!("{PATH}/heartbeat");
            let Reply { answer, asked, first_asked, .. } =
                self.caller.ask(Method::POST, &path, Some(&ask)).await;
            match answer.status {
                204 => {
                    self.screens.witness().renewed(&self.name, session, seconds, asked);
                    self.caller.pulse.renewed(first_asked);
                }
                410 if answer.body["reason"] == "superseded" && deeds.contestable.contains(session) => {
                    self.screens.witness().over(session, None, asked);
                    return false;
                }
                404 | 410 => {
                    println!("{} lost {session}: {}", self.name, answer.body);
                    // Only time may end the session, whatever the reason in the answer.
                    self.screens.witness().over(session, Some("expired"), asked);
                    return false;
                }
                status => panic!("{} renewed and was told {status}: {:#}", self.name, answer.body),
            }
        }
        true
    }

    async fn release(&mut self, session: &Arc<str>, deeds: &mut Deeds) {
        self.caller.rest().await;
        let path = format!("{PATH}/{session}");
        let Reply { answer, asked, is_repeated, .. } = self.caller.ask(Method::DELETE, &path, None).await;
        match answer.status {
            204 => {
                self.screens.witness().ended(session, asked);
                deeds.released(session, asked.answered);
            }
            // The first attempt may have released the session, with its answer lost.
            404 if is_repeated || deeds.contestable.contains(session) => {
                self.screens.witness().over(session, None, asked);
            }
            404 => self.screens.witness().over(session, Some("expired"), asked),
            status => panic!("{} gave back and was told {status}: {:#}", self.name, answer.body),
        }
    }
}
