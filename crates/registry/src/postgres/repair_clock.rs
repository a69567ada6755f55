//! Repair of registry time in the database, after a wrong time was stored.

use seatkeeper_core::RegistryTime;
use seatkeeper_postgres::PostgresUrl;

use super::connect::{self, begin_long};
use super::fault::Fault;
use super::from_row::from_row;
use super::row::{signed, time, unsigned};
use crate::Error;

/// Registry time in a database before a repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryRepair {
    /// The latest time in the registry.
    pub latest: RegistryTime,
    /// Number of events that wait for the ledger. A repair requires 0.
    pub waiting: u64,
}

/// The repair changes every session, and an operator waits for it.
const NO_TIMEOUT: &str = "SET LOCAL statement_timeout = 0";

from_row! {
    /// A row of `registry.repair_clock`.
    struct RepairRow {
        told: i64,
        waiting: i64,
    }
}

/// Sets registry time in the database at `url` back to `to`, the true time, and gives each session with
/// heartbeats a full TTL. Sessions of the lasting section keep their ends. Changes nothing unless `apply` is set, nor
/// if registry time is not later than `to`, nor while events wait for the ledger. No node may serve meanwhile.
///
/// Returns `None` for a database without a registry. Creates and migrates no tables.
pub async fn repair_clock(
    url: &PostgresUrl,
    to: RegistryTime,
    apply: bool,
) -> Result<Option<RegistryRepair>, Error> {
    let connections = connect::single_connection(url)?;
    if !connect::has_registry(&connections).await.map_err(Fault::from)? {
        return Ok(None);
    }
    let connection = connections.acquire().await.map_err(Fault::from)?;
    let mut transaction = begin_long(connection).await.map_err(Fault::from)?;
    sqlx::query(NO_TIMEOUT).execute(&mut *transaction).await.map_err(Fault::from)?;
    let RepairRow { told, waiting } = sqlx::query_as(include_str!("sql/repair_clock.sql"))
        .bind(signed(to.as_millis()))
        .fetch_one(&mut *transaction)
        .await
        .map_err(Fault::from)?;
    if apply {
        transaction.commit().await.map_err(Fault::of_commit)?;
    } else {
        transaction.rollback().await.map_err(Fault::from)?;
    }
    connections.close().await;
    Ok(Some(RegistryRepair { latest: time(told), waiting: unsigned(waiting) }))
}
