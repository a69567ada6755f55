//! Storms: rounds of clients that do all that clients may do wrong, on pools with fewer seats than
//! clients.
//!
//! A round takes one pool and twice as many clients as it has seats, all at once, and now and then an
//! operator who changes its limit. What each of them does is drawn from the storm's seed; in which order it
//! reaches the server is not. Pools are used again by later rounds, and what is known of them carries over: a
//! client that crashed in one round still holds its seat in the next, until its TTL is over or a newcomer
//! takes it, and then the seat must be there for others. At the end every pool must give out every seat.
//!
//! Nobody else may use the pools meanwhile, and the server must not be restarted: a denial is false
//! if a seat was free.

mod client;
mod ends;
mod exchange;
mod lane;
mod operator;
mod pool;
mod script;
mod statistics;
mod watch;

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::{Error, Stopwatch, Target, Violations};
use exchange::Exchange;
use lane::{Lane, Rounds};
pub use pool::{Door, Operator, Pool};
pub use statistics::Statistics;

/// One storm.
#[derive(Clone, Debug)]
pub struct Storm {
    /// The nodes of the server, at least one, and who its licenses are asked for by. Each request goes to the next
    /// of them.
    pub nodes: Vec<Target>,
    /// The pools, at least one for each lane; the more, the longer crashed clients have to lose their seats.
    pub pools: Vec<Pool>,
    /// Rounds in all.
    pub rounds: u32,
    /// Rounds at once, at least 1.
    pub lanes: usize,
    /// What all that clients do is drawn from.
    pub seed: u64,
}

/// What a storm did, and what it found.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The storm's seed.
    pub seed: u64,
    /// What happened.
    pub statistics: Statistics,
    /// Promises of the server's that were seen broken.
    pub violations: Violations,
}

impl Storm {
    /// Lets it loose on the current runtime, and tells how many rounds are over after each.
    pub async fn run(self, progress: impl Fn(u32) + Send + Sync + 'static) -> Result<Verdict, Error> {
        let seed = self.seed;
        let rounds = Arc::new(Rounds::new(self.rounds, self.lanes, progress));
        let lanes = self.into_lanes()?.into_iter().zip(0..);
        let mut under_way: JoinSet<_> =
            lanes.map(|(lane, number)| lane.run(number, rounds.clone())).collect();

        let (mut statistics, mut violations) = (Statistics::default(), Violations::default());
        while let Some(lane) = under_way.join_next().await {
            let (more, worse) = lane??;
            statistics.add(&more);
            violations.extend(&worse);
        }
        Ok(Verdict { seed, statistics, violations })
    }

    fn into_lanes(self) -> Result<Vec<Lane>, Error> {
        if self.lanes == 0 {
            return Err(Error::EmptyPlan { missing: "lane" });
        }
        if self.nodes.is_empty() {
            return Err(Error::EmptyPlan { missing: "node" });
        }
        if self.pools.len() < self.lanes {
            return Err(Error::EmptyPlan { missing: "pool for each lane" });
        }
        let exchange = Arc::new(Exchange::new(self.nodes));
        let stopwatch = Stopwatch::start();
        let lane = || Lane::new(exchange.clone(), stopwatch, self.seed);
        let mut lanes: Vec<Lane> = std::iter::repeat_with(lane).take(self.lanes).collect();
        for (number, pool) in self.pools.into_iter().enumerate() {
            lanes[number % self.lanes].add(pool, number)?;
        }
        Ok(lanes)
    }
}
