//! The scenario `cycle`: takes a seat, renews it, releases it, and starts over.

use super::Worker;
use super::caller::{Ask, Caller, Taken};
use crate::Error;

/// A connection that plays the life of a session in each turn.
pub(crate) struct Cycle {
    caller: Caller,
    ask: Ask,
    heartbeats: u32,
}

impl Cycle {
    pub(crate) fn new(mut caller: Caller, heartbeats: u32) -> Result<Self, Error> {
        let ask = caller.new_machine()?;
        Ok(Self { caller, ask, heartbeats })
    }
}

impl Worker for Cycle {
    fn caller(&mut self) -> &mut Caller {
        &mut self.caller
    }

    async fn prepare(&mut self) -> Result<(), Error> {
        self.caller.connect().await
    }

    async fn turn(&mut self) -> Result<(), Error> {
        let Taken::Seat(mut seat) = self.caller.acquire(&self.ask).await? else { return Ok(()) };
        for _ in 0..self.heartbeats {
            if !self.caller.heartbeat(&mut seat).await? {
                return Ok(());
            }
        }
        self.caller.release(&seat).await
    }

    async fn finish(self) -> Result<(), Error> {
        Ok(())
    }
}
