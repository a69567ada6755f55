//! Finding the pool of a session: remembered, told by the record, found in the journal, or searched for.

use std::borrow::Cow;
use std::time::Duration;

use seatkeeper_core::{Authority, Bucket, Change, Event, PoolId, Session, SessionId};
use seatkeeper_redis::Retry;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::RedisRegistry;
use super::codec::{Garbled, KeptPool, id_of};
use super::keys::{Key, PoolKeys};
use super::whereabouts::{Clue, Found, Whereabouts};
use crate::Error;
use crate::contract::Journal;

/// The outcome of a search for a session.
#[derive(Debug)]
pub(super) enum Search {
    /// The session is, or was, in this pool.
    Found(Whereabouts),
    /// Neither the record nor the journal has it.
    NeverWas,
    /// There is no record, and the bucket does not have it.
    Missed,
}

/// When each bucket was last searched.
#[derive(Debug)]
pub(super) struct Searches(Box<[Mutex<Option<Instant>>]>);

impl Searches {
    pub(super) fn new() -> Self {
        Self(Bucket::all().map(|_| Mutex::default()).collect())
    }

    fn of(&self, bucket: Bucket) -> &Mutex<Option<Instant>> {
        &self.0[usize::from(bucket.number())]
    }
}

/// Pools, or sessions of a large one, that a search reads at a time.
const SEARCH_PAGE: usize = 200;

/// The shortest time between two searches of a bucket while the ledger cannot be read.
const SEARCH_PAUSE: Duration = Duration::from_secs(2);

/// The shortest time between two searches of a bucket while the ledger can be read. Each session that another node admits
/// in between costs a query.
const WARM_SEARCH_PAUSE: Duration = Duration::from_secs(300);

/// Sessions of a large pool that a search of its bucket reads at a time.
const LARGE_PAGE: usize = 1_000;

/// Bytes of a session's id, with which a session of a large pool begins.
const ID_BYTES: usize = 16;

/// Events of a journal that a search reads at a time.
const JOURNAL_PAGE: usize = 1_000;

impl RedisRegistry {
    /// Finds where a session is. It need not be live any more.
    pub(super) async fn find(&self, id: SessionId, who: &Authority) -> Result<Search, Error> {
        match self.remembered.get(id) {
            Some(whereabouts) => Ok(Search::Found(whereabouts)),
            // Seldom, and large: whoever finds it remembered does not carry it about.
            None => Box::pin(self.look_for(id, who)).await,
        }
    }

    async fn look_for(&self, id: SessionId, who: &Authority) -> Result<Search, Error> {
        // A node that has just come knows no session. One search of a bucket saves a query for each of its sessions.
        if let Some(whereabouts) = self.search_bucket(id, WARM_SEARCH_PAUSE).await? {
            return Ok(Search::Found(whereabouts));
        }
        // Acknowledged events are on record. With an empty journal one look at the record is enough.
        let end = self.journal_end(id.bucket()).await?;
        let nothing_waits = self.backlog.is_acknowledged(end);
        let search = match self.finder.find(id, who).await {
            Found::In(pool, holder) => Search::Found(Whereabouts::of(pool, holder.as_ref())),
            Found::NotOnRecord if nothing_waits => Search::NeverWas,
            Found::NotOnRecord => match self.search_journal(id).await? {
                Some(whereabouts) => Search::Found(whereabouts),
                // It may have left the journal since the record was looked at.
                None => match self.finder.find(id, who).await {
                    Found::In(pool, holder) => Search::Found(Whereabouts::of(pool, holder.as_ref())),
                    Found::NotOnRecord => Search::NeverWas,
                    Found::NoRecord | Found::Unknown(_) => {
                        return Err(Error::NotServing { bucket: id.bucket() });
                    }
                },
            },
            Found::NoRecord => {
                let found = self.search_bucket(id, Duration::ZERO).await?;
                found.map_or(Search::Missed, Search::Found)
            }
            Found::Unknown(why) => {
                if let Some(why) = why {
                    tracing::warn!(
                        error = &*why as &dyn std::error::Error,
                        "the record does not tell a session's pool: its bucket is searched"
                    );
                }
                // A session that is not found may have come since the bucket was searched: nobody is told that it is over.
                let found = self.search_bucket(id, SEARCH_PAUSE).await?;
                Search::Found(found.ok_or(Error::NotServing { bucket: id.bucket() })?)
            }
        };
        if let Search::Found(whereabouts) = &search {
            self.remembered.note(id, whereabouts.clone());
        }
        Ok(search)
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

    /// Looks for a session in all pools of its bucket, and remembers every session that it comes by. A bucket that was searched
    /// within `pause` is not searched again, whoever asks for however many sessions.
    async fn search_bucket(&self, id: SessionId, pause: Duration) -> Result<Option<Whereabouts>, Error> {
        let mut searched = self.searches.of(id.bucket()).lock().await;
        let found = self.remembered.get(id);
        if found.is_some() || searched.is_some_and(|searched| searched.elapsed() < pause) {
            return Ok(found);
        }
        *searched = Some(Instant::now());
        let (bucket, mut cursor, mut found) = (id.bucket(), 0, None);
        loop {
            let mut scan = redis::cmd("ZSCAN");
            scan.arg(&self.keys.of(bucket).due).arg(cursor).arg("COUNT").arg(SEARCH_PAGE);
            let (next, page): (u64, Vec<Vec<u8>>) = self.query(bucket, &scan).await?;
            let references = page
                .iter()
                .step_by(2)
                .map(|reference| Key::try_from(&**reference).map_err(|_| Garbled("a name in the due-index")));
            let references = references.collect::<Result<Vec<_>, _>>()?;
            found = self.search_pools(bucket, &references, id).await?.or(found);
            if next == 0 {
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// Looks for a session in some pools, which are read in one command.
    async fn search_pools(
        &self,
        bucket: Bucket,
        references: &[Key],
        id: SessionId,
    ) -> Result<Option<Whereabouts>, Error> {
        if references.is_empty() {
            return Ok(None);
        }
        let keys: Vec<_> = references.iter().map(|key| PoolKeys::in_bucket(bucket, *key).pool).collect();
        let kept: Vec<Option<Vec<u8>>> = self.query(bucket, redis::cmd("MGET").arg(keys)).await?;
        let mut found = None;
        for kept in kept.into_iter().flatten() {
            let KeptPool { pool, sessions } = KeptPool::of(&kept)?;
            match sessions {
                Some(sessions) => {
                    for session in sessions {
                        let whereabouts = Whereabouts::of(pool.clone(), Some(&session.holder));
                        if session.id == id {
                            found = Some(whereabouts.clone());
                        }
                        self.remembered.note(session.id, whereabouts);
                    }
                }
                None => found = self.search_all_of(&pool, id).await?.or(found),
            }
        }
        Ok(found)
    }

    /// Looks for a session among all of a large pool, and remembers each of them.
    async fn search_all_of(&self, pool: &PoolId, id: SessionId) -> Result<Option<Whereabouts>, Error> {
        let (bucket, keys) = (pool.bucket(), PoolKeys::of(pool));
        let (mut cursor, mut found) = (0, None);
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&keys.sessions).arg(cursor).arg("COUNT").arg(LARGE_PAGE);
            let (next, page): (u64, Vec<Vec<u8>>) = self.query(bucket, &scan).await?;
            let (sessions, _) = page.as_chunks();
            for [key, session] in sessions {
                let key = Key::try_from(&**key).map_err(|_| Garbled("a key of a large pool"))?;
                let whereabouts = Whereabouts { pool: pool.clone(), clue: Clue::Is(key) };
                let session = id_of(session.get(..ID_BYTES).unwrap_or_default())?;
                if session == id {
                    found = Some(whereabouts.clone());
                }
                self.remembered.note(session, whereabouts);
            }
            if next == 0 {
                return Ok(found);
            }
            cursor = next;
        }
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
            .requests
            .servers
            .call(self.slots.of(bucket), None, Retry::WhenCutOff, |_| Cow::Borrowed(command))
            .await;
        T::from_redis_value(asked?.value).map_err(|_| Garbled("an answer is of another kind").into())
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
