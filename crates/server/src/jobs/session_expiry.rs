//! Puts sessions that are over on record as expired: also those of long ago, and with the sweeper off.
//!
//! A sweep is the registry's own atomic step, and harmless if two do it: it needs no fence.

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
