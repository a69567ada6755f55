//! Deletes history that is older than the operator keeps.

use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_ledger::Ledger;

use super::driver::{Left, Worker};
use crate::error::Error;
use crate::wall_clock;

/// Rows in one commit, so that admissions do not wait behind it.
const PURGE_ROWS_MAX: usize = 500;

/// How often there is something to look for.
const REST: Duration = Duration::from_secs(3_600);

pub(crate) struct Retention {
    pub(crate) ledger: Ledger,
    pub(crate) keep: chrono::Duration,
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
        let before = wall_clock::now() - self.keep;
        let purged = self.ledger.purge(before, PURGE_ROWS_MAX).await.map_err(Error::Ledger)?;
        Ok(if purged < PURGE_ROWS_MAX { Left::Nothing } else { Left::More })
    }
}
