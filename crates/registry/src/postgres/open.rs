//! A pool begins with what the ledger knows of it.

use seatkeeper_core::{PoolId, Session, Sight, Terms};

use super::PostgresRegistry;
use super::fault::Fault;
use super::look::{Target, Turn, look};
use super::step::CALL_TIMEOUT;
use super::write::{Change, Events, Fate};
use crate::open_pool::OpenPool;

impl PostgresRegistry {
    pub(super) async fn open_pool(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Fault> {
        let opening = async {
            let _turn = self.turn(pool.bucket()).await;
            let mut transaction = self.pool.begin().await?;
            let seen = look(&mut transaction, Turn::With, Target::pool(pool), |_| Sight::ONE_SESSION).await?;
            self.serves(seen.bucket, seen.epoch, seen.serving)?;
            if seen.open.is_some() {
                return Ok(());
            }
            let mut open = OpenPool::restored(pool.clone(), seq, seen.epoch, terms, live, seen.now);
            let mut events = Events::after(seen.position);
            open.settle(seen.now, &mut events);
            open.become_due(seen.now);
            let change = Change { seen: &seen, before: None, open: &open, events: &events, fate: Fate::Open };
            let receipt = change.write(&mut transaction).await?;
            transaction.commit().await.map_err(Fault::of_commit)?;
            self.backlog.told(receipt, events.count());
            Ok(())
        };
        tokio::time::timeout(CALL_TIMEOUT, opening).await?
    }
}
