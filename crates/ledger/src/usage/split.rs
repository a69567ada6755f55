//! Splits a batch that the sink does not take as a whole.

use seatkeeper_core::{RegistryTime, TenantId};
use uuid::Uuid;

use super::batches::Batch;
use super::ids::half_id;
use super::record::records_of;
use crate::database::Tx;
use crate::row::Fields;
use crate::{Error, times};

/// Splits of a tenant's refused batches in a window, for each batch that the sink has accepted, and as many before the
/// first. A sink without any acceptance costs few attempts, and a sink that refuses some records gets the others.
const REFUSALS_SPLIT_PER_DELIVERY: u64 = 10;

/// The reason of a split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The batch is too large. Every such batch is split.
    Size,
    /// The sink refused the batch for good, maybe for the sake of one record.
    Refusal,
}

/// Replaces a pending batch by two batches with half of the records each, due at `at`. Records keep their ids. The
/// batches get new ids, because a sink may have stored the refusal under the old id. So the sink must not have the
/// batch: a sink that honours the ids of batches alone would count the records twice. Returns `false` without a split
/// of the batch: for a single record, or after too many refusals of the window.
pub(super) async fn split(tx: &mut Tx, batch: Uuid, at: RegistryTime, cause: Cause) -> Result<bool, Error> {
    let row = tx.query(include_str!("../../sql/batch_to_split.sql")).bind(batch).fetch_optional().await?;
    let Some(row) = row else { return Ok(false) };
    let fields = Fields(&row);
    let window_starts = fields.time("window_starts_at")?;
    let tenant = TenantId::new(fields.value::<&str>("tenant_id")?);
    let last = fields.whole("last_batch")?;
    // A split takes one batch away, and adds two with the next numbers.
    let splits = last.saturating_sub(fields.whole("batches")?);
    let splits_max = REFUSALS_SPLIT_PER_DELIVERY * (1 + fields.whole("delivered")?);
    if cause == Cause::Refusal && splits >= splits_max {
        return Ok(false);
    }
    let mut first = records_of(fields.value("payload")?, window_starts)?;
    let second = first.split_off(first.len().div_ceil(2));
    if second.is_empty() {
        return Ok(false);
    }
    for statement in [include_str!("../../sql/drop_payload.sql"), include_str!("../../sql/drop_batch.sql")] {
        tx.query(statement).bind(batch).execute().await?;
    }
    for (half, records) in [(1, first), (2, second)] {
        let (id, number) = (half_id(batch, half), last + half);
        let half = Batch { id, tenant: tenant.clone(), number, records };
        half.insert(tx, times::stored(window_starts), times::stored(at)).await?;
    }
    Ok(true)
}
