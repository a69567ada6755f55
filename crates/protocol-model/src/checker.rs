//! The failover protocol as a model for the checker, and the promises of the protocol.

use stateright::{Model, Property};

use crate::failover::{Failover, Fallback};
use crate::ledger::{Change, Event, Mode};
use crate::memory::Key;
use crate::place::Backend;
use crate::step::Step;
use crate::world::{FIRST_EPOCH, Server, World};
use crate::{Clients, only};

/// Names of the properties: invariants that always hold, and reachable goals.
pub mod promise {
    /// The clients with a valid answer that their session is live never exceed the limit.
    pub const LIMIT: &str = "never more holders than seats";
    /// The record never shows more live sessions than the limit.
    pub const RECORD: &str = "never more on record than seats";
    /// Every holder of a seat is on record, if answers wait for their commit.
    pub const ON_RECORD: &str = "whoever holds a seat is on record";
    /// No session is on record as ended while its client rightly believes in the session.
    pub const NO_FALSE_END: &str = "whoever holds a seat is not on record as ended";
    /// A session begins once and later ends once.
    pub const ONE_END: &str = "a session ends once";
    /// The serving registry knows every holder of a seat.
    pub const KNOWN: &str = "whoever serves knows who holds a seat";
    /// A client can get a seat after a rebuild.
    pub const GOES_ON: &str = "a seat can be had in a later epoch";
    /// A client that got a seat before a rebuild can keep the seat.
    pub const SURVIVES: &str = "a seat outlives an epoch";
    /// Every seat can be taken.
    pub const FULL: &str = "all seats can be held";
    /// A session that the ledger alone has renewed outlives an end without a record.
    pub const GOES_ON_BY_LEDGER: &str = "a session goes on that only Redis has ended";
    /// Seats can be had from PostgreSQL, and later from Redis again.
    pub const RETURNS: &str = "there is a way back";
}

impl Model for Failover {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.clients, self.faults)]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        self.steps(world, steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        self.take(step, world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always(promise::LIMIT, |model: &Self, world: &World| {
                world.holders().count_ones() <= model.limit
            }),
            Property::always(promise::RECORD, |model: &Self, world: &World| {
                greatest(&world.ledger.record) <= model.limit
            }),
            Property::always(promise::ON_RECORD, |model: &Self, world: &World| {
                model.answers_by_journal || world.holders() & !began(&world.ledger.record) == 0
            }),
            Property::always(promise::NO_FALSE_END, |_, world: &World| {
                world.holders() & began(&world.ledger.record) & !world.ledger.live() == 0
            }),
            Property::always(promise::ONE_END, |_, world: &World| is_in_order(&world.ledger.record)),
            Property::always(promise::KNOWN, |_, world: &World| world.is_known_who_holds()),
            Property::sometimes(promise::FULL, |model: &Self, world: &World| {
                world.holders().count_ones() == model.limit
            }),
            Property::sometimes(promise::GOES_ON, |_, world: &World| {
                let asker = &world.clients[0];
                world.is_served_anew()
                    && world.ledger.record.is_empty()
                    && (asker.waits_for.is_some() || asker.holds)
            }),
            Property::sometimes(promise::SURVIVES, |_, world: &World| {
                world.is_served_anew() && world.holders() != 0
            }),
        ];
        if self.fallback.is_some() && self.epochs > FIRST_EPOCH + 1 {
            properties.push(Property::sometimes(promise::RETURNS, |model: &Self, world: &World| {
                let both = world.ledger.epoch == model.epochs && world.ledger.mode == Mode::Redis;
                both && world.is_served_anew() && world.ledger.record.len() > 1
            }));
        }
        if self.fallback == Some(Fallback::LedgerAlone) {
            properties.push(Property::sometimes(promise::GOES_ON_BY_LEDGER, |_, world: &World| {
                world.is_served_anew()
                    && world.ledger.mode == Mode::LedgerAlone
                    && world.holders() & ended(&world.memory(Backend::Primary).journal) != 0
            }));
        }
        properties
    }
}

impl World {
    /// Returns `true` if a registry serves the ledger's epoch after at least one raise.
    fn is_served_anew(&self) -> bool {
        self.ledger.epoch > FIRST_EPOCH && self.serving().is_some()
    }

    /// Returns the registry serving the ledger's epoch.
    fn serving(&self) -> Option<&Server> {
        self.servers.iter().find(|server| {
            server.memory.key == Key::Serving { epoch: self.ledger.epoch, identity: server.identity }
        })
    }

    /// Returns `true` if every holder of a seat is live in the serving registry.
    fn is_known_who_holds(&self) -> bool {
        self.serving().is_none_or(|server| !server.memory.open || self.holders() & !server.memory.live == 0)
    }
}

/// Returns the clients with a session on record, live or ended.
fn began(record: &[Change]) -> Clients {
    record.iter().fold(0, |all, change| match *change {
        Change::Admitted(client) => all | only(client),
        Change::Ended(_) => all,
    })
}

/// Returns the clients with the end of their session in a journal.
fn ended(journal: &[Event]) -> Clients {
    journal.iter().fold(0, |all, event| match event.change {
        Change::Ended(client) => all | only(client),
        Change::Admitted(_) => all,
    })
}

/// Returns the greatest number of simultaneously live sessions.
fn greatest(record: &[Change]) -> u32 {
    let mut live: Clients = 0;
    let mut greatest = 0;
    for change in record {
        match *change {
            Change::Admitted(client) => live |= only(client),
            Change::Ended(client) => live &= !only(client),
        }
        greatest = greatest.max(live.count_ones());
    }
    greatest
}

/// Returns `true` if each session began at most once, and later ended at most once.
fn is_in_order(record: &[Change]) -> bool {
    let (mut began, mut ended): (Clients, Clients) = (0, 0);
    record.iter().all(|change| match *change {
        Change::Admitted(client) => {
            let first = began & only(client) == 0;
            began |= only(client);
            first
        }
        Change::Ended(client) => {
            let first = began & only(client) != 0 && ended & only(client) == 0;
            ended |= only(client);
            first
        }
    })
}
