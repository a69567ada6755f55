//! Calls: a script with keys and arguments on one bucket. Built here, sent by `send.rs`, answered by a reply
//! (`reply.rs`).

use redis::{Arg, Cmd, ToRedisArgs};
use seatkeeper_core::{Bucket, PoolId};
use seatkeeper_redis::{Script, Slot};

use super::RedisRegistry;
use super::head::{Demand, Stage};
use super::keys::{BucketKeys, PoolKeys};

/// Preallocated words and bytes of a call.
const WORDS: usize = 32;
const WORDS_BYTES: usize = 1_024;

/// A call of a script on one bucket.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) script: &'static Script,
    pub(super) slot: Slot,
    pub(super) demand: Demand,
    keys: usize,
    /// The keys, followed by the arguments.
    words: Cmd,
}

impl Call {
    /// Appends an argument.
    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.words.arg(argument);
        self
    }

    /// Requires this stage and epoch of the bucket, instead of a bucket served in the node's epoch.
    pub(super) fn in_epoch(mut self, stage: Stage, epoch: u64) -> Self {
        self.demand = Demand { stage, epoch, ..self.demand };
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
            // Calls contain no cursor.
            Arg::Cursor | _ => &[],
        })
    }
}

impl RedisRegistry {
    /// Builds a call on a bucket.
    pub(super) fn on_bucket(&self, script: &'static Script, bucket: Bucket) -> Call {
        let keys = self.keys.bucket(bucket);
        self.on_keys(script, bucket, [&keys.head, &keys.due, &keys.journal].into_iter())
    }

    /// Builds a call on a pool. The pool's name in the due-index is the first argument.
    pub(super) fn on_pool(&self, script: &'static Script, pool: &PoolId) -> Call {
        self.on_pool_in(script, pool.bucket(), &PoolKeys::new(pool))
    }

    /// Builds a call on a pool known by keys alone.
    pub(super) fn on_pool_in(&self, script: &'static Script, bucket: Bucket, pool: &PoolKeys) -> Call {
        let keys = self.keys.bucket(bucket);
        let keys = [&keys.head, &keys.due, &keys.journal, &pool.pool, &pool.sessions, &pool.order];
        self.on_keys(script, bucket, keys.into_iter()).arg(&pool.reference)
    }

    /// Builds a call on a pool and the bucket's admission ring.
    pub(super) fn on_pool_and_ring(&self, script: &'static Script, pool: &PoolId) -> Call {
        let (bucket, keys) = (pool.bucket(), PoolKeys::new(pool));
        let BucketKeys { head, due, journal, admissions } = self.keys.bucket(bucket);
        let all = [head, due, journal, &keys.pool, &keys.sessions, &keys.order, admissions];
        self.on_keys(script, bucket, all.into_iter()).arg(&keys.reference)
    }

    /// Builds a call on the given keys of a bucket. The script requires that the bucket is served in the
    /// node's epoch.
    pub(super) fn on_keys<'k>(
        &self,
        script: &'static Script,
        bucket: Bucket,
        keys: impl ExactSizeIterator<Item = &'k String>,
    ) -> Call {
        let demand = Demand { bucket, stage: Stage::Serving, epoch: self.epochs.get(bucket) };
        let (slot, mut words) = (self.slots.get(bucket), Cmd::with_capacity(WORDS, WORDS_BYTES));
        let count = keys.len();
        for key in keys {
            words.arg(key);
        }
        Call { script, slot, demand, keys: count, words }
    }
}
