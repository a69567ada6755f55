//! The failover protocol of `docs/failover.md` as four models, and the homes of `docs/regions.md` as three
//! more, with the promises of each model. A checker
//! walks through every order of the steps of a model. A test can switch off a rule, and the checker then
//! finds a path to a broken promise.
//!
//! - [`Failover`]: a bucket with a pool, three nodes, a Redis with a lagging replica, the PostgreSQL
//!   registry, and the ledger. Nodes freeze at any point. Copies of Redis are lost, rolled back, promoted or
//!   live on beside each other, and the mode changes. In a fallback, the PostgreSQL registry serves the pool,
//!   or nodes renew sessions by the ledger alone. Time is not counted: a lease holds or is over, and a copy
//!   ends a session one TTL after the copy's last renewal of the session. Earlier answers have expired by
//!   then; an answer by a different copy may still be valid.
//! - [`Partition`]: the epoch lease of three nodes, in time.
//! - [`BucketService`]: the bucket lease, the breaker and the identity of Redis under lasting faults, in
//!   time.
//! - [`ForgetfulLedger`]: a lagging PostgreSQL standby becomes the primary.
//! - [`Homes`]: three regions, and the assignment of a subscriber's home.
//! - [`HomeMoves`]: three regions, and the moves of a subscriber's home.
//! - [`RegionAdoption`]: three regions, one of which is lost and adopted from a backup.
//!
//! A new rule of the protocol gets a field in the rules of its model, and a test without the rule.

mod bucket_lease;
mod checker;
mod epoch_lease;
mod failover;
mod forgetful_ledger;
mod home_moves;
mod homes;
mod ledger;
mod memory;
mod node;
mod place;
mod rebuild;
mod rebuilder;
mod region_adoption;
mod safeguards;
mod step;
mod world;

pub use bucket_lease::{BucketRules, BucketService, BucketStep, Cut, Fault, Scene, service_promise};
pub use checker::promise;
pub use epoch_lease::{
    Cluster, GOES_ON, GOES_ON_UNFILLED, LeaseRules, LeaseStep, NO_OLD_ANSWER, Nodes, Partition,
};
pub use failover::{Failover, Fallback};
pub use forgetful_ledger::{
    AGREES, ForgetfulLedger, LedgerRules, LedgerStep, OUTLIVES, SETTLES, Stores, Word,
};
pub use home_moves::{ARRIVES, HomeMoves, MoveRules, MoveStep, MovingRegions, ONE_ADMITS, RETURNS};
pub use homes::{ANCHOR_ADMITS, HomeRules, HomeStep, Homes, ONE_HOME, OTHER_ADMITS, Regions};
pub use place::Backend;
pub use region_adoption::{
    AdoptingRegions, AdoptionRules, AdoptionStep, HOME_IS_THERE, MOVED_STAYS, ONE_HOLDS, RegionAdoption,
    SUCCESSOR_ADMITS,
};
pub use safeguards::Safeguards;
pub use step::{Call, Step};
pub use world::World;

/// The number of nodes.
pub const NODES: usize = 3;

/// A client and its session: a client asks for a single session.
pub type Client = u8;

/// A set of clients, as a bit set.
type Clients = u8;

/// The set of `client` alone.
fn only(client: Client) -> Clients {
    1 << client
}
