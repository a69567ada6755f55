//! The scenario `heartbeats`: holds seats and renews the seats in turn.

use std::collections::VecDeque;

use super::desk::{Desk, Seat, Taken};
use super::{Worker, held};
use crate::Error;

/// A connection that renews its seats in turn.
pub(crate) struct Heartbeats {
    desk: Desk,
    seats: VecDeque<Box<Seat>>,
    seats_wanted: usize,
}

impl Heartbeats {
    pub(crate) fn new(desk: Desk, seats_wanted: usize) -> Self {
        Self { desk, seats: VecDeque::with_capacity(seats_wanted), seats_wanted }
    }

    /// Takes another seat. Returns `false` if the license is full.
    async fn take(&mut self) -> Result<bool, Error> {
        let ask = self.desk.new_machine()?;
        match self.desk.acquire(&ask).await? {
            Taken::Seat(seat) => self.seats.push_back(seat),
            Taken::Full => return Ok(false),
            Taken::Nothing => {}
        }
        Ok(true)
    }
}

impl Worker for Heartbeats {
    fn desk(&mut self) -> &mut Desk {
        &mut self.desk
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
        if self.desk.heartbeat(&mut seat).await? {
            self.seats.push_back(seat);
        }
        Ok(())
    }

    async fn finish(self) -> Result<(), Error> {
        held::give_back(self.desk, self.seats).await
    }
}
