//! Copies of the ledger that took its place: promoted standbys and restored backups.
//!
//! A copy may lack the latest changes of licenses, plans and subscriptions, while pools still have the lost terms. Hence
//! versions never continue across a copy: the versions of changes made in a copy start at the milliseconds since 1970 at its
//! first raise of an epoch or change. No ledger makes 1,000 changes a second for long, so the versions are above all that were
//! lost before, also above the versions of a promoted standby that a restored backup knows nothing of. A change made again
//! after the loss therefore replaces the lost terms.
//!
//! Epochs never continue across a copy either. Nodes and registries remember the epochs that a copy lost, and drop
//! receipts of lower epochs. The counters of epochs raised in a copy therefore start at the seconds of its lowest
//! version: no ledger raises a bucket once a second for long.

use seatkeeper_core::RegistryTime;

use crate::database::Tx;
use crate::{Error, row, times};

/// The highest first counter of a copy, in the year 2105. A clock set wrong must leave counters for the raises to come.
const COUNTER_FLOOR_MAX: u32 = u32::MAX - (1 << 24);

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

/// Returns the lowest counter of epochs raised in this ledger: 0 in a ledger that is no copy.
pub(crate) async fn epoch_counter_floor(tx: &mut Tx) -> Result<u32, Error> {
    let floors = version_floors(tx).await?;
    Ok(floors.last().map_or(0, |floor| counter_floor(*floor)))
}

/// Returns the lowest counter of epochs of a copy whose versions start at `version_floor`, in milliseconds.
fn counter_floor(version_floor: u64) -> u32 {
    u32::try_from(version_floor / 1_000).unwrap_or(u32::MAX).min(COUNTER_FLOOR_MAX)
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

#[test]
fn counters_of_a_copy_start_at_its_seconds_and_leave_room_for_raises() {
    assert_eq!(counter_floor(1_800_000_000_999), 1_800_000_000);
    assert_eq!(counter_floor(u64::MAX), COUNTER_FLOOR_MAX);
}
