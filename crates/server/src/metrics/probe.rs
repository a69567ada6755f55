//! Cached probes of slow sources: throttled, single flight, and with a bounded wait.
//!
//! A reader never waits longer than `patience` and then gets the last known value.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tokio::sync::watch;

use crate::error::Error;

/// Time limit of a probe. A longer probe has failed.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// Maximum of the rest that follows from [`Source::RESTS`].
const REST_MAX: Duration = Duration::from_secs(60);

/// A source that can be probed.
#[async_trait]
pub(crate) trait Source: Send + Sync + 'static {
    /// The result of a probe.
    type Snapshot: Send + Sync + 'static;

    /// The rest after a probe, as a multiple of the probe's duration. Costly probes stay a small share of a
    /// source's work.
    const RESTS: u32 = 20;

    /// Probes the source.
    async fn probe(&self) -> Result<Self::Snapshot, Error>;
}

/// A cached probe of a source. Clones share the cache.
pub(crate) struct CachedProbe<S: Source>(Arc<Inner<S>>);

struct Inner<S: Source> {
    source: S,
    age_max: Duration,
    patience: Duration,
    /// Set while a probe is in flight.
    busy: AtomicBool,
    known: watch::Sender<CachedSnapshot<S::Snapshot>>,
}

struct CachedSnapshot<T> {
    /// `None` before the first probe and after a failed probe.
    seen: Option<Arc<T>>,
    /// The time until which no new probe is needed.
    fresh_until: Option<Instant>,
}

impl<S: Source> CachedProbe<S> {
    /// Creates an empty cache. A result stays fresh for at least `age_max`. A reader waits up to `patience`
    /// for a probe in flight, and then gets the last known result.
    pub(crate) fn new(source: S, age_max: Duration, patience: Duration) -> Self {
        let known = watch::Sender::new(CachedSnapshot { seen: None, fresh_until: None });
        Self(Arc::new(Inner { source, age_max, patience, busy: AtomicBool::new(false), known }))
    }

    /// Returns the last result, without a probe.
    pub(crate) fn known(&self) -> Option<Arc<S::Snapshot>> {
        self.0.known.borrow().seen.clone()
    }

    /// Returns the probed source.
    pub(crate) fn source(&self) -> &S {
        &self.0.source
    }

    /// Returns the latest result, after a new probe if the cached result is stale.
    pub(crate) async fn latest(&self) -> Option<Arc<S::Snapshot>> {
        let inner = &self.0;
        let mut news = inner.known.subscribe();
        let is_fresh = news.borrow().fresh_until.is_some_and(|until| Instant::now() < until);
        if !is_fresh && inner.busy.compare_exchange(false, true, AcqRel, Acquire).is_ok() {
            let inner = Arc::clone(inner);
            tokio::spawn(async move { inner.probe().await });
        }
        if inner.busy.load(Acquire) {
            // A timeout is no failure: the last known result is returned in either case.
            let _ = tokio::time::timeout(inner.patience, news.changed()).await;
        }
        self.known()
    }
}

impl<S: Source> Inner<S> {
    async fn probe(&self) {
        let began = Instant::now();
        let probe = AssertUnwindSafe(tokio::time::timeout(LOOK_MAX, self.source.probe())).catch_unwind();
        let seen = match probe.await {
            Ok(Ok(Ok(seen))) => Some(Arc::new(seen)),
            Ok(Ok(Err(error))) => {
                tracing::debug!(
                    causes = error.with_causes(),
                    "a probe for metrics failed; the figures are absent until a probe succeeds"
                );
                None
            }
            Ok(Err(_)) | Err(_) => {
                tracing::debug!(
                    "a probe for metrics timed out or panicked; the figures are absent until a probe succeeds"
                );
                None
            }
        };
        let now = Instant::now();
        let rest = if seen.is_some() { ((now - began) * S::RESTS).min(REST_MAX) } else { Duration::ZERO };
        let fresh_until = Some(now + rest.max(self.age_max));
        self.known.send_modify(|known| *known = CachedSnapshot { seen, fresh_until });
        self.busy.store(false, Release);
    }
}

impl<S: Source> Clone for CachedProbe<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Source> fmt::Debug for CachedProbe<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CachedProbe").field("age_max", &self.0.age_max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
