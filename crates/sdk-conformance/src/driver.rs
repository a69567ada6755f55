//! A driver: a program that holds seats with the client of one language, and speaks JSON lines.
//!
//! | command | answer |
//! |---|---|
//! | `{"id", "do": "open", "url", "token" or "token_file" or "license_key", "event_streams", "ca_file"}` | `{"id", "ok": true}` |
//! | `{"id", "do": "acquire", "seat", "license_key", "machine", "wait", "patience"}` | with `session`, or `error` |
//! | `{"id", "do": "state"}` | with `states`: of each seat its `kind`, and `valid`, the answer of `check` |
//! | `{"id", "do": "activity", "seat"}` | `{"id", "ok": true}` |
//! | `{"id", "do": "release", "seat"}` | with `confirmed` |
//! | `{"id", "do": "close"}` | `{"id", "ok": true}` |
//! | `{"id", "do": "check", "seat", "calls"}` | with `nanoseconds`, the price of a call, the best of ten rounds |
//! | `{"id", "do": "cycles", "license_key", "machine", "count"}`, and the fields of `open` | `{"id", "ok": true}` after `count` cycles of open, acquire, release and close |
//! | `{"id", "do": "memory"}` | with `kib` in use after a collection; only in languages with a garbage collector |
//! | `{"id", "do": "crash"}` | none: the driver ends itself without any cleaning |
//!
//! The `url` names one server, or the nodes of an installation with a space between two. The clients of TypeScript and Go
//! trust the authority in `NODE_EXTRA_CA_CERTS` and `SSL_CERT_FILE`, and ignore `ca_file`.
//!
//! A driver answers commands in any order: an acquire holds up no other command. Each change of a state is a line
//! `{"seat", "at", "state": {"kind", "reason", "by", "retry"}}`, with `at` in milliseconds on a monotonic clock. A driver
//! ends at the end of its input.

use std::collections::HashMap;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{interval, timeout};

use crate::language::Language;
use crate::server::pid;
use crate::usage::{SignalActions, Usage};

/// The interval between two looks at the states of all seats.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A wait that is longer than any answer takes on a busy host.
pub const LONG: Duration = Duration::from_secs(30);

/// A state that a driver told.
#[derive(Clone, Debug)]
pub struct Told {
    /// The arrival of the line.
    pub at: Instant,
    /// The seat.
    pub seat: String,
    /// The kind of the state.
    pub kind: String,
    /// The reason of a loss.
    pub reason: Option<String>,
    /// True if the client goes on trying after the loss.
    pub retry: bool,
}

/// An answer to the question for the state of a seat.
#[derive(Clone, Debug)]
pub struct Poll {
    /// The earliest time at which the driver may have read the state.
    pub asked: Instant,
    /// The arrival of the answer.
    pub answered: Instant,
    /// The seat.
    pub seat: String,
    /// The kind of the state.
    pub kind: String,
    /// The answer of `check`.
    pub is_valid: bool,
}

/// The words of a driver.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The states told, in order.
    pub told: Vec<Told>,
    /// The answers to questions for states.
    pub polls: Vec<Poll>,
    /// The lines of the standard output.
    pub lines: Vec<String>,
    /// The standard error.
    pub errors: String,
    /// For each seat given back, the time at which the driver said so.
    pub released: HashMap<String, Instant>,
    answers: HashMap<u64, Value>,
    asked: HashMap<u64, Instant>,
    resumed: Option<Instant>,
}

/// A running driver. A drop kills the process.
#[derive(Debug)]
pub struct Driver {
    process: Child,
    commands: Option<mpsc::UnboundedSender<Value>>,
    transcript: Arc<Mutex<Transcript>>,
    changed: watch::Sender<()>,
    next_id: Arc<Mutex<u64>>,
    polling: Option<JoinHandle<()>>,
    readers: Vec<JoinHandle<()>>,
    /// The actions on signals before the client was opened.
    actions: SignalActions,
}

impl Driver {
    /// Starts a driver by `command`.
    #[must_use]
    pub fn start(command: std::process::Command) -> Self {
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("a driver that was built");
        let (commands, received) = mpsc::unbounded_channel();
        let transcript = Arc::<Mutex<Transcript>>::default();
        let changed = watch::Sender::new(());
        tokio::spawn(write(process.stdin.take().expect("a pipe"), received));
        let output = process.stdout.take().expect("a pipe");
        let errors = process.stderr.take().expect("a pipe");
        let readers = vec![
            tokio::spawn(read(output, transcript.clone(), changed.clone())),
            tokio::spawn(read_errors(errors, transcript.clone())),
        ];
        let next_id = Arc::default();
        Self {
            process,
            commands: Some(commands),
            transcript,
            changed,
            next_id,
            polling: None,
            readers,
            actions: SignalActions::default(),
        }
    }

    /// Opens the client.
    pub async fn open(&mut self, options: Value) {
        // A driver that answers has started, and its language's runtime has installed handlers of its own.
        self.call("state", json!({}), LONG).await;
        self.actions = SignalActions::from_process(self.id());
        self.call("open", options, LONG).await;
    }

    /// Begins to look at the states of all seats.
    pub fn watch_states(&mut self) {
        let (commands, next_id) = (self.commands.clone().expect("a driver with input"), self.next_id.clone());
        let transcript = self.transcript.clone();
        self.polling = Some(tokio::spawn(async move {
            let mut interval = interval(POLL_INTERVAL);
            loop {
                interval.tick().await;
                let id = take_id(&next_id);
                locked(&transcript).asked.insert(id, Instant::now());
                if commands.send(json!({"id": id, "do": "state"})).is_err() {
                    return;
                }
            }
        }));
    }

    /// Returns the resources of the process.
    #[must_use]
    pub fn usage(&self) -> Usage {
        Usage::from_process(self.id())
    }

    /// Returns the KiB of memory in use: after a collection if the driver's language has a garbage collector, otherwise the
    /// resident memory. A collector keeps garbage in resident memory as long as the host has memory.
    pub async fn memory_kib(&self, language: Language) -> f64 {
        if !language.has_collector() {
            return self.usage().memory_kib as f64;
        }
        self.call("memory", json!({}), LONG).await["kib"].as_f64().expect("a size")
    }

    fn id(&self) -> u32 {
        self.process.id().expect("a running driver")
    }

    /// Sends a command, and returns its id.
    pub fn send(&self, name: &str, mut fields: Value) -> u64 {
        let id = take_id(&self.next_id);
        fields["id"] = id.into();
        fields["do"] = name.into();
        let commands = self.commands.as_ref().expect("a driver with input");
        // A driver that has died answers no more; the wait for the answer tells.
        let _ = commands.send(fields);
        id
    }

    /// Waits for the answer to a command.
    pub async fn answer(&self, id: u64, limit: Duration) -> Value {
        self.wait_until(limit, &format!("an answer to command {id}"), |transcript| {
            transcript.answers.get(&id).cloned()
        })
        .await
    }

    /// Sends a command, and waits for its answer. Panics if the answer is an error.
    pub async fn call(&self, name: &str, fields: Value, limit: Duration) -> Value {
        let answer = self.answer(self.send(name, fields), limit).await;
        assert!(answer.get("error").is_none(), "{name}: {answer}\n{}", self.story());
        answer
    }

    /// Gives a seat back, and returns whether the client says that the server confirmed.
    pub async fn release(&self, seat: &str) -> bool {
        let answer = self.call("release", json!({"seat": seat}), LONG).await;
        locked(&self.transcript).released.insert(seat.to_owned(), Instant::now());
        answer["confirmed"] == true
    }

    /// Closes the client, which gives its seats back. The driver runs on.
    pub async fn close_client(&self) {
        self.call("close", json!({}), LONG).await;
        let mut transcript = locked(&self.transcript);
        let (seats, now): (Vec<_>, _) =
            (transcript.told.iter().map(|told| told.seat.clone()).collect(), Instant::now());
        transcript.released.extend(seats.into_iter().map(|seat| (seat, now)));
    }

    /// Waits until `find` returns a value for the transcript.
    pub async fn wait_until<T>(
        &self,
        limit: Duration,
        what: &str,
        mut find: impl FnMut(&Transcript) -> Option<T>,
    ) -> T {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            loop {
                changed.borrow_and_update();
                if let Some(found) = find(&locked(&self.transcript)) {
                    return found;
                }
                changed.changed().await.expect("this driver has the sender");
            }
        };
        match timeout(limit, waiting).await {
            Ok(found) => found,
            Err(_) => panic!("no {what} within {limit:?}\n{}", self.story()),
        }
    }

    /// Waits until the driver tells a state of `kind` for `seat` at `since` or later.
    pub async fn told(&self, seat: &str, kind: &str, since: Instant, limit: Duration) -> Told {
        let fits = |told: &&Told| told.seat == seat && told.kind == kind && told.at >= since;
        self.wait_until(limit, &format!("{kind} of {seat}"), |transcript| {
            transcript.told.iter().find(fits).cloned()
        })
        .await
    }

    /// Waits until a question asked at `since` or later finds `seat` in a state of `kind`.
    pub async fn is_in(&self, seat: &str, kind: &str, since: Instant, limit: Duration) -> Poll {
        let fits = |poll: &&Poll| poll.seat == seat && poll.kind == kind && poll.asked >= since;
        self.wait_until(limit, &format!("state {kind} of {seat}"), |transcript| {
            transcript.polls.iter().rev().find(fits).cloned()
        })
        .await
    }

    /// Stops the execution of the driver until [`Driver::resume`].
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Ends [`Driver::suspend`].
    pub fn resume(&self) {
        locked(&self.transcript).resumed = Some(Instant::now());
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(pid(self.id()), signal).expect("a process of this test");
    }

    /// Kills the driver.
    pub async fn kill(&mut self) {
        self.stop_polling();
        self.process.kill().await.expect("a process of this test");
    }

    fn stop_polling(&mut self) {
        if let Some(polling) = self.polling.take() {
            polling.abort();
        }
    }

    /// Waits for the end of a driver that ends itself.
    pub async fn ended(&mut self) -> ExitStatus {
        self.stop_polling();
        let ended = timeout(LONG, self.process.wait()).await;
        ended.expect("the driver ends").expect("the status of a child")
    }

    /// Closes the client and the input, waits for the end of the driver, and returns the transcript. Panics if the client
    /// changed the program's actions on signals (C7).
    pub async fn finish(mut self) -> Transcript {
        let actions = SignalActions::from_process(self.id());
        assert_eq!(actions, self.actions, "C7: the client changed the actions on signals");
        self.call("close", json!({}), LONG).await;
        let status = self.end().await;
        assert!(status.success(), "the driver ended with {status}\n{}", self.story());
        self.transcript()
    }

    /// Closes the input, and waits for the end of the driver.
    async fn end(&mut self) -> ExitStatus {
        self.stop_polling();
        self.commands = None;
        let status = self.ended().await;
        for reader in self.readers.drain(..) {
            let _ = timeout(LONG, reader).await;
        }
        status
    }

    /// Returns the transcript so far.
    #[must_use]
    pub fn transcript(&self) -> Transcript {
        locked(&self.transcript).clone()
    }

    /// Returns the states told, and the last lines, for the message of a failure.
    #[must_use]
    pub fn story(&self) -> String {
        locked(&self.transcript).story()
    }
}

impl Transcript {
    /// Returns the states told to `seat`, in order.
    pub fn told_to<'a>(&'a self, seat: &'a str) -> impl Iterator<Item = &'a Told> {
        self.told.iter().filter(move |told| told.seat == seat)
    }

    /// Returns the kinds of the states told to `seat`, in order.
    #[must_use]
    pub fn kinds(&self, seat: &str) -> Vec<&str> {
        self.told.iter().filter(|told| told.seat == seat).map(|told| told.kind.as_str()).collect()
    }

    /// Returns the states told, and the last lines, for the message of a failure.
    #[must_use]
    pub fn story(&self) -> String {
        let first = self.told.first().map(|told| told.at);
        let told = self.told.iter().take(100).map(|told| {
            let at = told.at.duration_since(first.unwrap_or(told.at)).as_secs_f64();
            format!(
                "  {at:8.3} s {} {} {}\n",
                told.seat,
                told.kind,
                told.reason.as_deref().unwrap_or_default()
            )
        });
        let lines = self.lines.iter().rev().take(5).rev().map(|line| format!("  {line}\n"));
        let (told, lines): (String, String) = (told.collect(), lines.collect());
        format!("the driver told:\n{told}its last lines:\n{lines}its errors:\n{}", self.errors)
    }

    fn hear(&mut self, line: String) {
        let at = Instant::now();
        let value: Value = serde_json::from_str(&line).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if let (Some(seat), Some(state)) = (value["seat"].as_str(), value.get("state")) {
            self.told.push(Told {
                at,
                seat: seat.to_owned(),
                kind: text(&state["kind"]),
                reason: state["reason"].as_str().map(str::to_owned),
                retry: state["retry"] == true,
            });
        }
        let asked = value["id"].as_u64().and_then(|id| self.asked.remove(&id));
        if let (Some(asked), Some(states)) = (asked, value["states"].as_object()) {
            // A driver that was stopped has read the state after it was resumed.
            let asked = self.resumed.filter(|resumed| *resumed > asked).unwrap_or(asked);
            for (seat, state) in states {
                let (kind, is_valid) = (text(&state["kind"]), state["valid"] == true);
                self.polls.push(Poll { asked, answered: at, seat: seat.clone(), kind, is_valid });
            }
            return;
        }
        if let Some(id) = value["id"].as_u64() {
            self.answers.insert(id, value);
        }
        self.lines.push(line);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take_id(next: &Mutex<u64>) -> u64 {
    let mut next = locked(next);
    *next += 1;
    *next
}

async fn write(mut to: ChildStdin, mut commands: mpsc::UnboundedReceiver<Value>) {
    while let Some(command) = commands.recv().await {
        if to.write_all(format!("{command}\n").as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(from: ChildStdout, transcript: Arc<Mutex<Transcript>>, changed: watch::Sender<()>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        locked(&transcript).hear(line);
        changed.send_replace(());
    }
}

async fn read_errors(mut from: ChildStderr, transcript: Arc<Mutex<Transcript>>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        locked(&transcript).errors.push_str(&String::from_utf8_lossy(&buffer[..length]));
    }
}
