//! The failover protocol of `docs/failover.md` as four models, and the promises that each must keep. A checker walks
//! through every order in which the steps of a model can happen. Each rule of a model can be taken away, and the
//! checker then finds a path to a broken promise.
//!
//! - [`Failover`]: one bucket with one pool, three nodes, a Redis with a replica that lags, the PostgreSQL registry,
//!   the ledger. Nodes freeze at any point, copies of Redis are lost, rolled back, promoted or live on beside each
//!   other, and the mode changes. Time is not counted: a lease holds or is over, and a copy ends a session one TTL
//!   after the copy last renewed the session. An answer from before is over by then; an answer by another copy may not
//!   be.
//! - [`Partition`]: the epoch lease of three nodes, in time.
//! - [`BucketService`]: the bucket lease, the breaker and the identity of Redis under faults that last, in time.
//! - [`ForgetfulLedger`]: a PostgreSQL standby that lags becomes the primary.

mod bucket_lease;
mod checker;
mod epoch_lease;
mod failover;
mod forgetful_ledger;
mod ledger;
mod memory;
mod node;
mod place;
mod rebuild;
mod rebuilder;
mod safeguards;
mod step;
mod world;

pub use bucket_lease::{BucketRules, BucketService, BucketStep, Cut, Fault, Scene, service_promise};
pub use checker::promise;
pub use epoch_lease::{GOES_ON, LeaseRules, LeaseStep, NO_OLD_ANSWER, Nodes, Partition};
pub use failover::Failover;
pub use forgetful_ledger::{
    AGREES, ForgetfulLedger, LedgerRules, LedgerStep, OUTLIVES, SETTLES, Stores, Word,
};
pub use place::Place;
pub use safeguards::Safeguards;
pub use step::{Call, Step};
pub use world::World;

/// The number of nodes.
pub const NODES: usize = 3;

/// A client, and its session: a client asks for one.
pub type Client = u8;

/// A set of clients, a bit each.
type Clients = u8;

/// The set of `client` alone.
fn only(client: Client) -> Clients {
    1 << client
}
