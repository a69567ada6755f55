//! The test harness that each backend supplies.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use seatkeeper_core::{RegistryTime, Span};

use super::plan::Plan;
use super::pool::TestPool;
use crate::Registry;

/// Bound of the journal of a clause's registry.
pub const JOURNAL_EVENTS_MAX: usize = 300;

/// Returns the number of runs of a clause: `SEATKEEPER_CONFORMANCE_ROUNDS`, by default 1. Every run has a new
/// registry.
pub fn rounds() -> u64 {
    std::env::var("SEATKEEPER_CONFORMANCE_ROUNDS")
        .map_or(1, |rounds| rounds.parse().expect("a number of rounds"))
}

/// A running clause.
pub type Run = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A clause's name, and the function that starts the clause.
pub type Clause = (&'static str, fn() -> Run);

/// A backend under test. Each clause starts its own.
pub trait Harness: Sized + Send + Sync {
    /// Starts an empty registry, which admits no session while `journal_events_max` events wait in its
    /// journal.
    fn start(journal_events_max: usize) -> impl Future<Output = Self> + Send;

    /// Returns a node's registry. With several nodes, each call may return the registry of another node.
    fn registry(&self) -> Arc<dyn Registry>;

    /// Waits until the registry's clock is at least `span` later. A harness with a real clock panics after a
    /// deadline.
    fn let_pass(&self, span: Span) -> impl Future<Output = ()> + Send;

    /// Returns a TTL short enough to wait for, and long enough for a hundred calls.
    fn ttl(&self) -> Span;

    /// Sets the registry's clock back by `span`. Returns false, and leaves the clock alone, if a test cannot
    /// set the clock.
    fn set_clock_back(&self, _span: Span) -> impl Future<Output = bool> + Send {
        async { false }
    }

    /// Lets `span` pass as a pause of the process that holds the sessions. Returns false, and lets no time pass, if the
    /// sessions are not in this process.
    fn pause(&self, _span: Span) -> impl Future<Output = bool> + Send {
        async { false }
    }
}

/// Helpers of clauses on a harness.
pub(super) trait Scene: Harness {
    /// Opens an empty pool.
    fn pool(&self, plan: Plan) -> impl Future<Output = TestPool> + Send {
        async move {
            let pool = self.pool_not_open(plan);
            pool.open(0, Vec::new()).await;
            pool
        }
    }

    /// Returns a pool unknown to the registry.
    fn pool_not_open(&self, plan: Plan) -> TestPool {
        TestPool::new(self.registry(), plan, self.ttl())
    }

    /// Returns the registry's time.
    fn now(&self) -> impl Future<Output = RegistryTime> + Send {
        async { self.registry().now().await.expect("a registry knows the time") }
    }

    /// Lets the registry's clock advance, so that later events have a later time.
    fn let_a_moment_pass(&self) -> impl Future<Output = ()> + Send {
        self.let_pass(Span::from_millis(2))
    }
}

impl<H: Harness> Scene for H {}
