//! Records the expiry of sessions that are over, also of old sessions, and with the sweeper off.
//!
//! A sweep is an atomic step of the registry and idempotent, so the job needs no fencing token.

use async_trait::async_trait;
use seatkeeper_core::Span;
use seatkeeper_ledger::jobs::{Fence, JobName};

use super::Job;
use crate::error::Error;
use seatkeeper_engine::Backend;
use seatkeeper_engine::{Progress, sweep_due};

/// Interval between two runs of the job.
pub(super) const INTERVAL: Span = Span::from_secs(600);

pub(crate) struct SessionExpiry {
    pub(crate) backends: Vec<Backend>,
}

#[async_trait]
impl Job for SessionExpiry {
    fn name(&self) -> JobName {
        JobName::SessionExpiry
    }

    fn interval(&self) -> Span {
        INTERVAL
    }

    async fn run(&self, _: &Fence) -> Result<(), Error> {
        for backend in self.backends.iter().filter(|backend| backend.serves_any()) {
            while sweep_due(&*backend.registry).await? == Progress::More {
                tokio::task::yield_now().await;
            }
        }
        Ok(())
    }
}
