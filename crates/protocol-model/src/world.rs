//! All there is, at one moment.

use crate::ledger::{Ledger, Mode};
use crate::memory::{Key, Memory};
use crate::node::{Batch, Node};
use crate::place::Place;
use crate::rebuild::Rebuild;
use crate::{Client, Clients, NODES, Safeguards, only};

/// The epoch in which it begins.
pub(crate) const FIRST_EPOCH: u8 = 1;

/// A server of live sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    /// What it is since it started or was promoted.
    pub(crate) identity: u8,
    pub(crate) memory: Memory,
}

/// How far a client came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Asker {
    /// It has asked for a seat. Each asks once, and then goes on with what came of that.
    pub(crate) has_asked: bool,
    /// Its request waits for this event to be on record: epoch and number.
    pub(crate) waits_for: Option<(u8, u8)>,
    /// It was told that it is live, and the time that it was told is not over.
    pub(crate) holds: bool,
}

/// All there is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(crate) ledger: Ledger,
    pub(crate) servers: [Server; 3],
    /// Whether the replica was made a primary.
    pub(crate) promoted: bool,
    pub(crate) nodes: [Node; NODES],
    /// Events that some node read and did not bring to the ledger yet, however long ago that was.
    pub(crate) batch: Option<Batch>,
    /// Rebuilds that some nodes are at. One that breaks off is never gone on with.
    pub(crate) rebuilds: Vec<Rebuild>,
    pub(crate) clients: Vec<Asker>,
    /// What may still fail.
    pub(crate) faults_left: u8,
}

impl World {
    /// All is well and nobody has come yet.
    pub(crate) fn new(clients: usize, faults: u8) -> Self {
        let memory = Memory {
            key: Key::Serving { epoch: FIRST_EPOCH, identity: Place::Primary as u8 },
            open: true,
            ..Memory::LOST
        };
        let node = Node { epoch: FIRST_EPOCH, mode: Mode::Redis, has_lease: true };
        Self {
            ledger: Ledger { epoch: FIRST_EPOCH, mode: Mode::Redis, record: Vec::new() },
            servers: Place::ALL.map(|place| Server {
                identity: place as u8,
                memory: if place == Place::Postgres { Memory::LOST } else { memory.clone() },
            }),
            promoted: false,
            nodes: [node; NODES],
            batch: None,
            rebuilds: Vec::new(),
            clients: vec![Asker::default(); clients],
            faults_left: faults,
        }
    }

    pub(crate) fn server(&mut self, place: Place) -> &mut Server {
        &mut self.servers[place as usize]
    }

    pub(crate) fn memory(&self, place: Place) -> &Memory {
        &self.servers[place as usize].memory
    }

    pub(crate) fn memory_mut(&mut self, place: Place) -> &mut Memory {
        &mut self.server(place).memory
    }

    /// Whether this registry is one that serves those who know this mode.
    pub(crate) fn is_used(&self, place: Place, mode: Mode) -> bool {
        match place {
            Place::Primary => mode == Mode::Redis,
            Place::Replica => mode == Mode::Redis && self.promoted,
            Place::Postgres => mode == Mode::Postgres,
        }
    }

    /// Whether a node's calls are taken there.
    pub(crate) fn is_served(&self, place: Place, node: Node, by: Safeguards) -> bool {
        if !self.is_used(place, node.mode) {
            return false;
        }
        if place == Place::Postgres && by.script_demands_epoch {
            // The transaction holds the bucket's row.
            let row = (self.ledger.epoch, self.ledger.mode);
            if row != (node.epoch, Mode::Postgres) {
                return false;
            }
        }
        let server = &self.servers[place as usize];
        match server.memory.key {
            Key::Serving { epoch, identity } => {
                (epoch == node.epoch || !by.script_demands_epoch)
                    && (identity == server.identity || !by.node_demands_identity)
            }
            Key::Missing | Key::Rebuilding { .. } => !by.script_demands_epoch,
        }
    }

    /// A client was told that it is live, or is about to be: for one TTL from what `place` did just now.
    pub(crate) fn renewed(&mut self, client: Client, place: Place) {
        for other in Place::ALL {
            let memory = self.memory_mut(other);
            if other == place {
                memory.told_elsewhere &= !only(client);
            } else if memory.open {
                memory.told_elsewhere |= only(client);
            }
        }
    }

    /// Who was told that they are live, and believe it.
    pub(crate) fn holders(&self) -> Clients {
        let holders = (0..).zip(&self.clients).filter(|(_, asker)| asker.holds);
        holders.fold(0, |all, (client, _)| all | only(client))
    }

    /// The same world, told in one way: which node does something makes no difference, and neither does what is in
    /// a memory that nobody can come to any more, nor what the ledger is sure to refuse.
    pub(crate) fn told_plainly(mut self, by: Safeguards) -> Self {
        self.nodes.sort_unstable();
        if self.faults_left == 0 && !self.promoted {
            *self.memory_mut(Place::Replica) = Memory::LOST;
        }
        if by.ledger_demands_epoch {
            let epoch = self.ledger.epoch;
            self.batch.take_if(|batch| batch.events.iter().any(|event| event.epoch != epoch));
            for asker in &mut self.clients {
                asker.waits_for.take_if(|(awaited, _)| *awaited != epoch);
            }
        }
        self
    }
}
