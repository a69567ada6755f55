//! The end of a storm: no seat may have been lost.

use std::time::Duration;

use seatkeeper_load::api::Naming;
use seatkeeper_load::{Error, What};

use super::client::{Client, Machine};
use super::lane::Field;

/// The most attempts of a machine without a clear answer.
const ASKS_MAX: u32 = 50;
/// The pause between two attempts of a machine without a clear answer.
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Waits until no client can hold a seat of the pool and no abandoned request is still at work: a later
/// decision would fall under the operator's final terms. Then takes each seat, asks for one more, and
/// releases all.
pub(super) async fn every_seat_is_there(field: &Field) -> Result<(), Error> {
    let scene = &field.scene;
    let free_from = scene.watch.free_from();
    tokio::time::sleep(free_from.since(scene.stopwatch.now())).await;
    for change in &field.changes.at_the_end {
        change.make(scene).await;
    }

    let mut holders = Vec::new();
    for number in 0..field.seats {
        holders.extend(holder(field, number).await?);
    }
    let taken = holders.len();
    if taken < field.seats as usize {
        let seats_total = field.seats;
        scene.watch.broken(scene.stopwatch.now(), What::SeatsLost { taken, seats_total });
    }
    // If the extra machine is admitted, the checker finds one holder too many.
    holders.extend(holder(field, field.seats).await?);
    for mut holder in holders {
        holder.release().await;
    }
    Ok(())
}

/// Returns a client with a seat for a machine that was not in the storm, or `None` if the pool is full. Asks
/// again until the answer is a grant or a denial.
async fn holder(field: &Field, number: u32) -> Result<Option<Client>, Error> {
    let name = format!("storm-{}-last-{number}", field.number);
    let machine = Machine::new(&field.scene, &name)?;
    let mut client = Client::new(field.scene.clone(), machine);
    for _ in 0..ASKS_MAX {
        let denied = field.scene.watch.denials();
        client.held = client.acquire(Naming::Nothing).await?;
        if client.held.is_some() {
            return Ok(Some(client));
        }
        if field.scene.watch.denials() > denied {
            break;
        }
        tokio::time::sleep(ASKS_AGAIN_AFTER).await;
    }
    Ok(None)
}
