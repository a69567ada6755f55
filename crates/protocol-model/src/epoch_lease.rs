//! Models the epoch lease in a partition: which nodes may answer by an epoch, while some nodes are cut off
//! from the ledger or from Redis and a node raises the epoch. `docs/failover.md` has the rules.
//!
//! Unlike in the model of the registries, time counts, in ticks of half a lease. A tick passes for every node
//! at once. The model omits the contents of registries: a rebuild is over after its fill.
//!
//! Nodes may start late. `names.rs` has the names of each node, the nodes without whose word a node extends no
//! lease, and the rows of the ledger that tell the names.

mod names;

use stateright::{Model, Property};

use self::names::Row;
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
    /// A node announces on the roll, before raising an epoch, that the node reaches the ledger.
    pub raise_is_announced: bool,
    /// The announcement lasts until every lease on an earlier epoch is over. Otherwise a word that the ledger is lost
    /// may follow within half a lease.
    pub announcement_lasts: bool,
    /// Only the ledger restores a lapsed lease.
    pub ledger_alone_restores: bool,
    /// A rebuild waits for a lease before the fill.
    pub rebuild_waits: bool,
    /// The ledger refuses a raise while a row does not name the raising node.
    pub raiser_is_named: bool,
    /// A dropped name counts until the row without the name is on record.
    pub names_on_record_count: bool,
    /// A silent node is forgotten only after a series of entries on the roll.
    pub forgetter_has_told: bool,
}

impl LeaseRules {
    /// Every rule.
    pub const ALL: Self = Self {
        every_node_vouches: true,
        words_grow_old: true,
        raise_is_announced: true,
        announcement_lasts: true,
        ledger_alone_restores: true,
        rebuild_waits: true,
        raiser_is_named: true,
        names_on_record_count: true,
        forgetter_has_told: true,
    };
}

/// The extent of a walk with three nodes and their links.
#[derive(Clone, Copy, Debug)]
pub struct Partition {
    /// The last epoch of the walk. The first epoch is 1.
    pub epochs: u8,
    /// The number of times that a link to the ledger or to Redis is cut or mended, or a reply is lost.
    pub changes: u8,
    /// The nodes of the walk.
    pub cluster: Cluster,
    /// The rules in force.
    pub rules: LeaseRules,
}

/// The nodes of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cluster {
    /// Three nodes that name each other throughout.
    Constant,
    /// Two nodes. Replies get lost, and nodes go silent, are dropped and are forgotten.
    Changing,
    /// The same, but the second node starts during the walk.
    WithNewcomer {
        /// The newcomer reaches Redis at first.
        reaches_redis: bool,
    },
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
    /// Ticks since this node tells on the roll, without a pause, that the ledger may be reachable.
    told_for: u8,
    raised: Option<Raised>,
    /// The node takes no part in the walk.
    is_unused: bool,
    /// The nodes named by the latest reading, and by the latest row with a reply. The number of a node is its
    /// place in [`Nodes::nodes`], a bit each.
    latest: u8,
    on_record: u8,
    /// The node's row in the ledger.
    row: Option<Row>,
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

impl Nodes {
    /// Returns whether every node has renewed its lease without a link to the ledger, so by the word of the remaining
    /// nodes.
    fn go_on(&self) -> bool {
        let goes_on = |node: &Node| {
            let has_told = !node.word.may_reach_ledger && node.word.age == 0;
            node.is_without_ledger && node.vouched_ago == 0 && !node.has_ledger && has_told
        };
        let mut started = self.nodes.iter().filter(|node| node.row.is_some()).peekable();
        started.peek().is_some() && started.all(goes_on)
    }
}

/// A step of a node, or a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseStep {
    /// The link to the ledger is cut, or mended.
    Ledger(usize),
    /// The link to Redis is cut, or mended.
    Redis(usize),
    /// The node reads the ledger, with success or failure. After a success the node names every node with a row.
    Read(usize),
    /// The same, but the node names no silent node.
    ReadDropping(usize),
    /// The node reads the ledger, and the reply is lost.
    ReadLost(usize),
    /// The node forgets the nodes that certainly have no lease.
    Forget(usize),
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
/// Nodes continue although a node that has lost the ledger cannot finish its rebuild.
pub const GOES_ON_UNFILLED: &str = "nodes that have all lost the ledger go on before a rebuild is over";

impl Model for Partition {
    type State = Nodes;
    type Action = LeaseStep;

    fn init_states(&self) -> Vec<Nodes> {
        let old = match self.cluster {
            Cluster::Constant => NODES,
            Cluster::Changing => 2,
            Cluster::WithNewcomer { .. } => 1,
        };
        let named = (1 << old) - 1;
        let node = Node {
            has_ledger: true,
            has_redis: true,
            is_without_ledger: false,
            epoch: 1,
            vouched_ago: 0,
            has_lapsed: false,
            word: Word { may_reach_ledger: true, age: 0 },
            told_for: LEASE,
            raised: None,
            is_unused: false,
            latest: named,
            on_record: named,
            row: Some(Row { named, age: 0 }),
        };
        let newcomer = Node {
            has_redis: self.cluster == Cluster::WithNewcomer { reaches_redis: true },
            has_lapsed: true,
            word: Word { may_reach_ledger: true, age: LEASE },
            told_for: 0,
            latest: 0,
            on_record: 0,
            row: None,
            ..node
        };
        let unused = Node { is_unused: true, has_ledger: false, has_redis: false, ..newcomer };
        let nodes = std::array::from_fn(|number| match number {
            _ if number < old => node,
            1 => newcomer,
            _ => unused,
        });
        vec![Nodes { epoch: 1, filled: 1, nodes, changes_left: self.changes }.canonical()]
    }

    fn actions(&self, nodes: &Nodes, steps: &mut Vec<LeaseStep>) {
        use LeaseStep::{
            Answer, BreakOff, Fill, Forget, Lapse, Ledger, Raise, Read, ReadDropping, ReadLost, Redis, Vouch,
        };
        steps.push(LeaseStep::Tick);
        for node in (0..NODES).filter(|node| !nodes.nodes[*node].is_unused) {
            let always = [Ledger, Redis, Read, Answer, Vouch, Lapse, Raise, Fill, BreakOff];
            steps.extend(always.map(|step| step(node)));
            if self.cluster != Cluster::Constant {
                steps.extend([ReadDropping, ReadLost, Forget].map(|step| step(node)));
            }
        }
    }

    fn next_state(&self, nodes: &Nodes, step: LeaseStep) -> Option<Nodes> {
        let mut next = nodes.clone();
        self.carry_out(step, &mut next)?;
        let next = next.canonical();
        (next != *nodes).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(NO_OLD_ANSWER, |_, nodes: &Nodes| {
                !nodes.nodes.iter().any(|node| node.may_answer() && node.epoch < nodes.filled)
            }),
            Property::sometimes(GOES_ON, |_, nodes: &Nodes| nodes.go_on()),
            Property::sometimes(GOES_ON_UNFILLED, |_, nodes: &Nodes| {
                let has_waited = |node: &Node| {
                    node.row.is_some() && node.raised.is_some_and(|raised| raised.waited >= LEASE)
                };
                nodes.go_on() && nodes.nodes.iter().any(has_waited)
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
            LeaseStep::Read(node) => self.read(nodes, node, false),
            LeaseStep::ReadDropping(node) => self.read(nodes, node, true),
            LeaseStep::ReadLost(node) => {
                nodes.nodes[node].has_ledger.then_some(())?;
                nodes.changes_left = nodes.changes_left.checked_sub(1)?;
                nodes.write_row(node);
                nodes.nodes[node].is_without_ledger = true;
            }
            LeaseStep::Forget(node) => self.forget(nodes, node)?,
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
            LeaseStep::Tick => self.tick(nodes),
        }
        Some(())
    }

    fn read(&self, nodes: &mut Nodes, number: usize, drops_silent: bool) {
        let node = &mut nodes.nodes[number];
        node.is_without_ledger = !node.has_ledger;
        if !node.has_ledger {
            if !self.rules.every_node_vouches {
                node.vouched_ago = 0;
            }
            return;
        }
        let was_known = nodes.write_row(number);
        let (epoch, seen) = (nodes.epoch, nodes.seen(drops_silent));
        let node = &mut nodes.nodes[number];
        (node.on_record, node.latest) = (node.latest, seen);
        if was_known {
            (node.epoch, node.vouched_ago, node.has_lapsed) = (epoch, 0, false);
        }
    }

    fn forget(&self, nodes: &mut Nodes, number: usize) -> Option<()> {
        let node = nodes.nodes[number];
        let has_told = node.told_for >= LEASE || !self.rules.forgetter_has_told;
        (node.has_ledger && has_told).then_some(())?;
        for other in (0..NODES).filter(|other| *other != number) {
            let row = &mut nodes.nodes[other].row;
            *row = row.filter(|row| row.age < LEASE);
        }
        Some(())
    }

    fn answer(&self, node: &mut Node) -> Option<()> {
        node.has_redis.then_some(())?;
        let announced_for = match (self.rules.raise_is_announced, self.rules.announcement_lasts) {
            (true, true) => LEASE,
            (true, false) => 1,
            (false, _) => 0,
        };
        let is_raising = node.raised.is_some_and(|raised| raised.waited < announced_for);
        let may_reach_ledger = !node.is_without_ledger || is_raising;
        let goes_on = may_reach_ledger && node.word.may_reach_ledger && node.word.age < LEASE;
        if !goes_on && self.cluster != Cluster::Constant {
            node.told_for = 0;
        }
        node.word = Word { may_reach_ledger, age: 0 };
        Some(())
    }

    fn vouch(&self, nodes: &mut Nodes, node: usize) -> Option<()> {
        let words = nodes.nodes.map(|node| node.word);
        let reader = &mut nodes.nodes[node];
        (reader.has_redis && reader.is_without_ledger).then_some(())?;
        let named = reader.latest | if self.rules.names_on_record_count { reader.on_record } else { 0 };
        let is_named = |number: usize| named & (1 << number) != 0;
        // An older entry of an unnamed node counts for a while as well, and does not in the model.
        let is_in_the_way = |(number, word): (usize, &Word)| {
            let is_fresh = word.age < LEASE;
            if is_named(number) {
                word.may_reach_ledger || !is_fresh
            } else {
                word.may_reach_ledger && is_fresh
            }
        };
        let all_have_lost = !words.iter().enumerate().any(is_in_the_way);
        (all_have_lost && (reader.may_answer() || !self.rules.ledger_alone_restores)).then_some(())?;
        let of_named = words.iter().enumerate().filter(|(number, _)| is_named(*number));
        let oldest = of_named.map(|(_, word)| word.age).max().unwrap_or_default();
        let vouched_ago = if self.rules.words_grow_old { oldest } else { 0 };
        reader.vouched_ago = reader.vouched_ago.min(vouched_ago);
        reader.has_lapsed = false;
        Some(())
    }

    fn raise(&self, nodes: &mut Nodes, node: usize) -> Option<()> {
        (nodes.epoch < self.epochs && nodes.nodes[node].has_ledger).then_some(())?;
        (!self.rules.raiser_is_named || nodes.may_raise(node)).then_some(())?;
        nodes.epoch += 1;
        nodes.nodes[node].raised = Some(Raised { epoch: nodes.epoch, waited: 0 });
        if self.rules.raise_is_announced {
            // Without Redis the announcement fails. The node's last word grows old instead.
            let _ = self.answer(&mut nodes.nodes[node]);
        }
        Some(())
    }

    fn tick(&self, nodes: &mut Nodes) {
        for node in &mut nodes.nodes {
            node.vouched_ago = older(node.vouched_ago);
            node.word.age = older(node.word.age);
            node.raised = node.raised.map(|raised| Raised { waited: older(raised.waited), ..raised });
            if self.cluster != Cluster::Constant {
                let is_told = node.word.may_reach_ledger && node.word.age < LEASE;
                node.told_for = if is_told { older(node.told_for) } else { 0 };
                node.row = node.row.map(|row| Row { age: older(row.age), ..row });
            }
        }
    }
}

/// Returns an age one tick later. Ages beyond a lease are all alike.
fn older(age: u8) -> u8 {
    LEASE.min(age + 1)
}
