//! Finds the pool of a session that a node has not seen: by the caller's token, or by the ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Authority, PoolId, PoolKind, Reach, SessionId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::sessions::FoundSession;
use seatkeeper_registry::redis::{FindSession, Found};

use crate::failover::EpochLease;

/// The longest wait of a heartbeat for the ledger. Past it, the registry searches for the session.
const LEDGER_WAIT_MAX: Duration = Duration::from_secs(1);

/// The ledger, and whether it is known to be away.
pub(super) struct OnRecord {
    pub(super) ledger: Ledger,
    pub(super) lease: Arc<EpochLease>,
}

#[async_trait]
impl FindSession for OnRecord {
    async fn find(&self, id: SessionId, who: &Authority) -> Found {
        if let (Some(PoolKind::Subscriber), Reach::Own(user)) = (who.kind, &who.reach) {
            // Subscribers reach their own pool alone.
            let pool = PoolId::new(PoolKind::Subscriber, who.tenant.clone(), user.as_str());
            return Found::In(pool, None);
        }
        if !self.lease.reaches_ledger() {
            // A client would wait for the database until its own time-out.
            return Found::Unknown(None);
        }
        match tokio::time::timeout(LEDGER_WAIT_MAX, self.ledger.find_session(id)).await {
            Ok(Ok(Some(FoundSession { record, .. }))) => Found::In(record.pool, Some(record.session.holder)),
            Ok(Ok(None)) => Found::NotOnRecord,
            Ok(Err(error)) => Found::Unknown(Some(Box::new(error))),
            Err(_) => Found::Unknown(None),
        }
    }
}
