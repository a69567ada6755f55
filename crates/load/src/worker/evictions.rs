//! The scenario `evictions`: admits devices of subscribers whose screens are all in use. Each admission
//! evicts the stalest device.

use super::Worker;
use super::caller::Caller;
use crate::{Error, Target};

/// The number of devices in a household. More than twice the largest limit of the usual plans: among sessions
/// that began in the same millisecond any may be evicted first, and a device that returns must have been
/// evicted.
const DEVICES_PER_SUBSCRIBER: u32 = 12;

/// A connection that admits the devices of its subscribers in turn, over and over.
pub(crate) struct Evictions {
    caller: Caller,
    households: Vec<Household>,
    next: usize,
}

struct Household {
    subscriber: Target,
    /// The device without a session for the longest time.
    device: u32,
}

impl Evictions {
    /// Returns the worker for the connection's part of the subscribers: with `n` connections, every `n`-th
    /// subscriber.
    pub(crate) fn new(caller: Caller, subscribers: &[Target]) -> Self {
        let own = subscribers.iter().skip(caller.number()).step_by(caller.concurrency());
        let households = own.map(|subscriber| Household { subscriber: subscriber.clone(), device: 0 });
        Self { households: households.collect(), next: 0, caller }
    }

    /// Admits the next device. Returns whether the admission evicted another device.
    async fn admit(&mut self) -> Result<bool, Error> {
        let Household { subscriber, device } = &mut self.households[self.next];
        let admitted = self.caller.admit(subscriber, *device).await;
        *device = (*device + 1) % DEVICES_PER_SUBSCRIBER;
        admitted
    }

    fn turn_to_next(&mut self) {
        self.next = (self.next + 1) % self.households.len();
    }
}

impl Worker for Evictions {
    fn caller(&mut self) -> &mut Caller {
        &mut self.caller
    }

    async fn prepare(&mut self) -> Result<(), Error> {
        for _ in 0..self.households.len() {
            while !self.admit().await? {}
            self.turn_to_next();
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<(), Error> {
        self.admit().await?;
        self.turn_to_next();
        Ok(())
    }

    async fn finish(self) -> Result<(), Error> {
        Ok(())
    }
}
