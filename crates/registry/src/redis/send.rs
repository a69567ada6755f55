//! Sends calls to Redis. Calls of a script that wait at the same time share a command, and a call's reply is the same as if the
//! call had gone alone: see `scripts/lib/each.lua`.

use std::borrow::Cow;
use std::slice;
use std::sync::Arc;

use redis::{Cmd, ErrorKind, RedisError, RedisResult, Value};
use seatkeeper_redis::{Answer, Batcher, Connection, Script, SendBatch, Servers, not_reached};

use super::RedisRegistry;
use super::call::Call;
use super::codec::Garbled;
use super::head::Stage;
use super::reply::Reply;
use super::scripts::{ASK_ALONE, SCRIPTS};
use crate::{Epochs, Error};

/// Calls that go with one command at most: Redis does nothing else meanwhile.
const CALLS_MAX: usize = 32;

/// Commands of one script that are under way at the same time: while one is on its way, Redis is at work on another.
const COMMANDS_MAX: usize = 2;

/// Calls of one script that wait for a command at most. Further callers wait to be let in.
const WAITING_MAX: usize = 4_096;

/// Connections to the servers, and the scripts that are called often over them.
#[derive(Debug)]
pub(super) struct Batchers {
    pub(super) servers: Servers,
    /// Each script has a batcher, except in a cluster: there all calls of a command must be on one slot.
    often: Vec<(&'static Script, Option<CallBatcher>)>,
}

type CallBatcher = Batcher<Call, RedisResult<Answer>>;

impl Batchers {
    /// Creates the batchers for claims, heartbeats and ends. Must be called in the runtime where calls are put together.
    pub(super) fn for_requests(servers: Servers) -> Self {
        Self::new(servers, &[&SCRIPTS.claim, &SCRIPTS.heartbeat, &SCRIPTS.end])
    }

    /// Creates the batchers for the journals' reader. Must be called in the runtime where calls are put together.
    pub(super) fn for_journals(servers: Servers) -> Self {
        Self::new(servers, &[&SCRIPTS.acknowledge, &SCRIPTS.journal_read])
    }

    fn new(servers: Servers, often: &[&'static Script]) -> Self {
        let senders = || (0..COMMANDS_MAX).map(|_| Commands(servers.clone()));
        let batcher = || servers.is_one().then(|| Batcher::new(CALLS_MAX, WAITING_MAX, senders()));
        let often = often.iter().map(|script| (*script, batcher())).collect();
        Self { servers, often }
    }

    /// Returns the batcher of a script that is called often over these connections; `Some(None)` in a cluster.
    fn batcher(&self, script: &Script) -> Option<Option<&CallBatcher>> {
        self.often.iter().find(|(its, _)| std::ptr::eq(*its, script)).map(|(_, batcher)| batcher.as_ref())
    }
}

impl RedisRegistry {
    /// Sends a call of a script that looks for no session, and reads the reply.
    pub(super) async fn call(&self, call: Call) -> Result<Reply, Error> {
        self.call_for_session(call).await?.ok_or_else(needless_key)
    }

    /// Sends a call, and reads the reply; `None` if the pool is large, and a session of it can only be found by the key of its
    /// holder, which the call did not name.
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

    /// Sends calls of a script on a bucket in one command. Each call is an atomic step, and a failure concerns its call alone.
    pub(super) async fn call_together(&self, calls: &[Call]) -> Vec<Result<Reply, Error>> {
        let answers = Commands(self.requests.servers.clone()).send(calls).await;
        let replies = calls
            .iter()
            .zip(answers)
            .map(|(call, answer)| self.read(call.demand, answer?)?.ok_or_else(needless_key));
        replies.collect()
    }
}

/// The error of a script that asks for a holder's key though it looks for no session, or has the key.
fn needless_key() -> Error {
    Garbled("a script asks for a key that it has no use for").into()
}

/// Sends calls of a script in one command. The calls are in the same slot or to the only server, and on buckets of the same
/// stage.
#[derive(Debug)]
struct Commands(Servers);

impl SendBatch for Commands {
    type Call = Call;
    type Reply = RedisResult<Answer>;

    async fn send(&mut self, calls: &[Call]) -> Vec<RedisResult<Answer>> {
        let mut answers = self.send_command(calls).await;
        for (call, answer) in calls.iter().zip(&mut answers) {
            if calls.len() > 1 && answer.as_ref().is_ok_and(must_be_alone) {
                // The script failed for this call within the batch; alone it tells why.
                let alone = self.send_command(slice::from_ref(call)).await.pop();
                let repeated = |answer| Answer { is_repeated: true, ..answer };
                *answer = alone.unwrap_or_else(|| Err(malformed())).map(repeated);
            }
        }
        answers
    }
}

impl Commands {
    /// Sends calls in one command, again if the connection is lost and the stage of the calls allows it.
    async fn send_command(&self, calls: &[Call]) -> Vec<RedisResult<Answer>> {
        let Some(Call { script, slot, demand, .. }) = calls.first() else { return Vec::new() };
        let command = |server: &Connection| Cow::Owned(command(script, calls, server.identity()));
        match self.0.call(*slot, Some(script), demand.stage.retry(), command).await {
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
    /// Returns the registry's error: the outcome of a call that timed out is unknown.
    fn from(error: RedisError) -> Self {
        if error.is_timeout() { Self::TimedOut } else { Self::Unavailable(Box::new(error)) }
    }
}
