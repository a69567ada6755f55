//! Models the bucket lease, the breaker and the identity of Redis under lasting faults: which node may serve
//! a bucket, from which registry, and when a session may end. `docs/failover.md` has the rules.
//!
//! The model has a bucket with a single seat, two nodes, Redis and PostgreSQL. A client holds the seat from
//! the start. Time is counted in ticks of an epoch lease (2 s). On a tick every node does its periodic work:
//! it reads the ledger, surveys Redis and renews the bucket's lease. Requests, sweeps and rebuilds happen
//! between ticks in any order, and faults at any point.
//!
//! Nodes that freeze and commits that come late belong to the model of the failover protocol (`failover.rs`).
//! The way nodes vouch for each other belongs to the model of the epoch lease (`epoch_lease.rs`). Here both
//! are atomic.

mod fault;
mod node;
mod rebuild;
mod rebuilder;
mod recovery;
mod redis;
mod rules;
mod standby;
mod state;
mod step;
mod tick;

use stateright::{Model, Property};

pub use fault::{Cut, Fault};
pub use rules::BucketRules;
pub use state::Scene;
pub use step::BucketStep;

use state::Holder;

/// The extent of a walk: a bucket, its faults, and the rules in force.
#[derive(Clone, Copy, Debug)]
pub struct BucketService {
    /// The number of faults. The end of a fault is not counted.
    pub faults_max: u8,
    /// The possible instant faults.
    pub faults: &'static [Fault],
    /// The possible lasting faults.
    pub cuts: &'static [Cut],
    /// The rules in force.
    pub rules: BucketRules,
}

/// Properties of [`BucketService`], by name.
pub mod service_promise {
    /// The seat is free only after its holder has stopped believing in the session.
    pub const ONE_HOLDER: &str = "a seat is free only once its holder knows";
    /// The session of a client with heartbeats on time, at any node, never ends.
    pub const KEPT: &str = "no session ends that is renewed on time";
    /// A fault, including its end, costs at most two epochs.
    pub const FEW_EPOCHS: &str = "at most two epochs a fault";
    /// The bucket is served again after a bounded time, with the faults lasting and with the faults over.
    pub const SERVES: &str = "the bucket is served again";
    /// The seat of a silent client is free after a bounded time once the faults are over.
    pub const FREES: &str = "the seat of a silent client becomes free";
    /// PostgreSQL serves in place of Redis.
    pub const FALLS_BACK: &str = "PostgreSQL takes over";
    /// Redis serves again after PostgreSQL did.
    pub const RETURNS: &str = "Redis takes over again";
    /// A silent client's session ends.
    pub const ENDS: &str = "a session ends";
}

impl Model for BucketService {
    type State = Scene;
    type Action = BucketStep;

    fn init_states(&self) -> Vec<Scene> {
        [Holder::ROAMING, Holder::CAPTIVE].map(|holder| Scene::new(self.faults_max, holder)).into()
    }

    fn actions(&self, scene: &Scene, steps: &mut Vec<BucketStep>) {
        if !scene.has_ended {
            step::all(self.faults, self.cuts, steps);
        }
    }

    fn next_state(&self, scene: &Scene, step: BucketStep) -> Option<Scene> {
        let mut next = *scene;
        next.take(step, &self.rules)?;
        next.sort_nodes();
        (next != *scene).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        use service_promise::{ENDS, FALLS_BACK, FEW_EPOCHS, FREES, KEPT, ONE_HOLDER, RETURNS, SERVES};
        vec![
            Property::always(ONE_HOLDER, |_, scene: &Scene| !scene.has_ended || !scene.holder.believes()),
            Property::always(KEPT, |_, scene: &Scene| !scene.has_ended || !scene.holder.is_on_time()),
            Property::always(FEW_EPOCHS, |model: &Self, scene: &Scene| {
                scene.raises() <= 2 * (model.faults_max - scene.faults_left)
            }),
            Property::always(SERVES, |model: &Self, scene: &Scene| {
                scene.is_served_again(&model.rules) && scene.mended().is_served_again(&model.rules)
            }),
            Property::always(FREES, |model: &Self, scene: &Scene| scene.frees_seat(&model.rules)),
            Property::sometimes(FALLS_BACK, |model: &Self, scene: &Scene| {
                scene.is_served_by_standby(&model.rules)
            }),
            Property::sometimes(RETURNS, |model: &Self, scene: &Scene| scene.has_returned(&model.rules)),
            Property::sometimes(ENDS, |_, scene: &Scene| scene.has_ended),
        ]
    }
}
