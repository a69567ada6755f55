//! Models the epoch lease in a partition: which nodes may answer by an epoch, while some nodes are cut off
//! from the ledger or from Redis and a node raises the epoch. `docs/failover.md` has the rules.
//!
//! Unlike in the model of the registries, time counts, in ticks of half a lease. A tick passes for every node
//! at once. The model omits the contents of registries: a rebuild is over after its fill.

use stateright::{Model, Property};

use crate::NODES;

/// Ticks of a lease, and of the validity of a word on the roll.
const LEASE: u8 = 2;

/// The rules in force. A test can switch each rule off.
#[derive(Clone, Copy, Debug)]
pub struct LeaseRules {
    /// A node without the ledger continues only by the word of every node. Otherwise a failed reading counts
    /// as a reading.
    pub every_node_vouches: bool,
    /// The lease continues from the oldest word, and not from the time of reading the words.
    pub words_grow_old: bool,
    /// A node announces on the roll, before raising an epoch, that the node reaches the ledger until the end
    /// of the rebuild.
    pub raise_is_announced: bool,
    /// Only the ledger restores a lapsed lease.
    pub ledger_alone_restores: bool,
    /// A rebuild waits for a lease before the fill.
    pub rebuild_waits: bool,
}

impl LeaseRules {
    /// Every rule.
    pub const ALL: Self = Self {
        every_node_vouches: true,
        words_grow_old: true,
        raise_is_announced: true,
        ledger_alone_restores: true,
        rebuild_waits: true,
    };
}

/// The extent of a walk with three nodes and their links.
#[derive(Clone, Copy, Debug)]
pub struct Partition {
    /// The last epoch of the walk. The first epoch is 1.
    pub epochs: u8,
    /// The number of times that a link to the ledger or to Redis is cut or mended.
    pub changes: u8,
    /// The rules in force.
    pub rules: LeaseRules,
}

/// A word on the roll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Word {
    may_reach_ledger: bool,
    age: u8,
}

/// A rebuild in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Raised {
    epoch: u8,
    waited: u8,
}

/// A node. Begins with a lease on the first epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Node {
    has_ledger: bool,
    has_redis: bool,
    /// The latest reading of the ledger failed.
    is_without_ledger: bool,
    /// The known epoch.
    epoch: u8,
    /// Ticks since the ledger or the remaining nodes vouched.
    vouched_ago: u8,
    has_lapsed: bool,
    word: Word,
    raised: Option<Raised>,
}

impl Node {
    fn may_answer(&self) -> bool {
        !self.has_lapsed && self.vouched_ago < LEASE
    }
}

/// The state of the model: the ledger's epoch, and the nodes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nodes {
    epoch: u8,
    /// The epoch of the last fill of a registry. The fill restarted every TTL.
    filled: u8,
    nodes: [Node; NODES],
    changes_left: u8,
}

/// A step of a node, or a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// The link to the ledger is cut, or mended.
    Ledger(usize),
    /// The link to Redis is cut, or mended.
    Redis(usize),
    /// The node reads the ledger, with success or failure.
    Read(usize),
    /// The node answers the roll call.
    Answer(usize),
    /// The node reads the roll, and accepts the word of every node.
    Vouch(usize),
    /// The node finds its lease over.
    Lapse(usize),
    /// The node raises the epoch.
    Raise(usize),
    /// The node has waited and fills a registry.
    Fill(usize),
    /// The node aborts a rebuild.
    BreakOff(usize),
    /// Time passes.
    Tick,
}

/// No node answers by an epoch older than the epoch of the last fill.
pub const NO_OLD_ANSWER: &str = "nobody answers by an epoch before the one that was filled";
/// Nodes continue after every node has lost the ledger.
pub const GOES_ON: &str = "nodes that have all lost the ledger go on";

impl Model for Partition {
    type State = Nodes;
    type Action = LeaseStep;

    fn init_states(&self) -> Vec<Nodes> {
        let node = Node {
            has_ledger: true,
            has_redis: true,
            is_without_ledger: false,
            epoch: 1,
            vouched_ago: 0,
            has_lapsed: false,
            word: Word { may_reach_ledger: true, age: 0 },
            raised: None,
        };
        vec![Nodes { epoch: 1, filled: 1, nodes: [node; NODES], changes_left: self.changes }]
    }

    fn actions(&self, _nodes: &Nodes, steps: &mut Vec<LeaseStep>) {
        steps.push(LeaseStep::Tick);
        for node in 0..NODES {
            steps.extend(
                [
                    LeaseStep::Ledger,
                    LeaseStep::Redis,
                    LeaseStep::Read,
                    LeaseStep::Answer,
                    LeaseStep::Vouch,
                    LeaseStep::Lapse,
                    LeaseStep::Raise,
                    LeaseStep::Fill,
                    LeaseStep::BreakOff,
                ]
                .map(|step| step(node)),
            );
        }
    }

    fn next_state(&self, nodes: &Nodes, step: LeaseStep) -> Option<Nodes> {
        let mut next = nodes.clone();
        self.carry_out(step, &mut next)?;
        // Nodes are interchangeable: sort them to merge symmetric states.
        next.nodes.sort_unstable();
        (next != *nodes).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_OLD_ANSWER, |_, nodes: &Nodes| {
                !nodes.nodes.iter().any(|node| node.may_answer() && node.epoch < nodes.filled)
            }),
            Property::sometimes(GOES_ON, |_, nodes: &Nodes| {
                // Renewed without a link to the ledger, so by the word of the remaining nodes.
                nodes.nodes.iter().all(|node| node.is_without_ledger && node.vouched_ago == 0)
                    && nodes.nodes.iter().all(|node| !node.has_ledger && node.word.age == 0)
            }),
        ]
    }
}

impl Partition {
    fn carry_out(&self, step: LeaseStep, nodes: &mut Nodes) -> Option<()> {
        match step {
            LeaseStep::Ledger(node) => {
                nodes.changes_left = nodes.changes_left.checked_sub(1)?;
                nodes.nodes[node].has_ledger ^= true;
            }
            LeaseStep::Redis(node) => {
                nodes.changes_left = nodes.changes_left.checked_sub(1)?;
                nodes.nodes[node].has_redis ^= true;
            }
            LeaseStep::Read(node) => self.read(nodes, node),
            LeaseStep::Answer(node) => self.answer(&mut nodes.nodes[node])?,
            LeaseStep::Vouch(node) => self.vouch(nodes, node)?,
            LeaseStep::Lapse(node) => {
                let node = &mut nodes.nodes[node];
                (node.is_without_ledger && node.vouched_ago >= LEASE).then_some(())?;
                node.has_lapsed = true;
            }
            LeaseStep::Raise(node) => self.raise(nodes, node)?,
            LeaseStep::Fill(node) => {
                let Nodes { epoch, filled, nodes, .. } = nodes;
                let node = &mut nodes[node];
                let Raised { epoch: own, waited } = node.raised?;
                let has_waited = waited >= LEASE || !self.rules.rebuild_waits;
                (node.has_ledger && own == *epoch && has_waited).then_some(())?;
                *filled = own;
                node.raised = None;
            }
            LeaseStep::BreakOff(node) => {
                nodes.nodes[node].raised.take()?;
            }
            LeaseStep::Tick => tick(nodes),
        }
        Some(())
    }

    fn read(&self, nodes: &mut Nodes, node: usize) {
        let (epoch, node) = (nodes.epoch, &mut nodes.nodes[node]);
        node.is_without_ledger = !node.has_ledger;
        if node.has_ledger {
            (node.epoch, node.vouched_ago, node.has_lapsed) = (epoch, 0, false);
        } else if !self.rules.every_node_vouches {
            node.vouched_ago = 0;
        }
    }

    fn answer(&self, node: &mut Node) -> Option<()> {
        node.has_redis.then_some(())?;
        let is_raising = self.rules.raise_is_announced && node.raised.is_some();
        node.word = Word { may_reach_ledger: !node.is_without_ledger || is_raising, age: 0 };
        Some(())
    }

    fn vouch(&self, nodes: &mut Nodes, node: usize) -> Option<()> {
        let words = nodes.nodes.map(|node| node.word);
        let reader = &mut nodes.nodes[node];
        (reader.has_redis && reader.is_without_ledger).then_some(())?;
        let all_have_lost = words.iter().all(|word| !word.may_reach_ledger && word.age < LEASE);
        (all_have_lost && (reader.may_answer() || !self.rules.ledger_alone_restores)).then_some(())?;
        let oldest = words.iter().map(|word| word.age).max().unwrap_or_default();
        let vouched_ago = if self.rules.words_grow_old { oldest } else { 0 };
        reader.vouched_ago = reader.vouched_ago.min(vouched_ago);
        reader.has_lapsed = false;
        Some(())
    }

    fn raise(&self, nodes: &mut Nodes, node: usize) -> Option<()> {
        (nodes.epoch < self.epochs && nodes.nodes[node].has_ledger).then_some(())?;
        nodes.epoch += 1;
        nodes.nodes[node].raised = Some(Raised { epoch: nodes.epoch, waited: 0 });
        if self.rules.raise_is_announced {
            // Without Redis the announcement fails. The node's last word grows old instead.
            let _ = self.answer(&mut nodes.nodes[node]);
        }
        Some(())
    }
}

fn tick(nodes: &mut Nodes) {
    let older = |age: u8| LEASE.min(age + 1);
    for node in &mut nodes.nodes {
        node.vouched_ago = older(node.vouched_ago);
        node.word.age = older(node.word.age);
        node.raised = node.raised.map(|raised| Raised { waited: older(raised.waited), ..raised });
    }
}
