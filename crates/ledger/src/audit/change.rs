//! Records of changes to licenses, plans and subscriptions.

use seatkeeper_core::PoolId;

use super::{Action, Entry, Stream, append};
use crate::database::Tx;
use crate::row::stored_whole;
use crate::{Error, Write};

/// A change of a license, a plan or a subscription.
pub(crate) struct EntitlementChange<'a> {
    pub(crate) pool: &'a PoolId,
    pub(crate) stream: Stream,
    pub(crate) seq: u64,
    pub(crate) action: Action,
    /// The limit from the change on.
    pub(crate) limit: u32,
    pub(crate) version: u64,
    /// The state after the change, as JSON.
    pub(crate) state: String,
}

impl EntitlementChange<'_> {
    /// Appends the record of the change.
    pub(crate) async fn record(self, tx: &mut Tx, write: &Write<'_>) -> Result<(), Error> {
        let epoch = tx
            .query(include_str!("../../sql/epoch.sql"))
            .bind(i64::from(self.pool.bucket().number()))
            .scalar()
            .await?;
        let entry = Entry {
            stream: self.stream.as_str(),
            seq: stored_whole(self.seq),
            epoch,
            limit_seats: self.limit.into(),
            limit_version: stored_whole(self.version),
            detail: Some(self.state),
            ..Entry::new(self.pool, write.at, write.origin, self.action)
        };
        match append(tx, &[entry]).await? {
            1 => Ok(()),
            _ => Err(Error::Contradiction { pool: Box::new(self.pool.clone()), seq: self.seq }),
        }
    }
}

/// Returns the next number in a stream. Only for streams that retention never cuts.
pub(crate) async fn next_seq(tx: &mut Tx, pool: &PoolId, stream: Stream) -> Result<u64, Error> {
    let seq: i64 = tx
        .query(include_str!("../../sql/next_record_seq.sql"))
        .bind_pool(pool)
        .bind(stream.as_str())
        .scalar()
        .await?;
    Ok(seq.unsigned_abs())
}
