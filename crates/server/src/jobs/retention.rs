//! Deletes history that is older than the operator keeps.

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::Span;
use seatkeeper_ledger::{Fence, JobName, Keep, Ledger};
use seatkeeper_registry::Registry;

use super::Job;
use crate::error::Error;

/// Records in one commit, so that admissions do not wait long behind it.
const PURGE_RECORDS_MAX: u32 = 1_000;

pub(crate) struct Retention {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) ledger: Ledger,
    pub(crate) keep: Span,
    /// What is kept however old it is.
    pub(crate) in_any_case: Keep,
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
        let (ledger, keep, batch) = (&self.ledger, self.in_any_case, PURGE_RECORDS_MAX);
        while ledger.purge(fence, before, keep, batch).await.map_err(Error::Ledger)?.more {
            tokio::task::yield_now().await;
        }
        while ledger.purge_usage(fence, before, batch).await.map_err(Error::Ledger)? {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
