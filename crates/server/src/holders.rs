//! The list of holders in a denial. Denials of one license in flight together share a single read of the pool. A
//! license that was full a moment ago is most likely full again, so its holders are read while the claim runs.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::PoolId;
use seatkeeper_engine::Engine;
use seatkeeper_registry::Live;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::times::text_of;

/// Maximum of holders in a denial: enough to know whom to ask.
const HOLDERS_SHOWN_MAX: usize = 20;

/// A pool counts as full for this span after a denial. A pool that keeps denying stays full; the first admission
/// after a denial costs one needless read.
const FULL_FOR: Duration = Duration::from_secs(2);

/// Number of places. A pool that is full and another pool of the same place replace each other, and do not share reads.
const PLACES: usize = 4_096;

/// The pools whose holders are being read, and the pools that were full a moment ago, in places by the hash of the pool.
pub(crate) struct Holders {
    places: Box<[Mutex<Place>]>,
    hasher: RandomState,
}

/// The state of the pools of one place.
#[derive(Default)]
struct Place {
    full: Option<FullPool>,
    reading: Option<Reading>,
}

/// A pool that was full.
#[derive(Clone, Copy)]
struct FullPool {
    hash: u64,
    denied: Instant,
}

/// A pool whose holders are being read, with the number of callers that wait for a list.
struct Reading {
    pool: PoolId,
    waiting: usize,
    read: Arc<SharedRead>,
}

/// The reads of one pool, one at a time.
#[derive(Default)]
struct SharedRead {
    /// Number of callers so far. A list read after the caller came is fresh enough for the caller.
    callers: AtomicU64,
    latest: tokio::sync::Mutex<Latest>,
}

/// The result of the latest read, and the number of callers that had come when the read began.
struct Latest {
    covers: u64,
    list: Result<Arc<RawValue>, HoldersUnread>,
}

/// Error: the holders could not be read. The log has the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HoldersUnread;

impl Default for Holders {
    fn default() -> Self {
        Self { places: (0..PLACES).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }
}

impl Holders {
    /// Returns the holders of a pool, unread. The hash of the pool is computed here, once for all calls.
    pub(crate) fn pool<'a>(&'a self, pool: &'a PoolId) -> PoolHolders<'a> {
        let hash = self.hasher.hash_one(pool);
        PoolHolders { place: &self.places[hash as usize % PLACES], hash, pool }
    }
}

/// The holders of one pool.
#[derive(Clone, Copy)]
pub(crate) struct PoolHolders<'a> {
    place: &'a Mutex<Place>,
    hash: u64,
    pool: &'a PoolId,
}

impl PoolHolders<'_> {
    /// Notes that a claim on the pool was denied because the pool is full.
    pub(crate) fn note_full(&self) {
        self.note_full_at(Instant::now());
    }

    /// Returns whether a claim on the pool was denied a moment ago.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full_at(Instant::now())
    }

    fn note_full_at(&self, now: Instant) {
        self.place.lock().full = Some(FullPool { hash: self.hash, denied: now });
    }

    fn was_full_at(&self, now: Instant) -> bool {
        let noted = self.place.lock().full;
        noted.is_some_and(|full| full.hash == self.hash && now.duration_since(full.denied) < FULL_FOR)
    }

    /// Returns the holders as a JSON array, the stalest first, as of a moment during this call. The array is empty for a
    /// pool that is not open. A failed read is logged once for all callers that share the read.
    pub(crate) async fn list(&self, engine: &Engine) -> Result<Arc<RawValue>, HoldersUnread> {
        let caller = HoldersCaller::new(self);
        let view = async {
            let view = engine.view(self.pool, HOLDERS_SHOWN_MAX).await.map_err(|error| {
                let causes = seatkeeper_engine::with_causes(&error);
                tracing::warn!(
                    %causes,
                    "reading the holders of a full license failed: its denials are sent without the list"
                );
                HoldersUnread
            })?;
            let sessions = view.map(|view| view.sessions).unwrap_or_default();
            Ok(json(sessions.iter().map(HolderShown::from_live)))
        };
        caller.read.list(view).await
    }
}

/// A caller that waits for a list. The drop of the last caller clears the place, also after a client went away.
struct HoldersCaller<'a> {
    place: &'a Mutex<Place>,
    read: Arc<SharedRead>,
}

impl<'a> HoldersCaller<'a> {
    /// Joins the reads of the pool. While the place has the reads of another pool, the caller reads alone.
    fn new(holders: &PoolHolders<'a>) -> Self {
        let PoolHolders { place, pool, .. } = *holders;
        let mut state = place.lock();
        let reading = state.reading.get_or_insert_with(|| Reading {
            pool: pool.clone(),
            waiting: 0,
            read: Arc::default(),
        });
        if reading.pool != *pool {
            return Self { place, read: Arc::default() };
        }
        reading.waiting += 1;
        Self { place, read: Arc::clone(&reading.read) }
    }
}

impl Drop for HoldersCaller<'_> {
    fn drop(&mut self) {
        let mut state = self.place.lock();
        let Some(reading) = &mut state.reading else { return };
        if !Arc::ptr_eq(&reading.read, &self.read) {
            return;
        }
        reading.waiting -= 1;
        if reading.waiting == 0 {
            state.reading = None;
        }
    }
}

impl SharedRead {
    /// Returns the result of `read`, or of another caller's read that began during this call. Callers share a failure as
    /// well as a list.
    async fn list(
        &self,
        read: impl Future<Output = Result<Arc<RawValue>, HoldersUnread>>,
    ) -> Result<Arc<RawValue>, HoldersUnread> {
        let number = self.callers.fetch_add(1, Ordering::SeqCst) + 1;
        let mut latest = self.latest.lock().await;
        if latest.covers < number {
            let covers = self.callers.load(Ordering::SeqCst);
            *latest = Latest { covers, list: read.await };
        }
        latest.list.clone()
    }
}

impl Default for Latest {
    fn default() -> Self {
        Self { covers: 0, list: Ok(json([].into_iter())) }
    }
}

fn json<'a>(holders: impl Iterator<Item = HolderShown<'a>>) -> Arc<RawValue> {
    // Serialisation of texts cannot fail.
    to_raw_value(&holders.collect::<Vec<_>>()).unwrap_or_default().into()
}

/// The holder of a seat, as shown in a denial.
#[derive(Serialize)]
struct HolderShown<'a> {
    machine_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instance_id: Option<&'a str>,
    since: String,
    last_heartbeat_at: String,
}

impl<'a> HolderShown<'a> {
    fn from_live(live: &'a Live) -> Self {
        let (machine_id, instance_id) = live.session.holder.parts();
        let (since, last_heartbeat_at) =
            (text_of(live.session.started), text_of(live.session.last_heartbeat));
        Self { machine_id, instance_id, since, last_heartbeat_at }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::poll;
    use seatkeeper_core::PoolKind;
    use tokio::time::timeout;

    use super::*;

    fn list_number(number: u32) -> Arc<RawValue> {
        to_raw_value(&number).expect("a number is JSON").into()
    }

    #[tokio::test]
    async fn callers_share_a_read_that_began_after_they_came() {
        let (read, reads) = (SharedRead::default(), AtomicU64::new(0));
        let (open, gate) = tokio::sync::watch::channel(false);
        let number_of_read = || {
            let mut gate = gate.clone();
            let reads = &reads;
            async move {
                let number = reads.fetch_add(1, Ordering::SeqCst) + 1;
                gate.wait_for(|is_open| *is_open).await.expect("the gate opens");
                Ok(list_number(number as u32))
            }
        };
        let mut first = Box::pin(read.list(number_of_read()));
        assert!(poll!(&mut first).is_pending());
        let mut later: Vec<_> = (0..10).map(|_| Box::pin(read.list(number_of_read()))).collect();
        for caller in &mut later {
            assert!(poll!(caller).is_pending(), "a read before the caller is not fresh enough");
        }
        open.send_replace(true);
        assert_eq!(first.await.expect("a list").get(), "1");
        for caller in later {
            let list = timeout(Duration::from_secs(30), caller).await.expect("in time");
            assert_eq!(list.expect("a list").get(), "2", "ten callers share the second read");
        }
    }

    #[tokio::test]
    async fn callers_share_the_failure_of_a_read() {
        let (read, reads) = (SharedRead::default(), AtomicU64::new(0));
        let failing = || {
            let reads = &reads;
            async move {
                reads.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
                Err(HoldersUnread)
            }
        };
        let (first, second, third) =
            tokio::join!(read.list(failing()), read.list(failing()), read.list(failing()));
        for list in [first, second, third] {
            assert_eq!(list.expect_err("no list"), HoldersUnread);
        }
        assert_eq!(reads.load(Ordering::SeqCst), 2, "the later callers share the second read");
        let list = read.list(async { Ok(list_number(3)) }).await;
        assert_eq!(list.expect("a list").get(), "3", "a later caller reads anew");
    }

    #[test]
    fn a_pool_counts_as_full_for_a_while_after_a_denial() {
        let (holders, began) = (Holders::default(), Instant::now());
        let [photo, video] =
            ["photo", "video"].map(|name| PoolId::new(PoolKind::License, "acme".into(), name));
        assert!(!holders.pool(&photo).was_full_at(began));
        holders.pool(&photo).note_full_at(began);
        assert!(holders.pool(&photo).was_full_at(began + FULL_FOR / 2));
        assert!(!holders.pool(&video).was_full_at(began));
        assert!(!holders.pool(&photo).was_full_at(began + FULL_FOR));
    }

    #[test]
    fn the_last_caller_to_leave_clears_the_place() {
        let (holders, pool) = (Holders::default(), PoolId::new(PoolKind::License, "acme".into(), "photo"));
        let holders = holders.pool(&pool);
        let callers = [HoldersCaller::new(&holders), HoldersCaller::new(&holders)];
        assert!(Arc::ptr_eq(&callers[0].read, &callers[1].read));
        for caller in callers {
            assert!(holders.place.lock().reading.is_some());
            drop(caller);
        }
        assert!(holders.place.lock().reading.is_none());
    }

    #[test]
    fn pools_in_one_place_do_not_share_reads() {
        let place = Mutex::default();
        let [photo, video] =
            ["photo", "video"].map(|name| PoolId::new(PoolKind::License, "acme".into(), name));
        let [photo, video] = [&photo, &video].map(|pool| PoolHolders { place: &place, hash: 1, pool });
        let first = HoldersCaller::new(&photo);
        let other = HoldersCaller::new(&video);
        assert!(!Arc::ptr_eq(&first.read, &other.read));
        drop(other);
        let second = HoldersCaller::new(&photo);
        assert!(Arc::ptr_eq(&first.read, &second.read), "the reader of the other pool cleared no place");
    }

    #[tokio::test]
    async fn a_caller_that_left_leaves_the_read_to_the_next() {
        let read = SharedRead::default();
        let mut first = Box::pin(read.list(std::future::pending()));
        assert!(poll!(&mut first).is_pending());
        let second = read.list(async { Ok(list_number(2)) });
        drop(first);
        assert_eq!(second.await.expect("a list").get(), "2");
    }
}
