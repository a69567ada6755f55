//! Deletes history that is older than the operator keeps.

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::Span;
use seatkeeper_ledger::{Fence, JobName, Ledger};
use seatkeeper_registry::Registry;

use super::Job;
use crate::error::Error;

/// Records in one commit, so that admissions do not wait long behind it.
const PURGE_RECORDS_MAX: u32 = 1_000;

pub(crate) struct Retention {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) ledger: Ledger,
    pub(crate) keep: Span,
}

#[async_trait]
impl Job for Retention {
    fn name(&self) -> JobName {
        JobName::Retention
    }

    fn interval(&self) -> Span {
        Span::from_secs(600)
    }

    async fn run(&self, fence: &Fence) -> Result<(), Error> {
        let before = self.registry.now().await? - self.keep;
        while self.ledger.purge(fence, before, PURGE_RECORDS_MAX).await.map_err(Error::Ledger)?.more {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
