//! An atomic step on one pool: read, decide, write.

use std::time::Duration;

use seatkeeper_core::{Bucket, LoadBound, RegistryTime};
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tokio::sync::MutexGuard;
use tokio::time::timeout;

use super::PostgresRegistry;
use super::connect::begin_long;
use super::fault::Fault;
use super::read_pool::{Locking, PoolSnapshot, Target, read_pool};
use super::write::{Change, Columns, Events, Fate};
use crate::Epochs;
use crate::contract::Receipt;
use crate::open_pool::OpenPool;

/// Maximum number of attempts of a step. All but the first hold the bucket's lock, so that only heartbeats of
/// the sessions about to end can conflict.
const ATTEMPTS_MAX: usize = 8;

/// Time limit of a call: long enough for a step that ends a hundred thousand sessions.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of an attempt without the bucket's lock. The server cancels each of the two or three statements after 5 s, so
/// a later answer means a lost connection.
const OPTIMISTIC_MAX: Duration = Duration::from_secs(18);

/// A finished step.
pub(super) struct Done<T> {
    /// The result.
    pub(super) value: T,
    /// The events that must be durable before the result is told.
    pub(super) receipt: Receipt,
}

impl PostgresRegistry {
    /// Runs a step on the target's pool. Returns `None` if the pool is not open. `load_bound` returns the demand
    /// of the decision for loaded sessions. `act` decides, and runs again after a conflict.
    pub(super) async fn step<T>(
        &self,
        target: Target<'_>,
        load_bound: impl Fn(&PoolSnapshot) -> LoadBound,
        act: impl Fn(&mut OpenPool, RegistryTime, &mut Events) -> T,
    ) -> Result<Option<Done<T>>, Fault> {
        let steps = async {
            // Steps of a node on a bucket run one at a time. Waiting steps queue here without a connection,
            // instead of in the database.
            let _turn = self.turn(target.bucket()).await;
            for _ in 1..ATTEMPTS_MAX {
                let mut connection = self.connection().await?;
                let deciding = self.decide(&mut connection, Locking::Without, target, &load_bound, &act);
                let made = timeout(OPTIMISTIC_MAX, deciding).await;
                if made.is_err() {
                    connection.close_on_drop();
                }
                let made = made?;
                if !matches!(made, Err(Fault::Conflict)) {
                    return made;
                }
                let mut transaction = begin_long(connection).await?;
                let made = self.decide(&mut transaction, Locking::With, target, &load_bound, &act).await;
                match made {
                    Err(Fault::Conflict) => transaction.rollback().await?,
                    Err(fault) => return Err(fault),
                    Ok(made) => {
                        transaction.commit().await.map_err(Fault::of_commit)?;
                        return Ok(made);
                    }
                }
            }
            Err(Fault::Conflict)
        };
        let made = timeout(CALL_TIMEOUT, steps).await??;
        Ok(made.map(|(done, events)| {
            self.backlog.told(done.receipt, events);
            done
        }))
    }

    /// Runs one attempt, up to the end of a surrounding transaction. Returns the number of written events as
    /// well.
    async fn decide<T>(
        &self,
        connection: &mut PgConnection,
        turn: Locking,
        target: Target<'_>,
        load_bound: impl Fn(&PoolSnapshot) -> LoadBound,
        act: impl Fn(&mut OpenPool, RegistryTime, &mut Events) -> T,
    ) -> Result<Option<(Done<T>, usize)>, Fault> {
        let mut seen = read_pool(connection, &self.section, turn, target, load_bound).await?;
        self.serves(seen.bucket, seen.epoch, seen.serving)?;
        let Some(mut open) = seen.open.take() else { return Ok(None) };
        let before = Some(Columns::new(&open, seen.now));
        let mut events = Events::of_step(&seen);
        let value = act(&mut open, seen.now, &mut events);
        open.become_due(seen.now);
        let change = Change { seen: &seen, before, open: &open, events: &events, fate: Fate::Open };
        let receipt = change.write(connection).await?;
        Ok(Some((Done { value, receipt }, events.count())))
    }

    /// Returns a connection for exclusive use.
    pub(super) async fn connection(&self) -> Result<PoolConnection<Postgres>, Fault> {
        self.connections.acquire().await.map_err(Fault::Refused)
    }

    /// Waits for this node's turn on a bucket.
    pub(super) async fn turn(&self, bucket: Bucket) -> MutexGuard<'_, ()> {
        self.turns[usize::from(bucket.number())].lock().await
    }

    /// Returns `Err(NotServing)` unless the bucket is served in the epoch in which this node serves the
    /// bucket.
    pub(super) fn serves(&self, bucket: Bucket, epoch: u64, serving: bool) -> Result<(), Fault> {
        let known = self.section.epoch(bucket);
        let served = serving && epoch == known && known != Epochs::NONE;
        if served { Ok(()) } else { Err(Fault::NotServing(bucket)) }
    }
}
