//! The end of a storm: no seat may have got lost in it.

use std::time::Duration;

use super::client::{Client, Machine};
use super::lane::Field;
use crate::api::Naming;
use crate::{Error, What};

/// How often a machine asks that gets no answer it can go by, and how long it waits in between.
const ASKS_MAX: u32 = 50;
const ASKS_AGAIN_AFTER: Duration = Duration::from_millis(200);

/// Waits until nobody can hold a seat of the pool any more, and no request that its client gave up is still at work,
/// for it would be decided as the operator settles things now. Then takes each seat, asks for one more, and gives all
/// back.
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
    // If it is admitted, the checker sees one too many.
    holders.extend(holder(field, field.seats).await?);
    for mut holder in holders {
        holder.release().await;
    }
    Ok(())
}

/// A machine that was not in the storm, if it gets a seat. As long as it is told neither that it has one nor that none
/// is free, it asks again.
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
