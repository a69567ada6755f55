//! Drives the Rust client by JSON lines; `seatkeeper_sdk_conformance::driver` explains the commands.
#![allow(clippy::print_stdout, clippy::expect_used, reason = "a driver speaks on its standard output")]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use seatkeeper_client::{Client, Error, Finish, Seat, State, Wait};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, stdin};

/// The driver.
struct Driver {
    started: Instant,
    client: Mutex<Option<Client>>,
    seats: Mutex<BTreeMap<Arc<str>, Option<Seat>>>,
}

#[tokio::main]
async fn main() {
    let (client, seats) = (Mutex::default(), Mutex::default());
    let driver = Arc::new(Driver { started: Instant::now(), client, seats });
    let mut lines = BufReader::new(stdin()).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let command: Value = serde_json::from_str(&line).expect("a command in JSON");
        let driver = driver.clone();
        if command["do"] == "open" {
            driver.answer(&command).await;
        } else {
            tokio::spawn(async move { driver.answer(&command).await });
        }
    }
}

impl Driver {
    async fn answer(self: Arc<Self>, command: &Value) {
        let answer = match text(command, "do") {
            "open" => client(command).map(|client| {
                *locked(&self.client) = Some(client);
                json!({"ok": true})
            }),
            "acquire" => self.clone().acquire(command).await,
            "state" => Ok(self.states()),
            "activity" => Ok(self.activity(text(command, "seat"))),
            "release" => self.release(text(command, "seat")).await,
            "close" => self.close().await,
            "check" => Ok(self.check(command)),
            "cycles" => cycles(command).await,
            "crash" => {
                let _ = kill_process(getpid(), Signal::KILL);
                return;
            }
            other => unreachable!("the command {other}"),
        };
        let mut line = answer.unwrap_or_else(|error| json!({"error": {"code": error.code()}}));
        line["id"] = command["id"].clone();
        println!("{line}");
    }

    async fn acquire(self: Arc<Self>, command: &Value) -> Result<Value, Error> {
        let client = self.client()?;
        let mut request = client.license(text(command, "license_key")).machine(text(command, "machine"));
        if let Some(seconds) = command["wait"].as_u64() {
            request = request.wait(Wait::For(Duration::from_secs(seconds)));
        }
        let patience = command["patience"].as_f64().unwrap_or(10.0);
        let seat = request.patience(Duration::from_secs_f64(patience)).acquire().await?;
        let name: Arc<str> = text(command, "seat").into();
        let (mut states, session) = (seat.watch(), seat.session_id());
        locked(&self.seats).insert(name.clone(), Some(seat));
        let driver = self.clone();
        tokio::spawn(async move {
            // The name alone: a state would be a tenth of the memory of a seat.
            let mut last = "";
            loop {
                let state = states.latest();
                if !is_moved_deadline(last, &state) {
                    driver.tell(&name, &state);
                }
                last = state.name();
                drop(state);
                if states.changed().await.is_err() {
                    return;
                }
            }
        });
        Ok(json!({"session": session}))
    }

    fn states(&self) -> Value {
        let seats = locked(&self.seats);
        let states = seats.iter().map(|(name, seat)| {
            let (kind, valid) = match seat {
                Some(seat) => (seat.state().name(), seat.check().is_ok()),
                None => (State::Released.name(), false),
            };
            (name.to_string(), json!({"kind": kind, "valid": valid}))
        });
        json!({"states": states.collect::<Map<_, _>>()})
    }

    fn activity(&self, name: &str) -> Value {
        if let Some(Some(seat)) = locked(&self.seats).get(name) {
            seat.activity();
        }
        json!({"ok": true})
    }

    async fn release(&self, name: &str) -> Result<Value, Error> {
        let seat = locked(&self.seats).get_mut(name).and_then(Option::take).ok_or(Error::Closed)?;
        Ok(json!({"confirmed": seat.release().await? == Finish::GivenBack}))
    }

    async fn close(&self) -> Result<Value, Error> {
        let client = self.client()?;
        client.close().await?;
        Ok(json!({"ok": true}))
    }

    /// Measures `check`, the best of ten rounds.
    fn check(&self, command: &Value) -> Value {
        let calls = command["calls"].as_u64().unwrap_or_default();
        let seats = locked(&self.seats);
        let seat = seats[text(command, "seat")].as_ref().expect("a held seat");
        let round = || {
            let start = Instant::now();
            (0..calls).for_each(|_| assert!(black_box(seat).check().is_ok()));
            start.elapsed().as_nanos() as f64 / calls as f64
        };
        json!({"nanoseconds": (0..10).map(|_| round()).fold(f64::MAX, f64::min)})
    }

    fn client(&self) -> Result<Client, Error> {
        locked(&self.client).clone().ok_or(Error::Closed)
    }

    fn tell(&self, seat: &str, state: &State) {
        let mut told = json!({"kind": state.name()});
        if let State::Lost(loss) = state {
            told["reason"] = loss.reason.name().into();
            told["by"] = loss.by.as_deref().into();
            told["retry"] = loss.retry.into();
        }
        let at = self.started.elapsed().as_secs_f64() * 1e3;
        println!("{}", json!({"seat": seat, "at": at, "state": told}));
    }
}

/// Returns a client with the options of a command.
fn client(command: &Value) -> Result<Client, Error> {
    let mut urls = text(command, "url").split(' ');
    let first = urls.next().unwrap_or_default();
    let builder = urls.fold(Client::builder(first), |builder, url| builder.server(url));
    let builder = match command["ca_file"].as_str() {
        Some(path) => builder.certificates(std::fs::read(path).expect("a readable file")),
        None => builder,
    };
    let builder = if let Some(token) = command["token"].as_str() {
        builder.token(token)
    } else if let Some(path) = command["token_file"].as_str() {
        builder.token_file(path)
    } else {
        builder.license_key(text(command, "license_key"))
    };
    builder.event_streams(command["event_streams"] == true).build()
}

/// Opens a client, acquires, releases and closes, again and again.
async fn cycles(command: &Value) -> Result<Value, Error> {
    for _ in 0..command["count"].as_u64().unwrap_or_default() {
        let client = client(command)?;
        let seat =
            client.license(text(command, "license_key")).machine(text(command, "machine")).acquire().await?;
        seat.release().await?;
        client.close().await?;
    }
    Ok(json!({"ok": true}))
}

/// Returns true if `state` may differ in its deadline alone from the state named `last`.
fn is_moved_deadline(last: &str, state: &State) -> bool {
    let has_deadline = matches!(state, State::Active { .. } | State::Offline { .. } | State::Grace { .. });
    has_deadline && last == state.name()
}

fn text<'a>(command: &'a Value, name: &str) -> &'a str {
    command[name].as_str().unwrap_or_default()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
