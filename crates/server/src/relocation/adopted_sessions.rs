//! The live sessions of a lost region's licenses: kept until the last has arrived, and then admitted in one transaction, so
//! that the pool never opens with a part of them.
//!
//! The admission of very many sessions takes longer than a region waits for an answer. A task of its own therefore opens the
//! pool, and the command repeats its last message until the pool is open.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{Origin, PoolId, Region, TenantId, Terms};
use seatkeeper_engine::Engine;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::licenses::LicenseId;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::Mover;
use super::adoption_messages::{AdoptedSessions, PoolOpening};
use crate::error::Error;

/// The longest time for which a message waits for a pool to open.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// The pools of adopted licenses that are about to open, each with its task. A task goes on without its message.
#[derive(Default)]
pub(crate) struct Openings(Mutex<HashMap<PoolId, JoinHandle<Result<(), Error>>>>);

/// The opening of a pool with the kept sessions.
struct Opening {
    engine: Arc<Engine>,
    ledger: Ledger,
    pool: PoolId,
    terms: Terms,
}

impl Mover {
    /// Takes over sessions of a license. The last message opens the pool, and every session gets a full TTL from the
    /// opening. Returns whether the pool is open: if not, the last message must be repeated.
    pub(crate) async fn adopt_sessions(
        &self,
        lost: Region,
        adopted: AdoptedSessions,
    ) -> Result<PoolOpening, Error> {
        self.adopting(lost).await?;
        let (tenant, id) = (TenantId::new(adopted.tenant), LicenseId(adopted.license_id));
        self.check_anchor_lost(lost, &tenant).await?;
        let license = self.ledger.license(&tenant, id).await.map_err(Error::Ledger)?;
        let license = license.ok_or(Error::LicenseNotFound)?;
        let (pool, terms) = (license.pool(), license.terms(self.license_ttl_default));
        if !adopted.sessions.is_empty() && self.engine.view_here(&pool, 0).await?.is_none() {
            let kept = self.ledger.keep_arriving_sessions(lost, &pool, &adopted.sessions).await;
            kept.map_err(Error::Ledger)?;
        }
        if !adopted.is_last {
            return Ok(PoolOpening { is_open: false });
        }
        let (engine, ledger) = (Arc::clone(&self.engine), self.ledger.clone());
        let wait = Duration::from_millis(adopted.wait_milliseconds).min(WAIT_MAX);
        let is_open = self.openings.carry(Opening { engine, ledger, pool, terms }, wait).await?;
        Ok(PoolOpening { is_open })
    }
}

impl Openings {
    /// Starts the opening of a pool, unless it is under way, and waits for its end for at most `wait`. Returns whether the
    /// pool is open. An opening that failed is forgotten, so a repetition starts anew.
    async fn carry(&self, opening: Opening, wait: Duration) -> Result<bool, Error> {
        let mut under_way = self.0.lock().await;
        // A message that was cut off left the end of its task behind. The repetition finds the pool open, or starts anew.
        under_way.retain(|_, task| !task.is_finished());
        let pool = opening.pool.clone();
        let task = under_way.entry(pool.clone()).or_insert_with(|| tokio::spawn(opening.run()));
        let Ok(ended) = tokio::time::timeout(wait, task).await else { return Ok(false) };
        under_way.remove(&pool);
        // A task that panicked has changed nothing, or the repetition finds the pool open.
        ended.unwrap_or(Err(Error::TimedOut)).map(|()| true)
    }
}

impl Opening {
    async fn run(self) -> Result<(), Error> {
        let Self { engine, ledger, pool, terms } = self;
        if engine.view_here(&pool, 0).await?.is_some() {
            // The pool has opened since the first message.
            ledger.drop_arriving_sessions(&pool).await.map_err(Error::Ledger)?;
        } else {
            let now = engine.time_for(&pool);
            ledger.adopt_sessions(&pool, terms, now).await.map_err(Error::Ledger)??;
        }
        engine.revise(&pool, terms, &Origin::SYSTEM).await?;
        Ok(())
    }
}
