//! Storms: rounds of misbehaving clients, on pools with fewer seats than clients.
//!
//! A round takes a pool, twice as many clients as seats, all at once, and sometimes an operator who changes
//! the limit. Each client's steps are drawn from the storm's seed; the order of their requests at the server
//! is not. Later rounds use the same pools again, with everything known of their sessions. A client that
//! crashed in a round still holds its seat in the next, until its TTL is over or a newcomer evicts it.
//! Afterwards the seat must be free again. At the end every pool must give out every seat.
//!
//! During a storm the pools must have no other users, and the server must not be restarted: a denial counts
//! as false if a seat was free.

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

use seatkeeper_load::{Error, Stopwatch, Target, Violations};
use tokio::task::JoinSet;

use exchange::Exchange;
use lane::{Rounds, StormLane};
pub use pool::{Door, Operator, Pool};
pub use statistics::Statistics;

/// The description of a storm.
#[derive(Clone, Debug)]
pub struct Storm {
    /// The nodes of the server, at least one, with the token for licenses. Requests go to the nodes in turn.
    pub nodes: Vec<Target>,
    /// The pools, at least one for each lane. With more pools, crashed clients have more time to lose their
    /// seats.
    pub pools: Vec<Pool>,
    /// The total number of rounds.
    pub rounds: u32,
    /// The number of concurrent rounds, at least 1.
    pub lanes: usize,
    /// The seed of every client's steps.
    pub seed: u64,
}

/// The result of a storm.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The storm's seed.
    pub seed: u64,
    /// The counts of each kind of event.
    pub statistics: Statistics,
    /// Broken promises of the server.
    pub violations: Violations,
}

impl Storm {
    /// Runs the storm on the current runtime. Calls `progress` with the number of finished rounds after each
    /// round.
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

    fn into_lanes(self) -> Result<Vec<StormLane>, Error> {
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
        let lane = || StormLane::new(exchange.clone(), stopwatch, self.seed);
        let mut lanes: Vec<StormLane> = std::iter::repeat_with(lane).take(self.lanes).collect();
        for (number, pool) in self.pools.into_iter().enumerate() {
            lanes[number % self.lanes].add(pool, number)?;
        }
        Ok(lanes)
    }
}
