//! A machine of the storm, and what all machines of a license saw.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use seatkeeper_load::{Asked, Checker, Denial, Grant, How, Stopwatch};
use serde_json::{Value, json};

use crate::house::{Answer, Client};
use crate::support::books::Books;
use crate::support::dice::Dice;
use crate::support::scene::License;

/// The most heartbeats of a session before it is given back.
const HEARTBEATS_MAX: u64 = 8;

/// How long a machine rests between two requests, in milliseconds.
const REST_MILLIS: (u64, u64) = (20, 200);

/// How soon it asks again where it was not told.
const AGAIN: Duration = Duration::from_millis(50);

/// A license, and what its machines saw.
pub(super) struct Pool {
    pub(super) license: License,
    stopwatch: Stopwatch,
    checker: Mutex<Checker>,
}

/// A machine.
pub(super) struct Holder {
    pub(super) name: Arc<str>,
    pub(super) pool: Arc<Pool>,
    pub(super) client: Client,
    pub(super) dice: Dice,
    pub(super) over: Arc<AtomicBool>,
    pub(super) admissions: Arc<AtomicU64>,
}

/// What one machine was answered.
#[derive(Debug)]
pub(super) struct Deeds {
    machine: Arc<str>,
    license: String,
    admitted: Vec<Arc<str>>,
    released: Vec<Arc<str>>,
}

impl Pool {
    pub(super) fn new(license: License, stopwatch: Stopwatch) -> Self {
        let checker = Mutex::new(Checker::new(license.id.as_str()));
        Self { license, stopwatch, checker }
    }

    pub(super) fn kept_its_promises(&self) {
        let checker = self.checker();
        let told: Vec<_> = checker.violations().first().iter().map(ToString::to_string).collect();
        assert_eq!(checker.violations().count(), 0, "{told:#?}");
    }

    fn checker(&self) -> MutexGuard<'_, Checker> {
        self.checker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder {
    /// Takes, keeps and gives back a seat until the storm is over.
    pub(super) async fn play(mut self) -> Deeds {
        let (machine, license) = (Arc::clone(&self.name), self.pool.license.id.clone());
        let mut deeds = Deeds { machine, license, admitted: Vec::new(), released: Vec::new() };
        while !self.over.load(Ordering::Relaxed) {
            if let Some(session) = self.acquire().await {
                deeds.admitted.push(Arc::clone(&session));
                if self.keep(&session).await && self.release(&session).await {
                    deeds.released.push(session);
                }
            }
            self.rest().await;
        }
        deeds
    }

    async fn acquire(&mut self) -> Option<Arc<str>> {
        let ask = json!({ "license_key": self.pool.license.key, "machine_id": &*self.name });
        let (answer, asked, _) = self.told(Method::POST, "/api/v1/licenses/acquire", Some(&ask)).await;
        match answer.status {
            200 | 201 => {
                let grant: Grant = serde_json::from_value(answer.body).expect("a grant");
                self.pool.checker().granted(&self.name, &grant, asked);
                self.admissions.fetch_add(u64::from(grant.how == How::Acquired), Ordering::Relaxed);
                Some(grant.session_id)
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

    /// Says whether the session still lives.
    async fn keep(&mut self, session: &Arc<str>) -> bool {
        for _ in 0..self.dice.below(HEARTBEATS_MAX) {
            self.rest().await;
            let path = format!("/api/v1/licenses/sessions/{session}/heartbeat");
            let (answer, asked, _) = self.told(Method::PATCH, &path, None).await;
            match answer.status {
                200 => {
                    let seconds = answer.body["expires_in_seconds"].as_u64().expect("a span");
                    self.pool.checker().renewed(&self.name, session, seconds, asked);
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

    /// Says whether it was told that it gave the session back.
    async fn release(&mut self, session: &Arc<str>) -> bool {
        self.rest().await;
        let until = self.pool.checker().releasing(session);
        let path = format!("/api/v1/licenses/sessions/{session}");
        let (answer, asked, asked_before) = self.told(Method::DELETE, &path, None).await;
        match answer.status {
            204 => true,
            // An answer that was lost may have done it.
            404 if asked_before => false,
            404 => {
                self.pool.checker().release_missed(session, until, asked);
                false
            }
            status => panic!("{} gave back and was told {status}: {:#}", self.name, answer.body),
        }
    }

    /// Asks until it is told. Says as well when the answer's request was sent, and whether it was not the first.
    async fn told(&self, method: Method, path: &str, body: Option<&Value>) -> (Answer, Asked, bool) {
        let mut asked_before = false;
        loop {
            let sent = self.pool.stopwatch.now();
            let answer = self.client.try_send(method.clone(), path, body.cloned()).await;
            let asked = Asked { sent, answered: self.pool.stopwatch.now() };
            match answer {
                Ok(answer) if answer.status != 503 => return (answer, asked, asked_before),
                Ok(_) | Err(_) => {}
            }
            asked_before = true;
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn rest(&mut self) {
        let (least, most) = REST_MILLIS;
        tokio::time::sleep(Duration::from_millis(least + self.dice.below(most - least))).await;
    }
}

impl Deeds {
    /// Fails the test unless all that was answered is on record. Gives how many admissions that were.
    pub(super) fn are_on_record(&self, books: &Books) -> usize {
        for session in &self.admitted {
            let story = books.story(session);
            assert_eq!((story.holder.as_str(), &story.pool), (&*self.machine, &self.license));
        }
        for session in &self.released {
            assert_eq!(books.story(session).reason(), Some("released"), "{session} of {}", self.machine);
        }
        self.admitted.len()
    }
}
