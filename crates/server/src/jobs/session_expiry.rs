//! Puts sessions that are over on record as expired: also those of long ago, and with the sweeper off.
//!
//! A sweep is the registry's own atomic step, and harmless if two do it: it needs no fence.

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::Span;
use seatkeeper_ledger::{Fence, JobName};
use seatkeeper_registry::Registry;

use super::Job;
use crate::error::Error;
use crate::workers::{Left, sweep_due};

pub(crate) struct SessionExpiry {
    pub(crate) registry: Arc<dyn Registry>,
}

#[async_trait]
impl Job for SessionExpiry {
    fn name(&self) -> JobName {
        JobName::SessionExpiry
    }

    fn interval(&self) -> Span {
        Span::from_secs(600)
    }

    async fn run(&self, _: &Fence) -> Result<(), Error> {
        while sweep_due(&*self.registry).await? == Left::More {
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}
