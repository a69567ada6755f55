//! One script on one bucket: what it is told, and what there is if it has no answer.

use std::borrow::Cow;
use std::sync::Arc;

use redis::{Arg, Cmd, RedisError, RedisResult, ToRedisArgs, Value};
use seatkeeper_core::{Bucket, PoolId, RegistryTime, Span};
use seatkeeper_redis::{Answer, Connection, Retry, Script};

use super::RedisRegistry;
use super::codec::{Garbled, Reader};
use super::keys::{BucketKeys, PoolKeys};
use super::reply::{Preamble, Reply};
use super::scripts::{FORMAT, HEAD_NUMBERS_BYTES, JOURNAL_FULL, KEY_NEEDED, NOT_OPEN, NOT_SERVING};
use super::together::{Stamped, send_each};
use crate::{Epochs, Error, Identity};

/// Words and bytes that a call has room for before it allocates again.
const WORDS: usize = 32;
const WORDS_BYTES: usize = 1_024;

/// A step back of the clock of more than this is worth a line in the log.
const STEP_NOTABLE: Span = Span::from_secs(1);

/// Whether a bucket is served, as its head says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Rebuilding,
    Serving,
}

impl Stage {
    /// A repeated call takes no second seat and ends nothing twice. A bucket is filled but once.
    pub(super) fn retry(self) -> Retry {
        match self {
            Self::Rebuilding => Retry::Never,
            Self::Serving => Retry::WhenCutOff,
        }
    }
}

/// What the head of a bucket begins with: see `lib/bucket.lua`.
pub(super) fn stamp(stage: Stage, epoch: u64, identity: &str) -> Vec<u8> {
    let (stage, identity) = match stage {
        Stage::Rebuilding => (0, ""),
        Stage::Serving => (1, identity),
    };
    let mut bytes = vec![FORMAT, stage];
    bytes.extend_from_slice(&epoch.to_be_bytes()[2..]);
    bytes.extend_from_slice(identity.as_bytes());
    bytes
}

/// The head of a bucket: see `lib/bucket.lua`.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) stage: Stage,
    pub(super) epoch: u64,
    /// The server that it was filled on, once it is served.
    pub(super) identity: Identity,
    pub(super) last: u64,
    pub(super) acknowledged: u64,
    /// Not later than the first pool of the bucket is due.
    pub(super) due: RegistryTime,
    /// When the bucket's lease is over, unless it is renewed.
    pub(super) leased_until: RegistryTime,
}

/// A head as it was read; none if there is none.
pub(super) fn head_of(read: Option<&[u8]>) -> Result<Option<Head>, Garbled> {
    let Some(bytes) = read else { return Ok(None) };
    let split = bytes.len().checked_sub(HEAD_NUMBERS_BYTES).ok_or(Garbled("the head of a bucket"))?;
    let (mut stamp, mut numbers) = (Reader::new(&bytes[..split]), Reader::new(&bytes[split..]));
    if stamp.byte()? != FORMAT {
        return Err(Garbled("another version of Seatkeeper's format"));
    }
    let stage = if stamp.byte()? == 1 { Stage::Serving } else { Stage::Rebuilding };
    let epoch = stamp.number(6)?;
    let identity = Identity(stamp.rest_text()?.to_string().into());
    numbers.number(6)?;
    Ok(Some(Head {
        stage,
        epoch,
        identity,
        last: numbers.number(6)?,
        acknowledged: numbers.number(6)?,
        due: RegistryTime::from_millis(numbers.number(6)?),
        leased_until: RegistryTime::from_millis(numbers.number(6)?),
    }))
}

/// A call of a script in the making.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) script: &'static Script,
    bucket: Bucket,
    keys: usize,
    /// The keys, then the arguments.
    words: Cmd,
}

/// A call that was answered.
pub(super) struct Asked {
    /// By whom.
    pub(super) up: Arc<Connection>,
    pub(super) answered: Answered,
    /// It was sent more than once: what it found may have been done by itself.
    pub(super) is_repeated: bool,
}

/// What came of a call.
pub(super) enum Answered {
    Reply(Preamble, Reply),
    /// The pool is large, and a session of it can only be found by its holder, which was not said.
    KeyNeeded,
}

impl Call {
    /// On a bucket alone.
    pub(super) fn on_bucket(script: &'static Script, bucket: Bucket, keys: &BucketKeys) -> Self {
        Self::on(script, bucket, [&keys.head, &keys.due, &keys.journal].into_iter())
    }

    /// On a pool. Its name in the due-index is the first argument.
    pub(super) fn on_pool(
        script: &'static Script,
        bucket: Bucket,
        keys: &BucketKeys,
        pool: &PoolKeys,
    ) -> Self {
        let keys = [&keys.head, &keys.due, &keys.journal, &pool.pool, &pool.sessions, &pool.order];
        Self::on(script, bucket, keys.into_iter()).arg(&pool.reference)
    }

    /// On any keys of a bucket.
    pub(super) fn on<'k>(
        script: &'static Script,
        bucket: Bucket,
        keys: impl ExactSizeIterator<Item = &'k String>,
    ) -> Self {
        let words = Cmd::with_capacity(WORDS, WORDS_BYTES);
        let mut call = Self { script, bucket, keys: keys.len(), words };
        for key in keys {
            call.words.arg(key);
        }
        call
    }

    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.words.arg(argument);
        self
    }

    pub(super) fn keys(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.words().take(self.keys)
    }

    pub(super) fn args(&self) -> impl Iterator<Item = &[u8]> {
        self.words().skip(self.keys)
    }

    fn words(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.words.args_iter().map(|word| match word {
            Arg::Simple(word) => word,
            // None is ever put in.
            Arg::Cursor | _ => &[],
        })
    }

    /// The command that is this call, of a script that stands alone.
    fn command(&self) -> Cmd {
        let mut command = self.script.call(self.keys());
        for argument in self.args() {
            command.arg(argument);
        }
        command
    }
}

impl RedisRegistry {
    /// Calls a script on a bucket that is served in the epoch that is known here.
    pub(super) async fn ask(&self, call: Call) -> Result<Answered, Error> {
        Ok(self.ask_whom(call).await?.answered)
    }

    /// Likewise; says how that went as well.
    pub(super) async fn ask_whom(&self, call: Call) -> Result<Asked, Error> {
        let epoch = self.epoch_served(call.bucket)?;
        self.ask_whom_in(Stage::Serving, epoch, call).await
    }

    /// Likewise, for a script that looks for no session.
    pub(super) async fn told(&self, call: Call) -> Result<(Preamble, Reply), Error> {
        self.ask(call).await?.told()
    }

    /// Calls a script that looks for no session at least once on a bucket, in one command: each call is a step of its own, and
    /// one that fails does so alone.
    pub(super) async fn told_together(
        &self,
        bucket: Bucket,
        calls: impl Iterator<Item = Call>,
    ) -> Result<Vec<Result<(Preamble, Reply), Error>>, Error> {
        let (slot, stage, epoch) = (self.slots.of(bucket), Stage::Serving, self.epoch_served(bucket)?);
        let calls: Vec<_> = calls.map(|call| Stamped { call, slot, stage, epoch }).collect();
        let told = send_each(&self.way.servers, &calls).await;
        let told = told.into_iter().map(|told| self.asked(bucket, stage, epoch, told)?.answered.told());
        Ok(told.collect())
    }

    /// Calls a script on a bucket that is in this stage of this epoch.
    pub(super) async fn ask_in(&self, stage: Stage, epoch: u64, call: Call) -> Result<Answered, Error> {
        Ok(self.ask_whom_in(stage, epoch, call).await?.answered)
    }

    async fn ask_whom_in(&self, stage: Stage, epoch: u64, call: Call) -> Result<Asked, Error> {
        let bucket = call.bucket;
        let way = self.way_of(call.script);
        let told = way.send(Stamped { slot: self.slots.of(bucket), call, stage, epoch }).await;
        self.asked(bucket, stage, epoch, told)
    }

    /// The epoch that a bucket is served in, as far as is known here.
    fn epoch_served(&self, bucket: Bucket) -> Result<u64, Error> {
        let epoch = self.epochs.of(bucket);
        if epoch == Epochs::NONE { Err(Error::NotServing { bucket }) } else { Ok(epoch) }
    }

    /// What came of a call, once its reply is looked at.
    fn asked(
        &self,
        bucket: Bucket,
        stage: Stage,
        epoch: u64,
        told: RedisResult<Answer>,
    ) -> Result<Asked, Error> {
        let Answer { value, connection: up, is_repeated } = told.map_err(failed)?;
        let mut reply = Reply::of(value)?;
        match reply.signed()? {
            NOT_SERVING => {
                up.doubt_identity();
                Err(Error::NotServing { bucket })
            }
            NOT_OPEN => Err(Error::PoolNotOpen),
            JOURNAL_FULL => Err(Error::JournalFull { depth: reply.number()? as usize }),
            KEY_NEEDED => Ok(Asked { up, answered: Answered::KeyNeeded, is_repeated }),
            now => {
                let preamble = reply.preamble(epoch, now)?;
                warn_of_step(preamble.behind);
                if stage == Stage::Serving {
                    self.backlog.note(preamble.receipt(bucket), preamble.acknowledged);
                }
                Ok(Asked { up, answered: Answered::Reply(preamble, reply), is_repeated })
            }
        }
    }

    /// Calls a script on a bucket, however that is.
    pub(super) async fn run(&self, call: &Call) -> Result<Value, Error> {
        let (slot, command) = (self.slots.of(call.bucket), call.command());
        let asked =
            self.way.servers.call(slot, Some(call.script), Retry::Never, |_| Cow::Borrowed(&command)).await;
        asked.map(|answer| answer.value).map_err(failed)
    }

    /// A call of a script on a pool that is known by its name.
    pub(super) fn on_pool(&self, script: &'static Script, pool: &PoolId) -> Call {
        let bucket = pool.bucket();
        Call::on_pool(script, bucket, self.keys.of(bucket), &PoolKeys::of(pool))
    }
}

impl Answered {
    /// The reply of a script that looks for no session.
    pub(super) fn told(self) -> Result<(Preamble, Reply), Error> {
        match self {
            Self::Reply(preamble, reply) => Ok((preamble, reply)),
            Self::KeyNeeded => Err(Garbled("a script asks for a key that it has no use for").into()),
        }
    }
}

/// Returns the registry's error: of a call that timed out, the outcome is unknown.
pub(super) fn failed(error: RedisError) -> Error {
    if error.is_timeout() { Error::TimedOut } else { Error::Unavailable(Box::new(error)) }
}

/// Says so if the server's clock went back.
pub(super) fn warn_of_step(behind: Span) {
    if behind > STEP_NOTABLE {
        tracing::warn!(
            behind_ms = behind.as_millis(),
            "Redis's clock went back; expiry is frozen until it has caught up"
        );
    }
}
