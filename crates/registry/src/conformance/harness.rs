//! What a backend supplies to be put to the test.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use seatkeeper_core::{RegistryTime, Span};

use super::plan::Plan;
use super::pool::TestPool;
use crate::Registry;

/// How many events the journal of a clause's registry takes.
pub const JOURNAL_EVENTS_MAX: usize = 300;

/// A clause that runs.
pub type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A clause by its name, and what starts it.
pub type Clause = (&'static str, fn() -> Run);

/// One backend under test. Each clause starts one of its own.
pub trait Harness: Sized + Send + Sync {
    /// An empty registry, which takes no admission while `journal_events_max` events wait in its journal.
    fn start(journal_events_max: usize) -> impl Future<Output = Self> + Send;

    /// A node's way to the registry. Where there can be several nodes, each call may give another's.
    fn registry(&self) -> Arc<dyn Registry>;

    /// Lets time pass: once it returns, the clock that the registry reads is at least `span` later. A
    /// harness that waits panics if that does not happen within a deadline.
    fn let_pass(&self, span: Span) -> impl Future<Output = ()> + Send;

    /// A TTL short enough to be waited out, and long enough for a hundred calls.
    fn ttl(&self) -> Span;

    /// Sets the clock that the registry reads back by `span`, and says whether it could. A backend
    /// whose clock is out of a test's reach leaves it as it is.
    fn set_clock_back(&self, _span: Span) -> impl Future<Output = bool> + Send {
        async { false }
    }
}

/// What clauses say to a harness.
pub(super) trait Scene: Harness {
    /// An open pool that nobody is in.
    fn pool(&self, plan: Plan) -> impl Future<Output = TestPool> + Send {
        async move {
            let pool = self.pool_not_open(plan);
            pool.open(0, Vec::new()).await;
            pool
        }
    }

    /// A pool that the registry has not heard of.
    fn pool_not_open(&self, plan: Plan) -> TestPool {
        TestPool::new(self.registry(), plan, self.ttl())
    }

    /// The registry's time.
    fn now(&self) -> impl Future<Output = RegistryTime> + Send {
        async { self.registry().now().await.expect("a registry knows the time") }
    }

    /// Lets the registry's clock move on, so that what comes is later than what was.
    fn let_a_moment_pass(&self) -> impl Future<Output = ()> + Send {
        self.let_pass(Span::from_millis(2))
    }
}

impl<H: Harness> Scene for H {}
