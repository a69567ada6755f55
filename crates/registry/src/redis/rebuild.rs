//! How buckets are, and the steps by which they are filled anew.

use std::borrow::Cow;

use async_trait::async_trait;
use futures_util::future::join_all;
use redis::from_redis_value;
use seatkeeper_core::{Bucket, RegistryTime, Session};

use super::RedisRegistry;
use super::call::{Call, Head, Stage, head_of, stamp};
use super::codec::Garbled;
use super::keys::{Key, PoolKeys};
use super::link::failed;
use super::pools::{in_order, with_what_is_known};
use super::reply::Reply;
use super::scripts::{NOT_SERVING, SCRIPTS};
use super::servers::Again;
use crate::{Condition, Error, Filling, Identity, JournalEntry, Rebuild, Receipt, State};

/// Pools that one step throws away.
const CLEARED_POOLS_MAX: usize = 200;

/// Sessions that one step puts back.
const FILLED_SESSIONS_MAX: usize = 500;

#[async_trait]
impl Rebuild for RedisRegistry {
    async fn conditions(&self) -> Vec<Condition> {
        join_all(Bucket::all().map(|bucket| self.condition(bucket))).await
    }

    async fn rebuild_begin(&self, bucket: Bucket, epoch: u64) -> Result<(), Error> {
        let call = Call::on(&SCRIPTS.rebuild_begin, bucket, [&self.keys.of(bucket).head].into_iter())
            .arg(stamp(Stage::Rebuilding, epoch, &Identity("".into())));
        match Reply::of(self.run(&call).await?)?.signed()? {
            NOT_SERVING => Err(Error::NotServing { bucket }),
            _ => Ok(()),
        }
    }

    async fn rebuild_journal(
        &self,
        bucket: Bucket,
        epoch: u64,
        after: Option<Receipt>,
        max: usize,
    ) -> Result<Vec<JournalEntry>, Error> {
        let stands = Call::on_bucket(&SCRIPTS.journal_end, bucket, self.keys.of(bucket));
        self.ask_in(Stage::Rebuilding, epoch, stands).await?;
        self.read_journal_after(bucket, after, max).await
    }

    async fn rebuild_clear(&self, bucket: Bucket, epoch: u64) -> Result<(), Error> {
        let keys = self.keys.of(bucket);
        loop {
            let mut some = redis::cmd("ZRANGE");
            some.arg(&keys.due).arg(0).arg(CLEARED_POOLS_MAX - 1);
            let some: Vec<Vec<u8>> = self.query(bucket, &some).await?;
            let mut all_keys = vec![keys.head.clone(), keys.due.clone(), keys.journal.clone()];
            for reference in &some {
                let reference =
                    Key::try_from(&**reference).map_err(|_| Garbled("a name in the due-index"))?;
                let PoolKeys { pool, sessions, order, .. } = PoolKeys::in_bucket(bucket, reference);
                all_keys.extend([pool, sessions, order]);
            }
            let call = Call::on(&SCRIPTS.rebuild_clear, bucket, all_keys.iter());
            let call = some.iter().fold(call, |call, reference| call.arg(reference));
            let (_, mut reply) = self.ask_in(Stage::Rebuilding, epoch, call).await?.told()?;
            if reply.number()? == 0 {
                return Ok(());
            }
        }
    }

    async fn rebuild_fill(
        &self,
        epoch: u64,
        not_before: RegistryTime,
        filling: Filling<'_>,
    ) -> Result<(), Error> {
        let Filling { pool, seq, terms, live } = filling;
        let mut live = live.to_vec();
        in_order(&mut live);
        // A pool that nobody is in is opened as well.
        let parts: Vec<&[Session]> =
            if live.is_empty() { vec![&[]] } else { live.chunks(FILLED_SESSIONS_MAX).collect() };
        for part in parts {
            let call = self.on_pool(&SCRIPTS.rebuild_fill, pool);
            let call = with_what_is_known(call, pool, seq, terms, part).arg(not_before.as_millis());
            self.ask_in(Stage::Rebuilding, epoch, call).await?;
        }
        self.remember_all(pool, &live);
        Ok(())
    }

    async fn rebuild_finish(
        &self,
        bucket: Bucket,
        epoch: u64,
        identity: Option<&Identity>,
    ) -> Result<(), Error> {
        let identity = match identity {
            Some(identity) => identity.clone(),
            None => self.look_at_head(bucket).await?.0,
        };
        let served = stamp(Stage::Serving, epoch, &identity);
        let call = Call::on_bucket(&SCRIPTS.rebuild_finish, bucket, self.keys.of(bucket)).arg(served);
        self.ask_in(Stage::Rebuilding, epoch, call).await?;
        Ok(())
    }
}

impl RedisRegistry {
    async fn condition(&self, bucket: Bucket) -> Condition {
        match self.look_at_head(bucket).await {
            Ok((server, head)) => {
                let state = match head {
                    None => State::Missing,
                    Some(Head { stage: Stage::Rebuilding, epoch, .. }) => State::Rebuilding { epoch },
                    Some(Head { stage: Stage::Serving, epoch, identity, .. }) => {
                        State::Serving { epoch, identity: Some(identity) }
                    }
                };
                Condition { bucket, server: Some(server), state }
            }
            Err(_) => Condition { bucket, server: None, state: State::Unreachable },
        }
    }

    async fn look_at_head(&self, bucket: Bucket) -> Result<(Identity, Option<Head>), Error> {
        let look = redis::cmd("GET").arg(&self.keys.of(bucket).head).take();
        let asked =
            self.way.servers.ask(self.slots.of(bucket), None, Again::Never, |_| Cow::Borrowed(&look)).await;
        let (up, read) = asked.map_err(failed)?;
        let head: Option<Vec<u8>> = from_redis_value(read).map_err(|_| Garbled("the head of a bucket"))?;
        Ok((up.identity.clone(), head_of(head.as_deref())?))
    }
}
