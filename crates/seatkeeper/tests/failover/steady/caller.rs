//! A client of the storm. Retries each request until an answer comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Method;
use seatkeeper_load::{Moment, RequestSpan, Stopwatch};
use serde_json::Value;

use super::pulse::Pulse;
use crate::harness::{Answer, Client};
use crate::support::dice::Dice;
use crate::support::knobs;

/// The most heartbeats of a session before its release.
const HEARTBEATS_MAX: u64 = 8;

/// The longest rest of a client between two requests, divided by the shortest.
const REST_RANGE: u64 = 10;

/// The longest time until a resting client notices the end of the storm.
const NOTICE_MAX: Duration = Duration::from_millis(100);

/// The pause before a retry, after a 503 or no answer. Tests beside the storm share the machine with the
/// retries.
pub(super) const AGAIN: Duration = Duration::from_millis(200);

/// The state shared by all clients of a storm.
#[derive(Debug)]
pub(super) struct Storm {
    stopwatch: Stopwatch,
    over: AtomicBool,
    /// The instant of the last loss of confirmed records.
    forgotten: Mutex<Option<Moment>>,
}

/// A client's way of using sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Habit {
    /// Takes, keeps and releases one session after another.
    ComesAndGoes,
    /// Keeps the first session until the storm is over, with several heartbeats a second.
    Stays,
    /// Keeps the first session until the storm is over, with heartbeats at the server's interval, as the SDKs
    /// send them.
    IsOnTime,
}

/// A client with dice, and with the pulse of the client's kind.
pub(super) struct Caller {
    pub(super) storm: Arc<Storm>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) client: Client,
    pub(super) dice: Dice,
    pub(super) habit: Habit,
}

/// An answer other than 503, to a request that may have been sent several times.
pub(super) struct Reply {
    pub(super) answer: Answer,
    pub(super) asked: RequestSpan,
    /// The instant of the first attempt.
    pub(super) first_asked: Instant,
    /// The request was sent before, and an earlier attempt may have taken effect.
    pub(super) is_repeated: bool,
    /// An earlier attempt timed out and may still be in progress.
    pub(super) was_unanswered: bool,
}

impl Storm {
    pub(super) fn new() -> Self {
        Self { stopwatch: Stopwatch::start(), over: AtomicBool::new(false), forgotten: Mutex::new(None) }
    }

    pub(super) fn now(&self) -> Moment {
        self.stopwatch.now()
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn calm_down(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Notes that every answer so far may be lost.
    pub(super) fn forgets(&self) {
        *self.forgotten.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.now());
    }

    /// Returns the instant of the last loss, if any.
    pub(super) fn forgotten(&self) -> Option<Moment> {
        *self.forgotten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether an answer given at this instant may be lost.
    pub(super) fn may_forget(&self, answered: Moment) -> bool {
        self.forgotten().is_some_and(|until| answered <= until)
    }
}

impl Caller {
    /// Sends a request, and retries until the answer is no 503.
    pub(super) async fn ask(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        let (first_asked, mut is_repeated, mut was_unanswered) = (Instant::now(), false, false);
        let request = self.pulse.requests.begin();
        loop {
            let sent = self.storm.now();
            let answer = self.client.try_send(method.clone(), path, body.cloned()).await;
            let asked = RequestSpan { sent, answered: self.storm.now() };
            match answer {
                Ok(answer) if answer.status != 503 => {
                    self.pulse.requests.answered(request);
                    return Reply { answer, asked, first_asked, is_repeated, was_unanswered };
                }
                Ok(_) => {}
                Err(_) => was_unanswered = true,
            }
            is_repeated = true;
            tokio::time::sleep(AGAIN).await;
            self.pulse.requests.again(request);
        }
    }

    pub(super) async fn rest(&mut self) {
        let most = knobs::rest_millis_max();
        let least = most / REST_RANGE;
        tokio::time::sleep(Duration::from_millis(least + self.dice.below(most - least))).await;
    }

    /// Waits until the next heartbeat is due, or until the storm is over. `interval` is the server's interval.
    pub(super) async fn rest_until_heartbeat(&mut self, interval: Duration) {
        if self.habit != Habit::IsOnTime {
            return self.rest().await;
        }
        let due = Instant::now() + interval;
        while !self.storm.is_over() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            tokio::time::sleep(left.min(NOTICE_MAX)).await;
        }
    }

    /// Draws the number of a session's heartbeats.
    pub(super) fn heartbeats(&mut self) -> u64 {
        if self.habit == Habit::ComesAndGoes { self.dice.below(HEARTBEATS_MAX) } else { u64::MAX }
    }

    /// Returns whether a staying session may be released.
    pub(super) fn goes(&self) -> bool {
        self.habit != Habit::ComesAndGoes && self.storm.is_over()
    }
}
