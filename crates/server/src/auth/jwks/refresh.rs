//! Worker that fetches an issuer's keys at the scheduled times.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::Jwks;
use seatkeeper_engine::{Progress, Worker};

pub(crate) struct Refresh(Arc<Jwks>);

impl Refresh {
    pub(in crate::auth) fn new(jwks: Arc<Jwks>) -> Self {
        Self(jwks)
    }

    /// Fetches the keys for the first time. After a failure the worker retries.
    pub(crate) async fn begin(&self) {
        self.0.fetch_if_due().await;
    }
}

#[async_trait]
impl Worker for Refresh {
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "keys"
    }

    fn rest(&self) -> Duration {
        self.0.due_in()
    }

    /// Waits for an earlier schedule: a fetch on demand that fails is retried sooner than the worker's rest ends.
    async fn woken(&self) {
        self.0.due_earlier().await;
    }

    async fn activate(&self) -> Result<Progress, Infallible> {
        self.0.fetch_if_due().await;
        Ok(Progress::Idle)
    }
}
