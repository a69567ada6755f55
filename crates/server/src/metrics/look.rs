//! What must be looked up: seldom, by one at a time, and waited for by nobody for long.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::FutureExt as _;
use tokio::sync::watch;

use crate::error::Error;

/// How long a look may take. Past it, it has failed.
const LOOK_MAX: Duration = Duration::from_secs(5);

/// How long nobody looks again at most.
const REST_MAX: Duration = Duration::from_secs(60);

/// Where something is looked up.
#[async_trait]
pub(crate) trait Source: Send + Sync + 'static {
    /// What is seen there.
    type Seen: Send + Sync + 'static;

    /// For how many times as long as a look took nobody looks again: where it is work, it is a small part of all work.
    const RESTS: u32 = 20;

    /// Looks.
    async fn look(&self) -> Result<Self::Seen, Error>;
}

/// How it looked lately. A clone shares what it knows.
pub(crate) struct Look<S: Source>(Arc<Inner<S>>);

struct Inner<S: Source> {
    source: S,
    age_max: Duration,
    patience: Duration,
    /// Whether somebody looks now.
    busy: AtomicBool,
    known: watch::Sender<Known<S::Seen>>,
}

struct Known<T> {
    /// None: nobody has looked yet, or the latest look failed.
    seen: Option<Arc<T>>,
    /// Before then nobody needs to look again.
    fresh_until: Option<Instant>,
}

impl<S: Source> Look<S> {
    /// Nobody looks again for `age_max`. Who wants to know waits for `patience` while somebody looks, and then makes do
    /// with what is known.
    pub(crate) fn new(source: S, age_max: Duration, patience: Duration) -> Self {
        let known = watch::Sender::new(Known { seen: None, fresh_until: None });
        Self(Arc::new(Inner { source, age_max, patience, busy: AtomicBool::new(false), known }))
    }

    /// What is known, without looking.
    pub(crate) fn known(&self) -> Option<Arc<S::Seen>> {
        self.0.known.borrow().seen.clone()
    }

    /// Where it looks.
    pub(crate) fn source(&self) -> &S {
        &self.0.source
    }

    /// What is known after a look, if it is time for one.
    pub(crate) async fn latest(&self) -> Option<Arc<S::Seen>> {
        let inner = &self.0;
        let mut news = inner.known.subscribe();
        let is_fresh = news.borrow().fresh_until.is_some_and(|until| Instant::now() < until);
        if !is_fresh && inner.busy.compare_exchange(false, true, AcqRel, Acquire).is_ok() {
            let inner = Arc::clone(inner);
            tokio::spawn(async move { inner.look().await });
        }
        if inner.busy.load(Acquire) {
            // Whether it came in time makes no difference: what is known counts.
            let _ = tokio::time::timeout(inner.patience, news.changed()).await;
        }
        self.known()
    }
}

impl<S: Source> Inner<S> {
    async fn look(&self) {
        let began = Instant::now();
        let look = AssertUnwindSafe(tokio::time::timeout(LOOK_MAX, self.source.look())).catch_unwind();
        let seen = match look.await {
            Ok(Ok(Ok(seen))) => Some(Arc::new(seen)),
            Ok(Ok(Err(error))) => {
                tracing::debug!(causes = error.with_causes(), "figures for operators could not be looked up");
                None
            }
            Ok(Err(_)) | Err(_) => {
                tracing::debug!("figures for operators were not there in time");
                None
            }
        };
        let now = Instant::now();
        let rest = if seen.is_some() { ((now - began) * S::RESTS).min(REST_MAX) } else { Duration::ZERO };
        let fresh_until = Some(now + rest.max(self.age_max));
        self.known.send_modify(|known| *known = Known { seen, fresh_until });
        self.busy.store(false, Release);
    }
}

impl<S: Source> Clone for Look<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S: Source> fmt::Debug for Look<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Look").field("age_max", &self.0.age_max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
