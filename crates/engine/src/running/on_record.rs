//! Finds the pool of a session unknown to this node: from the caller's token, or in the ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Authority, PoolId, PoolKind, Reach, SessionId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::sessions::FoundSession;
use seatkeeper_registry::redis::{SearchResult, SessionLocator};

use crate::failover::EpochLease;

/// The longest wait of a heartbeat for the ledger. After it, the registry searches for the session.
const LEDGER_WAIT_MAX: Duration = Duration::from_secs(1);

/// Finds sessions in the ledger, unless the lease says that the ledger is unreachable.
pub(super) struct OnRecord {
    pub(super) ledger: Ledger,
    pub(super) lease: Arc<EpochLease>,
}

#[async_trait]
impl SessionLocator for OnRecord {
    async fn find(&self, id: SessionId, who: &Authority) -> SearchResult {
        if let (Some(PoolKind::Subscriber), Reach::Own(user)) = (who.kind, &who.reach) {
            // A subscriber reaches only the subscriber's own pool.
            let pool = PoolId::new(PoolKind::Subscriber, who.tenant.clone(), user.as_str());
            return SearchResult::In(pool, None);
        }
        if !self.lease.reaches_ledger() {
            // Fails fast: a client would wait for the database until its own timeout.
            return SearchResult::Unknown(None);
        }
        match tokio::time::timeout(LEDGER_WAIT_MAX, self.ledger.find_session(id)).await {
            Ok(Ok(Some(FoundSession { record, .. }))) => {
                SearchResult::In(record.pool, Some(record.session.holder))
            }
            Ok(Ok(None)) => SearchResult::NotOnRecord,
            Ok(Err(error)) => SearchResult::Unknown(Some(Box::new(error))),
            Err(_) => SearchResult::Unknown(None),
        }
    }
}
