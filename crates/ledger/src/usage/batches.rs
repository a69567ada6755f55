//! Cuts the records of a window into batches.

use seatkeeper_core::{TenantId, Usage, Window};
use uuid::Uuid;

use super::ids::{batch_id, record_id};
use super::metered::MeteredSession;
use super::record::UsageRecord;

/// Records of one tenant that go to the sink together.
pub(super) struct Batch {
    pub(super) id: Uuid,
    pub(super) tenant: TenantId,
    /// Its place among the tenant's batches of the window, from 1 on.
    pub(super) number: u64,
    pub(super) records: Vec<UsageRecord>,
}

impl Batch {
    pub(super) fn usage(&self) -> Usage {
        self.records.iter().map(|record| record.usage).sum()
    }
}

/// Takes the sessions of a window, those of a tenant together, and gives its batches.
pub(super) struct Cutter {
    window: Window,
    records_max: usize,
    under_way: Option<Batch>,
}

impl Cutter {
    pub(super) fn new(window: Window, records_max: usize) -> Self {
        Self { window, records_max, under_way: None }
    }

    /// Takes a session; gives the batch before it if that is full or another tenant's.
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
        let id = batch_id(self.window.starts(), &session.tenant, number);
        self.under_way.replace(Batch { id, tenant: session.tenant, number, records: vec![record] })
    }

    /// The last batch.
    pub(super) fn finish(self) -> Option<Batch> {
        self.under_way
    }
}
