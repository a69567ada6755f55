//! Seats held beyond a turn.

use super::desk::{Desk, Seat};
use crate::Error;

/// Releases all seats.
pub(super) async fn give_back(
    mut desk: Desk,
    seats: impl IntoIterator<Item = Box<Seat>>,
) -> Result<(), Error> {
    for seat in seats {
        desk.release(&seat).await?;
    }
    Ok(())
}
