//! Faults, and the ends of faults.

use super::node::Node;
use super::state::{PAIR, Scene};

/// An instant fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Redis restarts with an empty memory.
    Empty,
    /// A lagging replica becomes the primary: its memory lacks the session.
    Lagging,
    /// The identity of Redis changes while the memory stays.
    Renamed,
    /// The clock of Redis jumps forward, by more than a TTL.
    Jump,
    /// The clock of PostgreSQL jumps forward by more than a TTL, while the PostgreSQL registry has the
    /// session.
    PostgresJump,
    /// The rebuilding node freezes for any time.
    Freeze,
}

/// A lasting fault, until mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A node does not reach the ledger.
    Ledger(usize),
    /// PostgreSQL is down.
    Postgres,
    /// A node does not reach Redis.
    Redis(usize),
    /// Redis refuses writes.
    Writes,
    /// The clock of Redis is a decade ahead.
    Decade,
    /// The clock of Redis was set back and stands still.
    Standstill,
    /// The network between the nodes and Redis loses some messages, and delays the rest.
    BadNetwork,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 6] =
        [Self::Empty, Self::Lagging, Self::Renamed, Self::Jump, Self::PostgresJump, Self::Freeze];
}

impl Cut {
    /// Every fault.
    pub const ALL: [Self; 9] = [
        Self::Ledger(0),
        Self::Ledger(1),
        Self::Postgres,
        Self::Redis(0),
        Self::Redis(1),
        Self::Writes,
        Self::Decade,
        Self::Standstill,
        Self::BadNetwork,
    ];
}

impl Scene {
    pub(super) fn strike(&mut self, fault: Fault) -> Option<()> {
        self.use_fault()?;
        match fault {
            Fault::Empty => {
                self.redis.identity += 1;
                self.redis.forget();
            }
            Fault::Lagging => {
                self.redis.session.take()?;
                self.redis.identity += 1;
            }
            Fault::Renamed => self.redis.identity += 1,
            Fault::PostgresJump => self.standby.jump()?,
            Fault::Freeze => self.rebuild.as_mut()?.is_frozen = true,
            Fault::Jump => {
                self.redis.jump();
                self.nodes.iter_mut().for_each(Node::doubt_clock);
            }
        }
        Some(())
    }

    pub(super) fn cut(&mut self, cut: Cut) -> Option<()> {
        self.use_fault()?;
        (!self.is_cut(cut)).then_some(())?;
        self.set_cut(cut, true);
        Some(())
    }

    pub(super) fn mend(&mut self, cut: Cut) -> Option<()> {
        self.is_cut(cut).then_some(())?;
        self.set_cut(cut, false);
        Some(())
    }

    /// Returns the scene after the end of every fault.
    pub(super) fn mended(&self) -> Self {
        let mut scene = *self;
        for cut in Cut::ALL {
            // Only a present fault can be mended.
            let _ = scene.mend(cut);
        }
        scene
    }

    /// Changes the fate of the messages between a node and Redis over a bad network.
    pub(super) fn waver(&mut self, node: usize) -> Option<()> {
        self.network_is_bad.then(|| self.nodes[node].loses ^= true)
    }

    fn use_fault(&mut self) -> Option<()> {
        self.faults_left = self.faults_left.checked_sub(1)?;
        Some(())
    }

    fn is_cut(&self, cut: Cut) -> bool {
        match cut {
            Cut::Ledger(node) => !self.nodes[node].has_ledger,
            Cut::Postgres => self.postgres_is_down,
            Cut::Redis(node) => !self.nodes[node].has_redis,
            Cut::Writes => !self.redis.takes_writes,
            Cut::Decade => self.redis.clock_is_far,
            Cut::Standstill => self.redis.clock_stands,
            Cut::BadNetwork => self.network_is_bad,
        }
    }

    fn set_cut(&mut self, cut: Cut, is_cut: bool) {
        match cut {
            Cut::Ledger(node) => self.nodes[node].has_ledger = !is_cut,
            Cut::Postgres => self.postgres_is_down = is_cut,
            Cut::Redis(node) => {
                self.nodes[node].has_redis = !is_cut;
                // A new connection begins by reading the identity.
                self.read_identity(node);
            }
            Cut::Writes => self.redis.takes_writes = !is_cut,
            Cut::Decade => self.redis.clock_is_far = is_cut,
            Cut::Standstill => self.redis.clock_stands = is_cut,
            Cut::BadNetwork => {
                self.network_is_bad = is_cut;
                self.nodes.iter_mut().for_each(|node| node.loses = false);
            }
        }
    }
}

// The nodes of a pair are named by `Cut::ALL`.
const _: () = assert!(PAIR == 2, "each node has links that can be cut");
