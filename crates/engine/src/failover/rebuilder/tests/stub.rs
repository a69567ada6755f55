//! A registry without sessions, whose buckets are on a server each, and whose steps of a rebuild can fall silent.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{
    Authority, Bucket, EndReason, LatestHeartbeat, Origin, PoolId, RegistryTime, Session, SessionId, Terms,
};
use seatkeeper_registry::{
    Admission, Claimed, Condition, Ended, EndedAll, Error, Expiry, Filling, Heartbeat, Identity, Journal,
    JournalEntry, JournalRead, Live, PoolView, Pools, Rebuild, Receipt, Request, Sessions, State, Swept,
};

/// A step of a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SilentStep {
    Begin,
    Journal,
    Clear,
}

/// A function called with each bucket before the bucket is cleared.
type OnClear = Box<dyn Fn(Bucket) -> bool + Send + Sync>;

#[derive(Default)]
pub(super) struct StubRegistry {
    silent: Mutex<BTreeSet<(SilentStep, Bucket)>>,
    /// The number of calls without an answer.
    pub(super) silences: AtomicUsize,
    on_clear: Mutex<Option<OnClear>>,
    noted: Mutex<Vec<bool>>,
}

impl StubRegistry {
    /// Lets a step time out for `buckets`, and for no others.
    pub(super) fn fall_silent<const N: usize>(&self, step: SilentStep, buckets: [Bucket; N]) {
        let mut silent = self.silent.lock();
        silent.retain(|(other, _)| *other != step);
        silent.extend(buckets.map(|bucket| (step, bucket)));
    }

    /// Notes the result of `note` whenever a bucket is cleared.
    pub(super) fn on_clear(&self, note: impl Fn(Bucket) -> bool + Send + Sync + 'static) {
        *self.on_clear.lock() = Some(Box::new(note));
    }

    pub(super) fn noted_at_clears(&self) -> Vec<bool> {
        self.noted.lock().clone()
    }

    fn answer(&self, step: SilentStep, bucket: Bucket) -> Result<(), Error> {
        if !self.silent.lock().contains(&(step, bucket)) {
            return Ok(());
        }
        self.silences.fetch_add(1, SeqCst);
        Err(Error::TimedOut)
    }
}

#[async_trait]
impl Rebuild for StubRegistry {
    async fn conditions(&self) -> Vec<Condition> {
        let server = |bucket: Bucket| Some(Identity(format!("server of {bucket:?}").into()));
        let missing = |bucket| Condition {
            server: server(bucket),
            state: State::Missing,
            ..Condition::unreachable(bucket)
        };
        Bucket::all().map(missing).collect()
    }

    async fn rebuild_begin(&self, bucket: Bucket, _epoch: u64) -> Result<(), Error> {
        self.answer(SilentStep::Begin, bucket)
    }

    async fn rebuild_journal(
        &self,
        bucket: Bucket,
        _epoch: u64,
        _after: Option<Receipt>,
        _max: usize,
    ) -> Result<Vec<JournalEntry>, Error> {
        self.answer(SilentStep::Journal, bucket).map(|()| Vec::new())
    }

    async fn rebuild_clear(
        &self,
        bucket: Bucket,
        _epoch: u64,
        _not_before: RegistryTime,
    ) -> Result<(), Error> {
        if let Some(note) = &*self.on_clear.lock() {
            self.noted.lock().push(note(bucket));
        }
        self.answer(SilentStep::Clear, bucket)
    }

    async fn rebuild_fill(&self, _epoch: u64, _pool: Filling<'_>) -> Result<(), Error> {
        Ok(())
    }

    async fn rebuild_finish(
        &self,
        _bucket: Bucket,
        _epoch: u64,
        _identity: Option<&Identity>,
    ) -> Result<(), Error> {
        Ok(())
    }
}

const NO_STEP: &str = "a rebuild does not call this function";

#[async_trait]
impl Admission for StubRegistry {
    async fn open(&self, _: &PoolId, _: u64, _: Option<Terms>, _: Vec<Session>) -> Result<(), Error> {
        unreachable!("{NO_STEP}")
    }

    async fn claim(&self, _: Request<'_>) -> Result<Claimed, Error> {
        unreachable!("{NO_STEP}")
    }
}

#[async_trait]
impl Sessions for StubRegistry {
    async fn heartbeat(&self, _: SessionId, _: &Authority, _: &Origin) -> Result<Heartbeat, Error> {
        unreachable!("{NO_STEP}")
    }

    async fn end(&self, _: SessionId, _: &Authority, _: EndReason, _: &Origin) -> Result<Ended, Error> {
        unreachable!("{NO_STEP}")
    }

    async fn session(&self, _: SessionId, _: &Authority) -> Result<Option<Live>, Error> {
        unreachable!("{NO_STEP}")
    }

    async fn renewed_since(&self, _: Bucket, _: RegistryTime) -> Result<Vec<LatestHeartbeat>, Error> {
        unreachable!("{NO_STEP}")
    }
}

#[async_trait]
impl Pools for StubRegistry {
    async fn end_all(&self, _: &PoolId, _: EndReason, _: &Origin) -> Result<EndedAll, Error> {
        unreachable!("{NO_STEP}")
    }

    async fn revise(&self, _: &PoolId, _: Terms, _: &Origin) -> Result<EndedAll, Error> {
        unreachable!("{NO_STEP}")
    }

    async fn view(&self, _: &PoolId, _: usize) -> Result<PoolView, Error> {
        unreachable!("{NO_STEP}")
    }
}

#[async_trait]
impl Expiry for StubRegistry {
    async fn now(&self) -> Result<RegistryTime, Error> {
        unreachable!("{NO_STEP}")
    }

    async fn sweep(&self, _: Bucket, _: usize) -> Result<Swept, Error> {
        unreachable!("{NO_STEP}")
    }

    async fn due(&self, _: Bucket) -> Result<Option<RegistryTime>, Error> {
        unreachable!("{NO_STEP}")
    }
}

#[async_trait]
impl Journal for StubRegistry {
    async fn journal_read(&self, _: usize) -> Result<JournalRead, Error> {
        unreachable!("{NO_STEP}")
    }

    async fn journal_acknowledge(&self, _: Receipt) -> Result<(), Error> {
        unreachable!("{NO_STEP}")
    }

    fn journal_depth(&self) -> usize {
        0
    }

    async fn journal_woken(&self) {
        std::future::pending().await
    }

    async fn journal_end(&self, _: Bucket) -> Result<Receipt, Error> {
        unreachable!("{NO_STEP}")
    }
}
