//! Looks at an issuer's keys every so often.

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

    /// Looks for the first time. Should that fail, it is tried again later.
    pub(crate) async fn begin(&self) {
        self.0.ask_if_due().await;
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

    async fn activate(&self) -> Result<Progress, Infallible> {
        self.0.ask_if_due().await;
        Ok(Progress::Idle)
    }
}
