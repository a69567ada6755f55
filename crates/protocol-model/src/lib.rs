//! The failover protocol of `docs/failover.md` as a model: one bucket with one pool, three nodes, a Redis with a
//! replica that lags, the PostgreSQL registry, the ledger. A checker walks through every order in which their
//! steps can happen, with nodes that freeze at any point, copies of Redis that are lost, rolled back, promoted or live on
//! beside each other, and changes of mode.
//!
//! Time is not counted. What of it matters is told by two facts: a node's lease holds or is over, and a copy that
//! lets a session expire does so after one TTL, so that whatever the session's client was told before this copy
//! last renewed it is over as well. What it was told later, by another copy, may not be.
//!
//! Each of the protocol's [`Safeguards`] can be taken away, and the checker then finds what it is there for.

mod bucket_lease;
mod epoch_lease;
mod failover;
mod ledger;
mod memory;
mod node;
mod rebuild;
mod safeguards;
mod step;
mod world;

pub use bucket_lease::{BucketRules, BucketService, BucketStep, Cut, Fault, Scene, service_promise};
pub use epoch_lease::{GOES_ON, LeaseRules, LeaseStep, NO_OLD_ANSWER, Nodes, Partition};
pub use failover::{Failover, promise};
pub use safeguards::Safeguards;
pub use step::{Call, Step};
pub use world::{Place, World};

/// How many nodes there are.
pub const NODES: usize = 3;

/// A client, and the session that it may have: each asks for one.
pub type Client = u8;

/// A set of clients, a bit each.
type Clients = u8;

/// The only one of `client`.
fn only(client: Client) -> Clients {
    1 << client
}
