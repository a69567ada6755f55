//! The state of the failover model.

use crate::failover::{Failover, Fallback};
use crate::ledger::{Ledger, Mode};
use crate::memory::{Key, Memory};
use crate::node::{Batch, Node};
use crate::place::Backend;
use crate::rebuild::Rebuild;
use crate::{Client, Clients, NODES, Safeguards, only};

/// The epoch at the start.
pub(crate) const FIRST_EPOCH: u8 = 1;

/// A server of live sessions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    /// The identity of the memory, new after each start or promotion.
    pub(crate) identity: u8,
    pub(crate) memory: Memory,
}

/// A client and its progress.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Asker {
    /// `true` after the client has asked for a seat. A client asks for a single session, and retries for the
    /// same session.
    pub(crate) has_asked: bool,
    /// The request waits for this event to be on record: epoch and number.
    pub(crate) waits_for: Option<(u8, u8)>,
    /// `true` while the client has an answer that its session is live, within the TTL of the answer.
    pub(crate) holds: bool,
    /// `true` after an answer that the session is live: the client knows the id of its session.
    pub(crate) was_answered: bool,
}

impl Asker {
    /// Records an answer that the session is live.
    pub(crate) fn answer(&mut self) {
        (self.holds, self.was_answered) = (true, true);
    }
}

/// The state of the model.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    pub(crate) ledger: Ledger,
    pub(crate) servers: [Server; 3],
    /// The replica was made a primary.
    pub(crate) promoted: bool,
    pub(crate) nodes: [Node; NODES],
    /// Events read by a node and not yet in the ledger. The node may be frozen for any time.
    pub(crate) batch: Option<Batch>,
    /// Rebuilds in progress. An aborted rebuild takes no further step.
    pub(crate) rebuilds: Vec<Rebuild>,
    pub(crate) clients: Vec<Asker>,
    /// The number of faults still to happen.
    pub(crate) faults_left: u8,
}

impl World {
    /// A state without faults and without clients.
    pub(crate) fn new(clients: usize, faults: u8) -> Self {
        let memory = Memory {
            key: Key::Serving { epoch: FIRST_EPOCH, identity: Backend::Primary as u8 },
            open: true,
            ..Memory::LOST
        };
        let node = Node { epoch: FIRST_EPOCH, mode: Mode::Redis, has_lease: true };
        Self {
            ledger: Ledger { epoch: FIRST_EPOCH, mode: Mode::Redis, unreplayed: None, record: Vec::new() },
            servers: Backend::ALL.map(|place| Server {
                identity: place as u8,
                memory: if place == Backend::Postgres { Memory::LOST } else { memory.clone() },
            }),
            promoted: false,
            nodes: [node; NODES],
            batch: None,
            rebuilds: Vec::new(),
            clients: vec![Asker::default(); clients],
            faults_left: faults,
        }
    }

    pub(crate) fn server(&mut self, place: Backend) -> &mut Server {
        &mut self.servers[place as usize]
    }

    pub(crate) fn memory(&self, place: Backend) -> &Memory {
        &self.servers[place as usize].memory
    }

    pub(crate) fn memory_mut(&mut self, place: Backend) -> &mut Memory {
        &mut self.server(place).memory
    }

    /// Returns `true` if nodes use the registry `place` in `mode`.
    pub(crate) fn is_used(&self, place: Backend, mode: Mode) -> bool {
        match place {
            Backend::Primary => mode == Mode::Redis,
            Backend::Replica => mode == Mode::Redis && self.promoted,
            Backend::Postgres => mode == Mode::Postgres,
        }
    }

    /// Returns `true` if the registry takes a node's calls.
    pub(crate) fn is_served(&self, place: Backend, node: Node, by: Safeguards) -> bool {
        if !self.is_used(place, node.mode) {
            return false;
        }
        if place == Backend::Postgres && by.script_demands_epoch {
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

    /// Records a renewal: the client learns, now or soon, that its session is live for one TTL from a step at
    /// `place`; `None` for a step at the ledger.
    pub(crate) fn renewed(&mut self, client: Client, place: Option<Backend>) {
        for other in Backend::ALL {
            let memory = self.memory_mut(other);
            if Some(other) == place {
                memory.told_elsewhere &= !only(client);
            } else if memory.open {
                memory.told_elsewhere |= only(client);
            }
        }
    }

    /// Returns the clients that believe in their sessions.
    pub(crate) fn holders(&self) -> Clients {
        let holders = (0..).zip(&self.clients).filter(|(_, asker)| asker.holds);
        holders.fold(0, |all, (client, _)| all | only(client))
    }

    /// Returns the world in a normal form, to merge equivalent states. Nodes are interchangeable, and three
    /// contents are irrelevant: a memory beyond the reach of every node, events certain to be refused by the
    /// ledger, and the ids that clients know while a registry serves the pool in every mode.
    pub(crate) fn normalized(mut self, model: &Failover) -> Self {
        self.nodes.sort_unstable();
        if self.faults_left == 0 && !self.promoted {
            *self.memory_mut(Backend::Replica) = Memory::LOST;
        }
        if model.fallback != Some(Fallback::LedgerAlone) {
            self.clients.iter_mut().for_each(|asker| asker.was_answered = false);
        }
        if model.safeguards.ledger_demands_epoch {
            let epoch = self.ledger.epoch;
            self.batch.take_if(|batch| batch.events.iter().any(|event| event.epoch != epoch));
            for asker in &mut self.clients {
                asker.waits_for.take_if(|(awaited, _)| *awaited != epoch);
            }
        }
        self
    }
}
