//! The scenario `cycle`: takes a seat, renews it, releases it, and starts over.

use super::Worker;
use super::desk::{Ask, Desk, Taken};
use crate::Error;

/// A connection that plays the life of a session in each turn.
pub(crate) struct Cycle {
    desk: Desk,
    ask: Ask,
    heartbeats: u32,
}

impl Cycle {
    pub(crate) fn new(mut desk: Desk, heartbeats: u32) -> Result<Self, Error> {
        let ask = desk.new_machine()?;
        Ok(Self { desk, ask, heartbeats })
    }
}

impl Worker for Cycle {
    fn desk(&mut self) -> &mut Desk {
        &mut self.desk
    }

    async fn prepare(&mut self) -> Result<(), Error> {
        self.desk.connect().await
    }

    async fn turn(&mut self) -> Result<(), Error> {
        let Taken::Seat(mut seat) = self.desk.acquire(&self.ask).await? else { return Ok(()) };
        for _ in 0..self.heartbeats {
            if !self.desk.heartbeat(&mut seat).await? {
                return Ok(());
            }
        }
        self.desk.release(&seat).await
    }

    async fn finish(self) -> Result<(), Error> {
        Ok(())
    }
}
