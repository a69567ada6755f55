//! Deletes history that is older than the operator keeps.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::Span;
use seatkeeper_ledger::Ledger;
use seatkeeper_registry::Registry;

use super::driver::{Left, Worker};
use crate::error::Error;

/// Records in one commit, so that admissions do not wait long behind it.
const PURGE_RECORDS_MAX: u32 = 1_000;

/// How often there is something to look for.
const REST: Duration = Duration::from_secs(600);

pub(crate) struct Retention {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) ledger: Ledger,
    pub(crate) keep: Span,
}

#[async_trait]
impl Worker for Retention {
    fn name(&self) -> &'static str {
        "retention"
    }

    fn rest(&self) -> Duration {
        REST
    }

    async fn activate(&self) -> Result<Left, Error> {
        let before = self.registry.now().await? - self.keep;
        let purged = self.ledger.purge(before, PURGE_RECORDS_MAX).await.map_err(Error::Ledger)?;
        Ok(if purged.more { Left::More } else { Left::Nothing })
    }
}
