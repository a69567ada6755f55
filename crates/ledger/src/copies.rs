//! Copies of the ledger that took its place: promoted standbys and restored backups.
//!
//! A copy may lack the latest changes of licenses, plans and subscriptions, while pools still have the lost terms. Hence
//! versions never continue across a copy: the versions of changes made in the n-th copy start at `n * VERSIONS_PER_COPY`, above
//! every version lost before. A change made again after the loss therefore replaces the lost terms.

use seatkeeper_core::RegistryTime;

use crate::database::Tx;
use crate::{Error, times};

/// The versions of each copy, more than the changes that any entitlement gets.
pub(crate) const VERSIONS_PER_COPY: u64 = 1 << 32;

/// Notes that this ledger is a copy, unless that is on record. The first raise of an epoch notes the copy, or an earlier
/// change of an entitlement.
pub(crate) async fn note(tx: &mut Tx, at: RegistryTime) -> Result<(), Error> {
    tx.query(include_str!("../sql/note_copy.sql")).bind(times::stored(at)).execute().await?;
    Ok(())
}

/// Returns the lowest version of a change made in the present ledger. All lower versions were made before the last copy.
pub(crate) async fn version_floor(tx: &mut Tx) -> Result<u64, Error> {
    let copies: i64 = tx.query(include_str!("../sql/count_ledger_copies.sql")).scalar().await?;
    Ok(copies.unsigned_abs() * VERSIONS_PER_COPY)
}

/// Returns the version of a change at `at` to an entitlement of version `version`.
pub(crate) async fn next_version(tx: &mut Tx, version: u64, at: RegistryTime) -> Result<u64, Error> {
    note(tx, at).await?;
    Ok(version_floor(tx).await?.max(version + 1))
}

/// Returns whether `version` may be the version of the next change after the change of version `before`.
pub(crate) fn is_next(version: u64, before: u64) -> bool {
    version == before + 1 || (version > before && version.is_multiple_of(VERSIONS_PER_COPY))
}
