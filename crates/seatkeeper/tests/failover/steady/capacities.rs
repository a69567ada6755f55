//! A user of the storm, working on a capacity of their own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use seatkeeper_load::Moment;
use serde_json::Value;

use super::caller::{Caller, Reply};
use super::deeds::Deeds;
use crate::support::capacity::{Capacity, PATH};
use crate::support::scene::text;

/// The interval at which a user on time reads a capacity, which has no heartbeats.
const READING_INTERVAL: Duration = Duration::from_secs(5);

/// A capacity, and the broken promises seen by its user.
pub(super) struct Work {
    pub(super) capacity: Capacity,
    broken: Mutex<Vec<String>>,
}

/// A user of a capacity.
pub(super) struct User {
    pub(super) work: Arc<Work>,
    pub(super) caller: Caller,
}

/// The user's session, with the time of its answer.
struct Session {
    id: Arc<str>,
    path: String,
    answered: Moment,
}

impl Work {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { capacity, broken: Mutex::new(Vec::new()) }
    }

    pub(super) fn kept_its_promises(&self) {
        let broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(broken.is_empty(), "{broken:#?}");
    }

    /// Forgets every earlier answer.
    pub(super) fn forget(&self) {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn broken(&self, what: String) {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).push(what);
    }
}

impl User {
    /// Takes, reads and releases the capacity until the storm is over.
    pub(super) async fn play(mut self) -> Deeds {
        let mut deeds = Deeds::new(None, &self.work.capacity.pool(), "released");
        while !self.caller.storm.is_over() {
            let session = self.take(&mut deeds).await;
            if self.look(&session).await {
                self.give_back(&session, &mut deeds).await;
            }
            self.caller.rest().await;
        }
        deeds
    }

    async fn take(&mut self, deeds: &mut Deeds) -> Session {
        let Reply { answer, asked, first_asked, .. } =
            self.caller.ask(Method::PUT, PATH, Some(&self.work.capacity.ask(1))).await;
        assert!([200, 201].contains(&answer.status), "{}: {:#}", answer.status, answer.body);
        self.caller.pulse.admitted(first_asked);
        let id: Arc<str> = text(&answer.body["sessionId"]).into();
        deeds.admitted(&id, asked.answered);
        Session { path: format!("{PATH}/{id}"), id, answered: asked.answered }
    }

    /// Reads the session a few times, in place of heartbeats, which capacities do not have. Returns whether
    /// the session is live.
    async fn look(&mut self, session: &Session) -> bool {
        for _ in 0..self.caller.heartbeats() {
            self.caller.rest_until_heartbeat(READING_INTERVAL).await;
            if self.caller.goes() {
                break;
            }
            let Reply { answer, first_asked, .. } = self.caller.ask(Method::GET, &session.path, None).await;
            if (answer.status, &answer.body["isActive"]) != (200, &Value::Bool(true)) {
                self.missed(session, &format!("{}: {:#}", answer.status, answer.body));
                return false;
            }
            self.caller.pulse.renewed(first_asked);
        }
        true
    }

    async fn give_back(&mut self, session: &Session, deeds: &mut Deeds) {
        self.caller.rest().await;
        let Reply { answer, asked, is_repeated, .. } =
            self.caller.ask(Method::DELETE, &session.path, None).await;
        match answer.status {
            204 => deeds.released(&session.id, asked.answered),
            // The first attempt may have released the session, with its answer lost.
            404 if is_repeated => {}
            status => self.missed(session, &format!("{status}: {:#}", answer.body)),
        }
    }

    fn missed(&self, session: &Session, told: &str) {
        if !self.caller.storm.may_forget(session.answered) {
            self.work.broken(format!(
                "{} is told that it has not {}: {told}",
                self.work.capacity.pool(),
                session.id
            ));
        }
    }
}
