//! Sends calls to Redis, in batches. Calls of a script that wait at the same time share a command. A call's
//! reply is the same as in a command of its own: see `scripts/lib/each.lua`.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use redis::{Cmd, ErrorKind, RedisError, RedisResult, Value};
use seatkeeper_redis::{Answer, Batcher, Connection, Retry, Script, SendBatch, Servers, not_reached};

use super::RedisRegistry;
use super::call::Call;
use super::codec::Garbled;
use super::head::Stage;
use super::reply::Reply;
use super::scripts::{ASK_ALONE, SCRIPTS};
use crate::{Epochs, Error};

/// Maximum number of calls per command. Redis serves no other caller during a command.
const CALLS_MAX: usize = 32;

/// Pipelined commands of one script: Redis works on one while the next is on its way.
const COMMANDS_MAX: usize = 2;

/// Maximum number of waiting calls per script. Beyond the bound, callers wait for admission (backpressure).
const WAITING_MAX: usize = 4_096;

/// Connections to the servers, and batchers for the frequent scripts.
#[derive(Debug)]
pub(super) struct Batchers {
    pub(super) servers: Servers,
    /// The batcher of each frequent script; `None` in a cluster, where the calls of a command must be in one
    /// slot.
    often: Vec<(&'static Script, Option<Batcher<Commands>>)>,
}

impl Batchers {
    /// Creates the batchers for claims, heartbeats and ends. Must be called in the runtime that forms the
    /// batches.
    pub(super) fn for_requests(servers: Servers) -> Self {
        Self::new(servers, &[&SCRIPTS.claim, &SCRIPTS.heartbeat, &SCRIPTS.end])
    }

    /// Creates the batchers for the journals' reader. Must be called in the runtime that forms the batches.
    pub(super) fn for_journals(servers: Servers) -> Self {
        Self::new(servers, &[&SCRIPTS.acknowledge, &SCRIPTS.journal_read])
    }

    fn new(servers: Servers, often: &[&'static Script]) -> Self {
        let senders = || (0..COMMANDS_MAX).map(|_| Commands(servers.clone()));
        let batcher = || {
            let batcher = || Batcher::new(CALLS_MAX, WAITING_MAX, senders());
            servers.is_one().then(|| batcher().with_lone_calls_by(Commands(servers.clone())))
        };
        let often = often.iter().map(|script| (*script, batcher())).collect();
        Self { servers, often }
    }

    /// Returns the batcher of a frequent script; `Some(None)` in a cluster, `None` for a script without
    /// batches.
    fn batcher(&self, script: &Script) -> Option<Option<&Batcher<Commands>>> {
        self.often.iter().find(|(its, _)| std::ptr::eq(*its, script)).map(|(_, batcher)| batcher.as_ref())
    }
}

impl RedisRegistry {
    /// Sends a call that needs no holder's key, and reads the reply.
    pub(super) async fn call(&self, call: Call) -> Result<Reply, Error> {
        self.call_for_session(call).await?.ok_or_else(needless_key)
    }

    /// Sends a call and reads the reply. Returns `None` if the pool is large, and the script needs the key of
    /// a session's holder, which the call did not give.
    pub(super) async fn call_for_session(&self, call: Call) -> Result<Option<Reply>, Error> {
        let demand = call.demand;
        if demand.epoch == Epochs::NONE {
            return Err(Error::NotServing { bucket: demand.bucket });
        }
        let (servers, batcher) = match self.journals.batcher(call.script) {
            Some(batcher) => (&self.journals.servers, batcher),
            None => (&self.requests.servers, self.requests.batcher(call.script).flatten()),
        };
        let answer = match batcher.filter(|_| demand.stage == Stage::Serving) {
            Some(batcher) => batcher.call(call).await,
            None => Commands(servers.clone()).send(slice::from_ref(&call)).await.pop(),
        };
        self.read(demand, answer.unwrap_or_else(|| Err(not_reached("nobody sends to it any more")))?)
    }

    /// Sends calls on a bucket in one command. Each call is an atomic step, and a failed call does not fail
    /// the rest.
    pub(super) async fn call_together(&self, calls: &[Call]) -> Vec<Result<Reply, Error>> {
        let answers = Commands(self.requests.servers.clone()).send(calls).await;
        let replies = calls
            .iter()
            .zip(answers)
            .map(|(call, answer)| self.read(call.demand, answer?)?.ok_or_else(needless_key));
        replies.collect()
    }
}

/// Returns the error for a script that asks for a holder's key without need.
fn needless_key() -> Error {
    Garbled("a script asks for a key that it has no use for").into()
}

/// A sender of script calls in one command. All calls must be in one slot or on the only server, and demand
/// one stage.
#[derive(Debug)]
struct Commands(Servers);

impl SendBatch for Commands {
    type Call = Call;
    type Reply = RedisResult<Answer>;

    async fn send(&mut self, calls: &[Call]) -> Vec<RedisResult<Answer>> {
        let mut answers = self.send_command(calls).await;
        for (call, answer) in calls.iter().zip(&mut answers) {
            if calls.len() > 1 && answer.as_ref().is_ok_and(must_be_alone) {
                // The script failed for this call within the batch. Sent alone, the call returns the error.
                let alone = self.send_command(slice::from_ref(call)).await.pop();
                let repeated = |answer| Answer { is_repeated: true, ..answer };
                *answer = alone.unwrap_or_else(|| Err(malformed())).map(repeated);
            }
        }
        answers
    }
}

impl Commands {
    /// Sends calls in one command, with a retry after a lost connection: every call is idempotent.
    async fn send_command(&self, calls: &[Call]) -> Vec<RedisResult<Answer>> {
        let Some(Call { script, slot, .. }) = calls.first() else { return Vec::new() };
        let command = |server: &Connection| Cow::Owned(command(script, calls, server.identity()));
        match self.0.call(*slot, Some(script), Retry::WhenCutOff, command).await {
            Ok(Answer { value: Value::Array(replies), connection, is_repeated })
                if replies.len() == calls.len() =>
            {
                let answer = |value| Ok(Answer { value, connection: Arc::clone(&connection), is_repeated });
                replies.into_iter().map(answer).collect()
            }
            Ok(_) => calls.iter().map(|_| Err(malformed())).collect(),
            Err(error) => calls.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

/// Builds the command of several calls: see `scripts/lib/each.lua`.
fn command(script: &Script, calls: &[Call], identity: &str) -> Cmd {
    let keys: Vec<&[u8]> = calls.iter().flat_map(Call::keys).collect();
    let mut command = script.call(keys.into_iter());
    command.arg(calls.len());
    for call in calls {
        for argument in call.args() {
            command.arg(argument);
        }
        command.arg(call.demand.stamp(identity));
    }
    command
}

fn must_be_alone(answer: &Answer) -> bool {
    matches!(&answer.value, Value::Array(said) if matches!(said[..], [Value::Int(ASK_ALONE)]))
}

fn malformed() -> RedisError {
    (ErrorKind::UnexpectedReturnType, "a script does not reply to each call").into()
}

impl From<RedisError> for Error {
    /// Converts an error of Redis. After a timeout the outcome of the call is unknown.
    fn from(error: RedisError) -> Self {
        if error.is_timeout() { Self::TimedOut } else { Self::Unavailable(Box::new(error)) }
    }
}
