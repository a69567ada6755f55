//! The lasting section: closed by an embedded server, whose memory then has the sessions, and filled from the ledger by the
//! first node afterwards.

use seatkeeper_core::{LoadBound, RegistryTime};
use seatkeeper_postgres::{PostgresUrl, Transaction};

use super::PostgresRegistry;
use super::claim::open_in;
use super::connect::{self, begin_long};
use super::fault::Fault;
use super::limit::{answered, answered_long, run};
use super::read_pool::{Locking, Target, read_pool};
use super::row::{signed, unsigned};
use crate::Error;
use crate::rebuild::Filling;

/// Lets the caller of a filling read the ledger between two statements.
const STAY_OPEN: &str = "SET LOCAL idle_in_transaction_session_timeout = '60s'";

/// The state of the lasting section.
pub enum LastingState<'r> {
    /// The section is served.
    Served,
    /// An embedded server uses the ledger, or another node fills the section.
    InUse,
    /// The section is empty, and locked for the filling.
    Empty(LastingFilling<'r>),
}

/// A filling of the lasting section, in one transaction. A drop leaves the section as it was.
pub struct LastingFilling<'r> {
    registry: &'r PostgresRegistry,
    transaction: Transaction,
}

impl PostgresRegistry {
    /// Returns whether the lasting section is served.
    pub async fn is_lasting_served(&self) -> Result<bool, Error> {
        let read = sqlx::query_scalar(include_str!("sql/is_lasting_served.sql"));
        Ok(run(self.connection().await?, async |connection| read.fetch_one(connection).await).await??)
    }

    /// Locks the lasting section for a filling, unless the section is served. Waits for no other filling. To be called on the registry
    /// that [`lasting`](PostgresRegistry::lasting) returned.
    pub async fn begin_lasting(&self) -> Result<LastingState<'_>, Error> {
        Ok(self.lock_lasting().await?)
    }

    async fn lock_lasting(&self) -> Result<LastingState<'_>, Fault> {
        let mut transaction = answered(begin_long(self.connection().await?)).await??;
        answered(sqlx::query(STAY_OPEN).execute(&mut *transaction)).await??;
        let begin = sqlx::query_scalar(include_str!("sql/begin_lasting.sql"));
        let state: String = answered_long(begin.fetch_one(&mut *transaction)).await??;
        match &*state {
            "empty" => return Ok(LastingState::Empty(LastingFilling { registry: self, transaction })),
            "served" | "in use" => answered(transaction.rollback()).await??,
            _ => return Err(Fault::Odd("a state of the lasting section that there is not")),
        }
        Ok(if state == "served" { LastingState::Served } else { LastingState::InUse })
    }
}

impl LastingFilling<'_> {
    /// Opens a pool of the section as [`Admission::open`](crate::Admission::open) does.
    pub async fn open(&mut self, pool: Filling<'_>) -> Result<(), Error> {
        Ok(self.fill(pool).await?)
    }

    async fn fill(&mut self, pool: Filling<'_>) -> Result<(), Fault> {
        let (section, target) = (&self.registry.section, Target::pool(pool.pool));
        let read =
            read_pool(&mut self.transaction, section, Locking::With, target, |_| LoadBound::ONE_SESSION);
        let seen = answered_long(read).await??;
        answered_long(open_in(&mut self.transaction, &seen, pool)).await??;
        Ok(())
    }

    /// Serves the section with the pools that are open by now, at a time not earlier than `not_before`.
    pub async fn serve(mut self, not_before: RegistryTime) -> Result<(), Error> {
        let serve = sqlx::query(include_str!("sql/serve_lasting.sql")).bind(signed(not_before.as_millis()));
        answered_long(serve.execute(&mut *self.transaction)).await??;
        Ok(answered_long(self.transaction.commit()).await?.map_err(Fault::of_commit)?)
    }
}

/// Closes the lasting section of the registry in the database at `url`: nodes that serve later fill the section from the
/// ledger. Changes nothing while events of the section wait for the ledger. Only for the sole user of the ledger.
///
/// Returns the number of events that wait: without a registry in the database, 0.
pub async fn close_lasting(url: &PostgresUrl) -> Result<u64, Error> {
    let connections = connect::single_connection(url)?;
    if !connect::has_registry(&connections).await.map_err(Fault::from)? {
        return Ok(0);
    }
    let connection = connections.acquire().await.map_err(Fault::from)?;
    let mut transaction = begin_long(connection).await.map_err(Fault::from)?;
    let close = sqlx::query_scalar(include_str!("sql/close_lasting.sql"));
    let waiting: i64 = close.fetch_one(&mut *transaction).await.map_err(Fault::from)?;
    if waiting == 0 {
        transaction.commit().await.map_err(Fault::of_commit)?;
    } else {
        transaction.rollback().await.map_err(Fault::from)?;
    }
    connections.close().await;
    Ok(unsigned(waiting))
}
