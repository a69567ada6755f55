//! One atomic step on one pool: look, decide, write.

use std::time::Duration;

use seatkeeper_core::{Bucket, RegistryTime, Sight};
use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tokio::sync::MutexGuard;

use super::PostgresRegistry;
use super::connect::begin_long;
use super::fault::Fault;
use super::look::{Seen, Target, Turn, look};
use super::write::{Change, Columns, Events, Fate};
use crate::Epochs;
use crate::contract::Receipt;
use crate::open_pool::OpenPool;

/// How often a step is tried. All but the first have a turn on the bucket, so that only heartbeats of the very
/// sessions that are about to end can be in their way.
const ATTEMPTS_MAX: usize = 8;

/// How long a call may take in all: long enough for one that ends a hundred thousand sessions.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// A step that was made.
pub(super) struct Done<T> {
    /// What it brought.
    pub(super) value: T,
    /// What must be durable before that is told.
    pub(super) receipt: Receipt,
}

impl PostgresRegistry {
    /// Makes a step on the pool that is meant; none if it is not open. `sight` says what has to be seen for it, and
    /// `act` is done again where something came between.
    pub(super) async fn step<T>(
        &self,
        target: Target<'_>,
        sight: impl Fn(&Seen) -> Sight,
        act: impl Fn(&mut OpenPool, RegistryTime, &mut Events) -> T,
    ) -> Result<Option<Done<T>>, Fault> {
        let steps = async {
            // Of one node, one at a time: the others wait here and not in the database, each with a connection.
            let _turn = self.turn(target.bucket()).await;
            for _ in 1..ATTEMPTS_MAX {
                let mut connection = self.connection().await?;
                let made = self.decide(&mut connection, Turn::Without, target, &sight, &act).await;
                if !matches!(made, Err(Fault::Conflict)) {
                    return made;
                }
                let mut transaction = begin_long(connection).await?;
                let made = self.decide(&mut transaction, Turn::With, target, &sight, &act).await;
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
        let made = tokio::time::timeout(CALL_TIMEOUT, steps).await??;
        Ok(made.map(|(done, events)| {
            self.backlog.told(done.receipt, events);
            done
        }))
    }

    /// Makes the step, up to the end of the transaction if there is one. Returns how many events it brought as
    /// well.
    async fn decide<T>(
        &self,
        connection: &mut PgConnection,
        turn: Turn,
        target: Target<'_>,
        sight: impl Fn(&Seen) -> Sight,
        act: impl Fn(&mut OpenPool, RegistryTime, &mut Events) -> T,
    ) -> Result<Option<(Done<T>, usize)>, Fault> {
        let mut seen = look(connection, &self.section, turn, target, sight).await?;
        self.serves(seen.bucket, seen.epoch, seen.serving)?;
        let Some(mut open) = seen.open.take() else { return Ok(None) };
        let before = Some(Columns::of(&open, seen.now));
        let mut events = Events::after(seen.position);
        let value = act(&mut open, seen.now, &mut events);
        open.become_due(seen.now);
        let change = Change { seen: &seen, before, open: &open, events: &events, fate: Fate::Open };
        let receipt = change.write(connection).await?;
        Ok(Some((Done { value, receipt }, events.count())))
    }

    /// A connection that nobody else uses.
    pub(super) async fn connection(&self) -> Result<PoolConnection<Postgres>, Fault> {
        self.connections.acquire().await.map_err(Fault::Refused)
    }

    /// This node's turn on a bucket.
    pub(super) async fn turn(&self, bucket: Bucket) -> MutexGuard<'_, ()> {
        self.turns[usize::from(bucket.number())].lock().await
    }

    /// An error unless a bucket that is served, or not, in this epoch is one that this node serves.
    pub(super) fn serves(&self, bucket: Bucket, epoch: u64, serving: bool) -> Result<(), Fault> {
        let known = self.section.epoch(bucket);
        let served = serving && epoch == known && known != Epochs::NONE;
        if served { Ok(()) } else { Err(Fault::NotServing(bucket)) }
    }
}
