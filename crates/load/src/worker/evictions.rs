//! Admits devices of subscribers whose screens are all in use: each takes the place of the stalest.

use super::Worker;
use super::desk::Desk;
use crate::{Error, Target};

/// How many devices a household has. More than twice as many as the largest of the usual plans allows at once:
/// of sessions that began in the same millisecond any may go first, and a device that returns must be out.
const DEVICES_PER_SUBSCRIBER: u32 = 12;

/// A connection that admits the devices of its subscribers in turn, over and over.
pub(crate) struct Evictions {
    desk: Desk,
    households: Vec<Household>,
    next: usize,
}

struct Household {
    subscriber: Target,
    /// The device that was out the longest.
    device: u32,
}

impl Evictions {
    /// The connection's part of all subscribers: every so many-th.
    pub(crate) fn new(desk: Desk, subscribers: &[Target]) -> Self {
        let own = subscribers.iter().skip(desk.number()).step_by(desk.concurrency());
        let households = own.map(|subscriber| Household { subscriber: subscriber.clone(), device: 0 });
        Self { households: households.collect(), next: 0, desk }
    }

    /// Admits the next device; says whether another one had to go for it.
    async fn admit(&mut self) -> Result<bool, Error> {
        let Household { subscriber, device } = &mut self.households[self.next];
        let admitted = self.desk.admit(subscriber, *device).await;
        *device = (*device + 1) % DEVICES_PER_SUBSCRIBER;
        admitted
    }

    fn turn_to_next(&mut self) {
        self.next = (self.next + 1) % self.households.len();
    }
}

impl Worker for Evictions {
    fn desk(&mut self) -> &mut Desk {
        &mut self.desk
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
