//! A machine that takes, keeps and releases a seat, and remembers the answers.

use serde_json::Value;

use super::dice::Dice;
use super::scene::{License, text};
use crate::harness::{Answer, Client};

/// The machine's knowledge of its seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    /// The machine has no seat.
    None,
    /// A claim was sent, without an answer.
    Asked,
    /// A claim was answered with this session.
    Held(String),
    /// A release of this session was sent, without an answer.
    Leaving(String),
}

/// A machine with its history of answers.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) license: License,
    pub(crate) seat: Seat,
    /// Sessions from answered claims, in order.
    pub(crate) admitted: Vec<String>,
    /// Sessions from answered releases.
    pub(crate) released: Vec<String>,
    dice: Dice,
}

/// The error of a request to a dead server.
pub(crate) struct NoAnswer;

impl Machine {
    pub(crate) fn new(license: &License, number: u64, seed: u64) -> Self {
        Self {
            name: format!("machine-{number}"),
            license: license.clone(),
            seat: Seat::None,
            admitted: Vec::new(),
            released: Vec::new(),
            dice: Dice::new(seed, number),
        }
    }

    /// Performs one random step. Returns true if the answer changed state or rests on a change.
    pub(crate) async fn turn(&mut self, client: &Client) -> Result<bool, NoAnswer> {
        match (self.seat.clone(), self.dice.below(10)) {
            (Seat::None | Seat::Asked, _) => self.acquire(client).await,
            (Seat::Held(session), 0..3) => self.beat(client, &session).await.map(|()| true),
            (Seat::Held(session), 3..5) => self.resume(client, &session).await.map(|()| true),
            (Seat::Held(session), 5..8) => self.release(client, session).await.map(|()| true),
            (Seat::Held(session), _) => self.release_twice(client, session).await.map(|()| true),
            (Seat::Leaving(session), _) => self.look_whether_gone(client, session).await.map(|()| true),
        }
    }

    async fn acquire(&mut self, client: &Client) -> Result<bool, NoAnswer> {
        self.seat = Seat::Asked;
        let answer = answered(client.try_acquire(&self.license.key, &self.name).await)?;
        match answer.status {
            200 | 201 => {
                let session = text(&answer.body["session_id"]);
                if self.admitted.last() != Some(&session) {
                    self.admitted.push(session.clone());
                }
                self.seat = Seat::Held(session);
                Ok(true)
            }
            403 => {
                self.seat = Seat::None;
                Ok(false)
            }
            _ => panic!("{} asked for a seat and was answered {answer:?}", self.name),
        }
    }

    async fn beat(&mut self, client: &Client, session: &str) -> Result<(), NoAnswer> {
        let answer = answered(client.try_heartbeat(session).await)?;
        assert_eq!(answer.status, 200, "{} holds {session}: {:#}", self.name, answer.body);
        Ok(())
    }

    async fn resume(&mut self, client: &Client, session: &str) -> Result<(), NoAnswer> {
        let answer = answered(client.try_acquire(&self.license.key, &self.name).await)?;
        assert_eq!(answer.status, 200, "{} holds {session}: {:#}", self.name, answer.body);
        assert_eq!(answer.body["session_id"], session, "{} was given another seat", self.name);
        Ok(())
    }

    async fn release(&mut self, client: &Client, session: String) -> Result<(), NoAnswer> {
        self.seat = Seat::Leaving(session.clone());
        let answer = answered(client.try_release(&session).await)?;
        assert_eq!(answer.status, 204, "{} holds {session}: {:#}", self.name, answer.body);
        self.is_rid_of(session);
        Ok(())
    }

    /// Sends a release twice at once. Either answer is enough to know that the seat is free.
    async fn release_twice(&mut self, client: &Client, session: String) -> Result<(), NoAnswer> {
        self.seat = Seat::Leaving(session.clone());
        let (one, other) = tokio::join!(client.try_release(&session), client.try_release(&session));
        let answers = [one, other].into_iter().filter_map(Result::ok);
        let statuses: Vec<_> = answers.map(|answer| answer.status).collect();
        match statuses[..] {
            [] => Err(NoAnswer),
            [204 | 404] | [204, 404] | [404, 204] => {
                self.is_rid_of(session);
                Ok(())
            }
            _ => panic!("{} released {session} twice and was answered {statuses:?}", self.name),
        }
    }

    async fn look_whether_gone(&mut self, client: &Client, session: String) -> Result<(), NoAnswer> {
        let answer = answered(client.try_heartbeat(&session).await)?;
        match (answer.status, &answer.body["reason"]) {
            (200, _) => self.seat = Seat::Held(session),
            (410, Value::String(reason)) if reason == "released" => self.is_rid_of(session),
            _ => panic!("{} looked after {session} and was answered {answer:?}", self.name),
        }
        Ok(())
    }

    fn is_rid_of(&mut self, session: String) {
        self.released.push(session);
        self.seat = Seat::None;
    }
}

fn answered(answer: Result<Answer, reqwest::Error>) -> Result<Answer, NoAnswer> {
    answer.map_err(|_| NoAnswer)
}

/// Requests of the house's `Client` to a server that may be dead.
trait MayBeDead {
    async fn try_acquire(&self, key: &Value, machine: &str) -> reqwest::Result<Answer>;
    async fn try_heartbeat(&self, session: &str) -> reqwest::Result<Answer>;
    async fn try_release(&self, session: &str) -> reqwest::Result<Answer>;
}

impl MayBeDead for Client {
    async fn try_acquire(&self, key: &Value, machine: &str) -> reqwest::Result<Answer> {
        let ask = serde_json::json!({ "license_key": key, "machine_id": machine });
        self.try_send(reqwest::Method::POST, "/api/v1/licenses/acquire", Some(ask)).await
    }

    async fn try_heartbeat(&self, session: &str) -> reqwest::Result<Answer> {
        let path = format!("/api/v1/licenses/sessions/{session}/heartbeat");
        self.try_send(reqwest::Method::PATCH, &path, None).await
    }

    async fn try_release(&self, session: &str) -> reqwest::Result<Answer> {
        let path = format!("/api/v1/licenses/sessions/{session}");
        self.try_send(reqwest::Method::DELETE, &path, None).await
    }
}
