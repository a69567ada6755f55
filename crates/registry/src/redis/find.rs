//! Finding the pool of a session: remembered, told by the record, found in the journal, or searched for.

use std::borrow::Cow;

use seatkeeper_core::{Authority, Bucket, Change, Event, PoolId, Session, SessionId};

use super::RedisRegistry;
use super::codec::{Garbled, KeptPool};
use super::keys::{Key, PoolKeys};
use super::link::failed;
use super::servers::Again;
use super::whereabouts::{Clue, Found, Whereabouts};
use crate::Error;

/// Pools, or sessions of a large one, that a search reads at a time.
const SEARCH_PAGE: usize = 200;

/// Events of a journal that a search reads at a time.
const JOURNAL_PAGE: usize = 1_000;

impl RedisRegistry {
    /// Where a session is; none if there is no such session. It need not be live any more.
    pub(super) async fn find(&self, id: SessionId, who: &Authority) -> Result<Option<Whereabouts>, Error> {
        match self.remembered.get(id) {
            Some(whereabouts) => Ok(Some(whereabouts)),
            // Seldom, and large: whoever finds it remembered does not carry it about.
            None => Box::pin(self.look_for(id, who)).await,
        }
    }

    async fn look_for(&self, id: SessionId, who: &Authority) -> Result<Option<Whereabouts>, Error> {
        let mut told = self.finder.find(id, who).await;
        let mut found = None;
        if matches!(told, Found::NotOnRecord) {
            found = self.search_journal(id).await?;
            if found.is_none() {
                // What has left the journal since the record was looked at is on record by now.
                told = self.finder.find(id, who).await;
            }
        }
        let found = match told {
            Found::In(pool, holder) => Some(Whereabouts::of(pool, holder.as_ref())),
            Found::NotOnRecord => found,
            Found::Unknown(why) => {
                if let Some(why) = why {
                    tracing::warn!(
                        error = &*why as &dyn std::error::Error,
                        "the record does not tell a session's pool"
                    );
                }
                self.search_bucket(id).await?
            }
        };
        if let Some(whereabouts) = &found {
            self.remembered.note(id, whereabouts.clone());
        }
        Ok(found)
    }

    /// A session that is not on record yet is in what waits for it.
    async fn search_journal(&self, id: SessionId) -> Result<Option<Whereabouts>, Error> {
        let mut after = None;
        loop {
            let entries = self.read_journal_after(id.bucket(), after, JOURNAL_PAGE).await?;
            let Some(last) = entries.last() else { return Ok(None) };
            after = Some(last.receipt);
            let began = entries.iter().find_map(|entry| began_as(&entry.event, id));
            if let Some(session) = began {
                return Ok(Some(session));
            }
        }
    }

    /// Looks through every pool of the session's bucket.
    async fn search_bucket(&self, id: SessionId) -> Result<Option<Whereabouts>, Error> {
        let bucket = id.bucket();
        let mut cursor = 0;
        loop {
            let mut scan = redis::cmd("ZSCAN");
            scan.arg(&self.keys.of(bucket).due).arg(cursor).arg("COUNT").arg(SEARCH_PAGE);
            let (next, found): (u64, Vec<Vec<u8>>) = self.query(bucket, &scan).await?;
            for reference in found.iter().step_by(2) {
                let reference =
                    Key::try_from(&**reference).map_err(|_| Garbled("a name in the due-index"))?;
                if let Some(whereabouts) = self.search_pool(bucket, reference, id).await? {
                    return Ok(Some(whereabouts));
                }
            }
            if next == 0 {
                return Ok(None);
            }
            cursor = next;
        }
    }

    async fn search_pool(
        &self,
        bucket: Bucket,
        reference: Key,
        id: SessionId,
    ) -> Result<Option<Whereabouts>, Error> {
        let keys = PoolKeys::in_bucket(bucket, reference);
        let kept: Option<Vec<u8>> = self.query(bucket, redis::cmd("GET").arg(&keys.pool)).await?;
        let Some(kept) = kept else { return Ok(None) };
        let KeptPool { pool, sessions } = KeptPool::of(&kept)?;
        let Some(sessions) = sessions else {
            let clue = self.search_large(&pool, id).await?;
            return Ok(matches!(clue, Clue::Is(_)).then_some(Whereabouts { pool, clue }));
        };
        let session = sessions.iter().find(|session| session.id == id);
        Ok(session.map(|session| Whereabouts::of(pool, Some(&session.holder))))
    }

    /// Looks through the sessions of a large pool.
    pub(super) async fn search_large(&self, pool: &PoolId, id: SessionId) -> Result<Clue, Error> {
        let (bucket, keys) = (pool.bucket(), PoolKeys::of(pool));
        let mut cursor = 0;
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&keys.sessions).arg(cursor).arg("COUNT").arg(SEARCH_PAGE);
            let (next, found): (u64, Vec<Vec<u8>>) = self.query(bucket, &scan).await?;
            for field in found.chunks_exact(2) {
                if field[1].starts_with(id.as_bytes()) {
                    let key = Key::try_from(&*field[0]).map_err(|_| Garbled("a key of a large pool"))?;
                    return Ok(Clue::Is(key));
                }
            }
            if next == 0 {
                return Ok(Clue::NotThere);
            }
            cursor = next;
        }
    }

    pub(super) async fn query<T: redis::FromRedisValue>(
        &self,
        bucket: Bucket,
        command: &redis::Cmd,
    ) -> Result<T, Error> {
        let asked = self
            .way
            .servers
            .ask(self.slots.of(bucket), None, Again::WhenCutOff, |_| Cow::Borrowed(command))
            .await;
        let (_, value) = asked.map_err(failed)?;
        T::from_redis_value(value).map_err(|_| Garbled("an answer is of another kind").into())
    }
}

/// Where a session began, if this event says so.
fn began_as(event: &Event, id: SessionId) -> Option<Whereabouts> {
    match &event.change {
        Change::Admitted { session, .. } if session.id == id => {
            let Session { holder, .. } = &**session;
            Some(Whereabouts::of(event.pool.clone(), Some(holder)))
        }
        Change::Admitted { .. } | Change::Ended { .. } | Change::Denied(_) => None,
    }
}
