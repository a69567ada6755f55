//! The scenario `heartbeats`: holds seats and renews the seats in turn.

use std::collections::VecDeque;

use super::caller::{Caller, Seat, Taken};
use super::{Worker, held};
use crate::Error;

/// A connection that renews its seats in turn.
pub(crate) struct Heartbeats {
    caller: Caller,
    seats: VecDeque<Box<Seat>>,
    seats_wanted: usize,
}

impl Heartbeats {
    pub(crate) fn new(caller: Caller, seats_wanted: usize) -> Self {
        Self { caller, seats: VecDeque::with_capacity(seats_wanted), seats_wanted }
    }

    /// Takes another seat. Returns `false` if the license is full.
    async fn take(&mut self) -> Result<bool, Error> {
        let ask = self.caller.new_machine()?;
        match self.caller.acquire(&ask).await? {
            Taken::Seat(seat) => self.seats.push_back(seat),
            Taken::Full => return Ok(false),
            Taken::Nothing => {}
        }
        Ok(true)
    }
}

impl Worker for Heartbeats {
    fn caller(&mut self) -> &mut Caller {
        &mut self.caller
    }

    async fn prepare(&mut self) -> Result<(), Error> {
        while self.seats.len() < self.seats_wanted {
            if !self.take().await? {
                return Err(Error::TooFewSeats { wanted: self.seats_wanted });
            }
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<(), Error> {
        let Some(mut seat) = self.seats.pop_front() else { return self.take().await.map(drop) };
        if self.caller.heartbeat(&mut seat).await? {
            self.seats.push_back(seat);
        }
        Ok(())
    }

    async fn finish(self) -> Result<(), Error> {
        held::give_back(self.caller, self.seats).await
    }
}
