//! The job that carries on moves of homes after a crash, a partition or a restore.

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::Span;
use seatkeeper_ledger::jobs::{Fence, JobName};

use super::Mover;
use crate::error::Error;
use crate::jobs::{Job, MOVES_INTERVAL};

/// Carries on moves. Every step may be repeated, so the job needs no fencing token.
pub(crate) struct MoveJob(pub(crate) Arc<Mover>);

#[async_trait]
impl Job for MoveJob {
    fn name(&self) -> JobName {
        JobName::Moves
    }

    fn interval(&self) -> Span {
        MOVES_INTERVAL
    }

    async fn run(&self, _: &Fence) -> Result<(), Error> {
        // The next run carries on the moves that this run learns.
        let ((), carried) = tokio::join!(self.0.learn_forgotten(), self.0.carry_all());
        carried
    }
}
