//! The session locator: finds the pool of a session in the cache, in the bucket's admission ring, by a search
//! of the bucket, in the ledger, or in the journal. Only a definite answer of the ledger may say that a session
//! never existed.

use std::borrow::Cow;
use std::time::Duration;

use seatkeeper_core::{Authority, Bucket, Change, Event, PoolId, Session, SessionId};
use seatkeeper_redis::Retry;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::RedisRegistry;
use super::codec::{Garbled, KeptPool, id_of};
use super::keys::{Key, PoolKeys};
use super::session_location::{LocationHint, SearchResult, SessionLocation};
use crate::Error;

/// The outcome of a search for a session.
#[derive(Debug)]
pub(super) enum Search {
    /// The session is, or was, in a known pool.
    Found(SessionLocation),
    /// Neither the ledger nor the journal has the session.
    NeverWas,
    /// No ledger is attached, and the bucket does not have the session.
    Missed,
}

/// The latest search of each bucket.
#[derive(Debug)]
pub(super) struct Searches(Box<[Mutex<Option<LatestSearch>>]>);

/// The start and the epoch of a bucket's latest search.
#[derive(Clone, Copy, Debug)]
struct LatestSearch {
    at: Instant,
    epoch: u64,
}

impl Searches {
    pub(super) fn new() -> Self {
        Self(Bucket::all().map(|_| Mutex::default()).collect())
    }

    fn latest(&self, bucket: Bucket) -> &Mutex<Option<LatestSearch>> {
        &self.0[usize::from(bucket.number())]
    }
}

/// Pools, or sessions of a large pool, per page of a search.
pub(super) const SEARCH_PAGE: usize = 200;

/// Minimum interval between searches of a bucket while the ledger is unreachable.
const SEARCH_PAUSE: Duration = Duration::from_secs(2);

/// Minimum interval between searches of a bucket after a gap in the reads of its admission ring. Until the
/// search, each session admitted in the gap by another node costs a query of the ledger.
const GAP_SEARCH_PAUSE: Duration = Duration::from_secs(60);

/// Sessions of a large pool per page of a bucket search.
const LARGE_PAGE: usize = 1_000;

/// Bytes of the session id at the start of a large pool's session.
pub(super) const ID_BYTES: usize = 16;

/// Journal events per page of a search.
const JOURNAL_PAGE: usize = 1_000;

impl RedisRegistry {
    /// Finds the pool of a session, live or over.
    pub(super) async fn find(&self, id: SessionId, who: &Authority) -> Result<Search, Error> {
        match self.remembered.get(id) {
            Some(location) => Ok(Search::Found(location)),
            // Boxed, because the rare slow path would enlarge the future of the common fast path.
            None => Box::pin(self.look_for(id, who)).await,
        }
    }

    async fn look_for(&self, id: SessionId, who: &Authority) -> Result<Search, Error> {
        let end = self.read_admissions(id.bucket()).await?;
        if let Some(location) = self.remembered.get(id) {
            return Ok(Search::Found(location));
        }
        // A node that has just started knows no session. Searching the bucket once finds each session that
        // the admission ring no longer has.
        if !self.admissions_read.is_complete(end)
            && let Some(location) = self.search_bucket(id, GAP_SEARCH_PAUSE).await?
        {
            return Ok(Search::Found(location));
        }
        // The ledger has all acknowledged events. With an empty journal, one query of the ledger is enough.
        let nothing_waits = self.backlog.is_acknowledged(self.expect(end));
        let search = match self.locator.find(id, who).await {
            SearchResult::In(pool, holder) => Search::Found(SessionLocation::new(pool, holder.as_ref())),
            SearchResult::NotOnRecord if nothing_waits => Search::NeverWas,
            SearchResult::NotOnRecord => match self.search_journal(id).await? {
                Some(location) => Search::Found(location),
                // The admission may have left the journal since the first query of the ledger.
                None => match self.locator.find(id, who).await {
                    SearchResult::In(pool, holder) => {
                        Search::Found(SessionLocation::new(pool, holder.as_ref()))
                    }
                    SearchResult::NotOnRecord => Search::NeverWas,
                    SearchResult::NoRecord | SearchResult::Unknown(_) => {
                        return Err(Error::NotServing { bucket: id.bucket() });
                    }
                },
            },
            SearchResult::NoRecord => {
                let found = self.search_bucket(id, Duration::ZERO).await?;
                found.map_or(Search::Missed, Search::Found)
            }
            SearchResult::Unknown(why) => {
                if let Some(why) = why {
                    tracing::warn!(
                        error = &*why as &dyn std::error::Error,
                        "ledger lookup of a session's pool failed; searching the bucket in Redis instead"
                    );
                }
                // A session that the search missed may have started after the bucket was searched, so the
                // answer is an error, never "over".
                let found = self.search_bucket(id, SEARCH_PAUSE).await?;
                Search::Found(found.ok_or(Error::NotServing { bucket: id.bucket() })?)
            }
        };
        // A pool told by the caller's authority alone may be wrong: the session may be someone else's.
        if let Search::Found(location) = &search
            && !location.is_guess()
        {
            self.remembered.note(id, location.clone());
        }
        Ok(search)
    }

    /// Searches the unrecorded events of a bucket for the start of a session.
    async fn search_journal(&self, id: SessionId) -> Result<Option<SessionLocation>, Error> {
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

    /// Searches the bucket of a session. A bucket searched in this epoch less than `pause` ago is not searched again,
    /// for any session (single flight).
    async fn search_bucket(&self, id: SessionId, pause: Duration) -> Result<Option<SessionLocation>, Error> {
        let mut searched = self.searches.latest(id.bucket()).lock().await;
        let (bucket, found) = (id.bucket(), self.remembered.get(id));
        let epoch = self.epochs.get(bucket);
        let is_recent = |latest: LatestSearch| latest.epoch == epoch && latest.at.elapsed() < pause;
        if found.is_some() || searched.is_some_and(is_recent) {
            return Ok(found);
        }
        let search = LatestSearch { at: Instant::now(), epoch };
        let found = self.scan_bucket(bucket, id).await;
        // After a dropped call the search is not over, and the next call searches again.
        *searched = Some(search);
        found
    }

    /// Searches all pools of a bucket, and caches the location of every session on the way.
    async fn scan_bucket(&self, bucket: Bucket, id: SessionId) -> Result<Option<SessionLocation>, Error> {
        let before = self.admissions_read.before_search(bucket);
        let (mut cursor, mut found) = (0, None);
        loop {
            let mut scan = redis::cmd("ZSCAN");
            scan.arg(&self.keys.bucket(bucket).due).arg(cursor).arg("COUNT").arg(SEARCH_PAGE);
            let (next, page): (u64, Vec<Vec<u8>>) = self.query(bucket, &scan).await?;
            let references = page
                .iter()
                .step_by(2)
                .map(|reference| Key::try_from(&**reference).map_err(|_| Garbled("a name in the due-index")));
            let references = references.collect::<Result<Vec<_>, _>>()?;
            found = self.search_pools(bucket, &references, id).await?.or(found);
            if next == 0 {
                self.admissions_read.searched(bucket, before);
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// Searches some pools, read in one command.
    async fn search_pools(
        &self,
        bucket: Bucket,
        references: &[Key],
        id: SessionId,
    ) -> Result<Option<SessionLocation>, Error> {
        if references.is_empty() {
            return Ok(None);
        }
        let keys: Vec<_> = references.iter().map(|key| PoolKeys::in_bucket(bucket, *key).pool).collect();
        let kept: Vec<Option<Vec<u8>>> = self.query(bucket, redis::cmd("MGET").arg(keys)).await?;
        let mut found = None;
        for kept in kept.into_iter().flatten() {
            let KeptPool { pool, sessions } = KeptPool::decode(&kept)?;
            match sessions {
                Some(sessions) => {
                    for session in sessions {
                        let location = SessionLocation::new(pool.clone(), Some(&session.holder));
                        if session.id == id {
                            found = Some(location.clone());
                        }
                        self.remembered.note(session.id, location);
                    }
                }
                None => found = self.search_all_of(&pool, id).await?.or(found),
            }
        }
        Ok(found)
    }

    /// Searches a large pool, and caches the location of every session in the pool.
    async fn search_all_of(&self, pool: &PoolId, id: SessionId) -> Result<Option<SessionLocation>, Error> {
        let (bucket, keys) = (pool.bucket(), PoolKeys::new(pool));
        let (mut cursor, mut found) = (0, None);
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&keys.sessions).arg(cursor).arg("COUNT").arg(LARGE_PAGE);
            let (next, page): (u64, Vec<Vec<u8>>) = self.query(bucket, &scan).await?;
            let (sessions, _) = page.as_chunks();
            for [key, session] in sessions {
                let key = Key::try_from(&**key).map_err(|_| Garbled("a key of a large pool"))?;
                let location = SessionLocation { pool: pool.clone(), hint: LocationHint::Is(key) };
                let session = id_of(session.get(..ID_BYTES).unwrap_or_default())?;
                if session == id {
                    found = Some(location.clone());
                }
                self.remembered.note(session, location);
            }
            if next == 0 {
                return Ok(found);
            }
            cursor = next;
        }
    }

    /// Searches a large pool for one session.
    pub(super) async fn search_large(&self, pool: &PoolId, id: SessionId) -> Result<LocationHint, Error> {
        let (bucket, keys) = (pool.bucket(), PoolKeys::new(pool));
        let mut cursor = 0;
        loop {
            let mut scan = redis::cmd("HSCAN");
            scan.arg(&keys.sessions).arg(cursor).arg("COUNT").arg(SEARCH_PAGE);
            let (next, found): (u64, Vec<Vec<u8>>) = self.query(bucket, &scan).await?;
            for field in found.chunks_exact(2) {
                if field[1].starts_with(id.as_bytes()) {
                    let key = Key::try_from(&*field[0]).map_err(|_| Garbled("a key of a large pool"))?;
                    return Ok(LocationHint::Is(key));
                }
            }
            if next == 0 {
                return Ok(LocationHint::NotThere);
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
            .call(self.slots.get(bucket), None, Retry::WhenCutOff, |_| Cow::Borrowed(command))
            .await;
        T::from_redis_value(asked?.value).map_err(|_| Garbled("an answer is of another kind").into())
    }
}

/// Returns the location of a session if `event` admits the session.
fn began_as(event: &Event, id: SessionId) -> Option<SessionLocation> {
    match &event.change {
        Change::Admitted { session, .. } if session.id == id => {
            let Session { holder, .. } = &**session;
            Some(SessionLocation::new(event.pool.clone(), Some(holder)))
        }
        Change::Admitted { .. } | Change::Ended { .. } | Change::Denied(_) => None,
    }
}
