//! Splits a batch that is too large for the sink.

use seatkeeper_core::{RegistryTime, TenantId};
use uuid::Uuid;

use super::batches::Batch;
use super::ids::half_id;
use super::record::records_of;
use crate::database::Tx;
use crate::row::Fields;
use crate::{Error, times};

/// Replaces a pending batch by two batches with half of the records each, due at `at`. Records keep their ids. The
/// batches get new ids, because a sink may have stored the refusal under the old id. A batch of one record stays.
pub(super) async fn split(tx: &mut Tx, batch: Uuid, at: RegistryTime) -> Result<(), Error> {
    let row = tx.query(include_str!("../../sql/oversized_batch.sql")).bind(batch).fetch_optional().await?;
    let Some(row) = row else { return Ok(()) };
    let fields = Fields(&row);
    let window_starts = fields.time("window_starts_at")?;
    let tenant = TenantId::new(fields.value::<&str>("tenant_id")?);
    let last = fields.whole("last_batch")?;
    let mut first = records_of(fields.value("payload")?, window_starts)?;
    let second = first.split_off(first.len().div_ceil(2));
    if second.is_empty() {
        return Ok(());
    }
    for statement in [include_str!("../../sql/drop_payload.sql"), include_str!("../../sql/drop_batch.sql")] {
        tx.query(statement).bind(batch).execute().await?;
    }
    for (half, records) in [(1, first), (2, second)] {
        let (id, number) = (half_id(batch, half), last + half);
        let half = Batch { id, tenant: tenant.clone(), number, records };
        half.insert(tx, times::stored(window_starts), times::stored(at)).await?;
    }
    Ok(())
}
