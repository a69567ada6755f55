//! Copies of the ledger that took its place: promoted standbys and restored backups.
//!
//! A copy may lack the latest changes of licenses, plans and subscriptions, while pools still have the lost terms. Hence
//! versions never continue across a copy: the versions of changes made in a copy start at the milliseconds since 1970 at its
//! first raise of an epoch or change. No ledger makes 1,000 changes a second for long, so the versions are above all that were
//! lost before, also above the versions of a promoted standby that a restored backup knows nothing of. A change made again
//! after the loss therefore replaces the lost terms.

use seatkeeper_core::RegistryTime;

use crate::database::Tx;
use crate::{Error, row, times};

/// Notes that this ledger is a copy, unless that is on record. The first raise of an epoch notes the copy, or an earlier
/// change of an entitlement.
pub(crate) async fn note(tx: &mut Tx, at: RegistryTime) -> Result<(), Error> {
    tx.query(include_str!("../sql/note_copy.sql"))
        .bind(times::stored(at))
        .bind(row::stored_whole(at.as_millis()))
        .execute()
        .await?;
    Ok(())
}

/// Returns the lowest version of the changes made in each copy on record, in order. All versions below the last were made
/// before the last copy.
pub(crate) async fn version_floors(tx: &mut Tx) -> Result<Vec<u64>, Error> {
    let floors: Vec<i64> = tx.query(include_str!("../sql/version_floors.sql")).scalars().await?;
    Ok(floors.into_iter().map(i64::unsigned_abs).collect())
}

/// Returns the version of a change at `at` to an entitlement of version `version`.
pub(crate) async fn next_version(tx: &mut Tx, version: u64, at: RegistryTime) -> Result<u64, Error> {
    note(tx, at).await?;
    let floors = version_floors(tx).await?;
    Ok(floors.last().map_or(version + 1, |&floor| floor.max(version + 1)))
}

/// Returns whether `version` may be the version of the next change after the change of version `before`, in a ledger with
/// copies whose changes start at `floors`.
pub(crate) fn is_next(version: u64, before: u64, floors: &[u64]) -> bool {
    version == before + 1 || (version > before && floors.contains(&version))
}

#[test]
fn a_version_follows_the_last_one_or_begins_a_copy() {
    let is_next = |version, before| is_next(version, before, &[9, 20]);
    assert!(is_next(2, 1) && is_next(9, 1) && is_next(20, 9));
    assert!(!is_next(10, 1) && !is_next(9, 9) && !is_next(9, 12) && !is_next(1, 1));
}
