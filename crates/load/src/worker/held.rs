//! Seats held beyond a turn.

use super::caller::{Caller, Seat};
use crate::Error;

/// Releases all seats.
pub(super) async fn give_back(
    mut caller: Caller,
    seats: impl IntoIterator<Item = Box<Seat>>,
) -> Result<(), Error> {
    for seat in seats {
        caller.release(&seat).await?;
    }
    Ok(())
}
