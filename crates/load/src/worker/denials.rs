//! The scenario `denied`: asks for seats of a full license.

use std::collections::VecDeque;

use super::caller::{Ask, Caller, Seat, Taken};
use super::{Worker, held};
use crate::Error;

/// A connection that is denied a seat over and over. All connections together fill the license before the
/// measurement, and keep it full.
pub(crate) struct Denials {
    caller: Caller,
    ask: Ask,
    /// The seats that fill the license, in the order of their renewals.
    seats: VecDeque<Box<Seat>>,
}

impl Denials {
    pub(crate) fn new(mut caller: Caller) -> Result<Self, Error> {
        let ask = caller.new_machine()?;
        Ok(Self { caller, ask, seats: VecDeque::new() })
    }

    /// Asks once. Returns `true` if the license is full. Keeps a granted seat, and asks as another machine
    /// from then on.
    async fn ask(&mut self) -> Result<bool, Error> {
        match self.caller.acquire(&self.ask).await? {
            Taken::Seat(seat) => {
                self.seats.push_back(seat);
                self.ask = self.caller.new_machine()?;
                Ok(false)
            }
            Taken::Full => Ok(true),
            Taken::Nothing => Ok(false),
        }
    }

    async fn renew_if_due(&mut self) -> Result<(), Error> {
        let now = self.caller.now();
        while let Some(mut seat) = self.seats.pop_front_if(|seat| seat.renewal_due <= now) {
            if self.caller.heartbeat(&mut seat).await? {
                self.seats.push_back(seat);
            }
        }
        Ok(())
    }
}

impl Worker for Denials {
    fn caller(&mut self) -> &mut Caller {
        &mut self.caller
    }

    async fn prepare(&mut self) -> Result<(), Error> {
        while !self.ask().await? {
            self.renew_if_due().await?;
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<(), Error> {
        self.renew_if_due().await?;
        self.ask().await.map(drop)
    }

    async fn finish(self) -> Result<(), Error> {
        held::give_back(self.caller, self.seats).await
    }
}
