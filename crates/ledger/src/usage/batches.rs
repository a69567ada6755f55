//! Splits the records of a window into batches.

use chrono::{DateTime, Utc};
use seatkeeper_core::{TenantId, Usage, Window};
use uuid::Uuid;

use super::ids::{batch_id, record_id};
use super::metered::MeteredSession;
use super::record::{UsageRecord, payload_of};
use crate::Error;
use crate::database::Tx;
use crate::row::stored_whole;

/// Records of one tenant delivered to the sink together.
pub(super) struct Batch {
    pub(super) id: Uuid,
    pub(super) tenant: TenantId,
    /// The batch's number among the tenant's batches of the window, from 1.
    pub(super) number: u64,
    pub(super) records: Vec<UsageRecord>,
}

impl Batch {
    pub(super) fn usage(&self) -> Usage {
        self.records.iter().map(|record| record.usage).sum()
    }

    /// Adds the batch and its payload to the outbox, due at `due`.
    pub(super) async fn insert(
        &self,
        tx: &mut Tx,
        window_starts: DateTime<Utc>,
        due: DateTime<Utc>,
    ) -> Result<(), Error> {
        tx.query(include_str!("../../sql/stage_batch.sql"))
            .bind(self.id)
            .bind(window_starts)
            .bind(self.tenant.as_str())
            .bind(stored_whole(self.number))
            .bind(stored_whole(self.records.len() as u64))
            .bind(stored_whole(self.usage().as_micros()))
            .bind(due)
            .execute()
            .await?;
        tx.query(include_str!("../../sql/stage_payload.sql"))
            .bind(self.id)
            .bind(payload_of(&self.records)?)
            .execute()
            .await?;
        Ok(())
    }
}

/// Splits the sessions of a window into batches. Sessions of one tenant must come together.
pub(super) struct Cutter {
    window: Window,
    records_max: usize,
    under_way: Option<Batch>,
}

impl Cutter {
    pub(super) fn new(window: Window, records_max: usize) -> Self {
        Self { window, records_max, under_way: None }
    }

    /// Adds a session. Returns the previous batch if the batch is full or belongs to a different tenant.
    pub(super) fn take(&mut self, session: MeteredSession) -> Option<Batch> {
        let usage = session.life.used_in(self.window);
        if usage == Usage::ZERO {
            return None;
        }
        let record = UsageRecord {
            id: record_id(self.window.starts(), session.id),
            session: session.id,
            user: session.user,
            capacity: session.capacity,
            usage,
        };
        let number = match &mut self.under_way {
            Some(batch) if batch.tenant == session.tenant && batch.records.len() < self.records_max => {
                batch.records.push(record);
                return None;
            }
            Some(batch) if batch.tenant == session.tenant => batch.number + 1,
            Some(_) | None => 1,
        };
        let id = batch_id(self.window.starts(), &session.tenant, number, session.id);
        self.under_way.replace(Batch { id, tenant: session.tenant, number, records: vec![record] })
    }

    /// Returns the last batch.
    pub(super) fn finish(self) -> Option<Batch> {
        self.under_way
    }
}
