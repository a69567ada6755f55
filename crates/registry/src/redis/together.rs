//! One command for all calls of a script that wait for Redis at the same time.
//!
//! A script costs Redis about as much to call as to run, and this node as much to send. So a few commands are under way
//! at a time, and what comes meanwhile goes with the next: the busier a node is, the less each call costs. Each call is
//! answered as if it had come alone: see `scripts/lib/each.lua`.

use std::borrow::Cow;
use std::sync::Arc;

use redis::{Cmd, ErrorKind, RedisResult, Value};
use seatkeeper_redis::{Answer, Connection, Retry, Script, Servers, Slot, not_reached};
use tokio::sync::{Mutex, mpsc, oneshot};

use super::call::{Call, Stage, stamp};
use super::scripts::{ASK_ALONE, SCRIPTS, Scripts};

/// What goes with one command at most: Redis does nothing else meanwhile.
const CALLS_MAX: usize = 32;

/// Commands of one script that are under way at the same time: while one is on its way, Redis is at work on another.
const UNDER_WAY_MAX: usize = 2;

/// What waits for a command at most. Whoever comes then waits to be let in.
const WAITING_MAX: usize = 4_096;

/// A call, and the stage and epoch that its bucket must be in.
pub(super) struct Stamped {
    pub(super) call: Call,
    pub(super) slot: Slot,
    pub(super) stage: Stage,
    pub(super) epoch: u64,
}

/// A way to the servers, on which calls go together where they can.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) servers: Servers,
    /// None: each call is a command of its own.
    lanes: Option<Lanes>,
}

impl Way {
    /// The way over these connections. Must be called in a runtime: it is where calls are put together.
    pub(super) fn new(servers: Servers) -> Self {
        Self { lanes: Lanes::new(&servers), servers }
    }

    /// Sends a call, and again if its answer did not come and its stage allows it.
    pub(super) async fn send(&self, call: Stamped) -> RedisResult<Answer> {
        let lanes = self.lanes.as_ref().filter(|_| call.stage == Stage::Serving);
        match lanes.and_then(|lanes| lanes.of(call.call.script)) {
            Some(lane) => lane.ask(call).await,
            None => send_alone(&self.servers, call.stage.retry(), &call).await,
        }
    }
}

/// Sends one call.
async fn send_alone(servers: &Servers, retry: Retry, call: &Stamped) -> RedisResult<Answer> {
    let (sent, mut replies) = send(servers, retry, std::slice::from_ref(call)).await?;
    let reply = replies.pop().ok_or((ErrorKind::UnexpectedReturnType, "a reply is missing"))?;
    Ok(sent.told(reply))
}

/// What all replies to one command have in common.
struct Sent {
    connection: Arc<Connection>,
    is_repeated: bool,
}

impl Sent {
    fn told(&self, value: Value) -> Answer {
        Answer { connection: Arc::clone(&self.connection), value, is_repeated: self.is_repeated }
    }
}

/// Sends calls of one script, all in one slot or to the only server, and gives the reply to each.
async fn send(servers: &Servers, retry: Retry, calls: &[Stamped]) -> RedisResult<(Sent, Vec<Value>)> {
    let Some(Stamped { call: Call { script, .. }, slot, .. }) = calls.first() else {
        return Err((ErrorKind::InvalidClientConfig, "nothing is called").into());
    };
    let command = |up: &Connection| Cow::Owned(command(script, calls, up));
    let Answer { value, connection, is_repeated } = servers.call(*slot, Some(script), retry, command).await?;
    if let Value::Array(replies) = value
        && replies.len() == calls.len()
    {
        return Ok((Sent { connection, is_repeated }, replies));
    }
    Err((ErrorKind::UnexpectedReturnType, "a script does not reply to each call").into())
}

/// The command that is all these calls: see `scripts/lib/each.lua`.
fn command(script: &Script, calls: &[Stamped], up: &Connection) -> Cmd {
    let keys: Vec<&[u8]> = calls.iter().flat_map(|Stamped { call, .. }| call.keys()).collect();
    let mut command = script.call(keys.into_iter());
    command.arg(calls.len());
    for Stamped { call, stage, epoch, .. } in calls {
        for argument in call.args() {
            command.arg(argument);
        }
        command.arg(stamp(*stage, *epoch, up.identity()));
    }
    command
}

/// The scripts that are called often, each with its lane. Where all is on one server any calls of one can go together.
#[derive(Debug)]
struct Lanes([(&'static Script, Lane); 5]);

impl Lanes {
    /// None for a cluster, where a command is on one slot.
    fn new(servers: &Servers) -> Option<Self> {
        let Scripts { acknowledge, claim, end, heartbeat, journal_read, .. } = &*SCRIPTS;
        let often = [acknowledge, claim, end, heartbeat, journal_read];
        servers.is_one().then(|| Self(often.map(|script| (script, Lane::new(servers)))))
    }

    fn of(&self, script: &Script) -> Option<&Lane> {
        self.0.iter().find(|(its, _)| std::ptr::eq(*its, script)).map(|(_, lane)| lane)
    }
}

/// Where calls of one script wait for the next command.
#[derive(Debug)]
struct Lane {
    waiting: mpsc::Sender<Waiting>,
}

struct Waiting {
    call: Stamped,
    told: oneshot::Sender<RedisResult<Answer>>,
}

impl Lane {
    fn new(servers: &Servers) -> Self {
        let (waiting, calls) = mpsc::channel(WAITING_MAX);
        let calls = Arc::new(Mutex::new(calls));
        for _ in 0..UNDER_WAY_MAX {
            tokio::spawn(run(servers.clone(), Arc::clone(&calls)));
        }
        Self { waiting }
    }

    /// Sends a call with others. It may be sent again if its answer did not come.
    async fn ask(&self, call: Stamped) -> RedisResult<Answer> {
        let (told, reply) = oneshot::channel();
        let is_under_way = self.waiting.send(Waiting { call, told }).await.is_ok();
        let reply = if is_under_way { reply.await.ok() } else { None };
        reply.unwrap_or_else(|| Err(not_reached("nobody sends to it any more")))
    }
}

/// Sends what waits, until nobody can ask any more.
async fn run(servers: Servers, waiting: Arc<Mutex<mpsc::Receiver<Waiting>>>) {
    let mut together = Vec::with_capacity(CALLS_MAX);
    while waiting.lock().await.recv_many(&mut together, CALLS_MAX).await > 0 {
        let (calls, tell): (Vec<Stamped>, Vec<_>) =
            together.drain(..).map(|Waiting { call, told }| (call, told)).unzip();
        for (told, tell) in send_each(&servers, &calls).await.into_iter().zip(tell) {
            // Whoever asked may have gone.
            let _ = tell.send(told);
        }
    }
}

/// Sends calls of one script on served buckets in one command, and again those that fail so: each is answered as if it had
/// come alone. All are in one slot or to the only server.
pub(super) async fn send_each(servers: &Servers, calls: &[Stamped]) -> Vec<RedisResult<Answer>> {
    let (sent, replies) = match send(servers, Retry::WhenCutOff, calls).await {
        Ok(sent) => sent,
        Err(error) => return calls.iter().map(|_| Err(error.clone())).collect(),
    };
    let mut each = Vec::with_capacity(calls.len());
    for (call, reply) in calls.iter().zip(replies) {
        each.push(if must_ask_alone(&reply) {
            let told = send_alone(servers, Retry::WhenCutOff, call).await;
            told.map(|told| Answer { is_repeated: true, ..told })
        } else {
            Ok(sent.told(reply))
        });
    }
    each
}

fn must_ask_alone(reply: &Value) -> bool {
    matches!(reply, Value::Array(said) if matches!(said[..], [Value::Int(ASK_ALONE)]))
}
