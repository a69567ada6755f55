//! The number of requests for many heartbeats between a region and a home.

use std::time::{Duration, Instant};

use seatkeeper_load::{Bounds, Plan, Scenario};

use crate::effort::Effort;
use crate::error::Error;
use crate::faultless;
use crate::product::Product;
use crate::verdict::{Bound, Line, median};

/// Connections. A connection has a heartbeat in flight, for up to 50 ms until the next batch.
const CONNECTIONS: usize = 1_200;

/// Seats of a connection, renewed in turn.
const SEATS_PER_CONNECTION: usize = 10;

/// All seats.
pub(super) const SEATS: u32 = (CONNECTIONS * SEATS_PER_CONNECTION) as u32;

/// Longest time until the home has accepted a heartbeat of every seat. Until then, a heartbeat goes alone.
const WARM_UP_MAX: Duration = Duration::from_secs(15);

/// The most requests a second to the home, at any rate of heartbeats up to 33,000 a second: 1,000,000 sessions renewed every
/// 30 s. A higher rate fills the batches further, up to 2,000 heartbeats.
const REQUESTS: Bound = Bound::AtMost(60.0);

/// Counts of a region with batched heartbeats: totals, or per second.
struct Counts {
    /// Heartbeats answered in a batch.
    heartbeats: f64,
    /// Requests with a batch.
    batches: f64,
    /// Requests with a single heartbeat or with another operation.
    alone: f64,
}

/// Renews seats through `region` as fast as the machine can, in as many windows as there are rounds. Counts the
/// heartbeats and the requests to the home in each window.
pub(super) async fn run(effort: Effort, region: &Product, license: &str) -> Result<Line, Error> {
    let windows = effort.measured * effort.rounds as u32;
    let plan = Plan {
        target: region.target()?,
        license_keys: vec![license.to_owned()],
        concurrency: CONNECTIONS,
        bounds: Bounds { duration: WARM_UP_MAX + windows + effort.measured, turns: None },
        scenario: Scenario::Heartbeats { sessions_per_connection: SEATS_PER_CONNECTION },
    };
    let load = async { faultless::checked(seatkeeper_load::run(plan, |_| {}).await?) };
    let counts = async {
        warm_up(region).await?;
        count(effort, region).await
    };
    let (_, rates) = tokio::try_join!(load, counts)?;
    Ok(line(&rates))
}

/// Waits until the home has accepted a heartbeat of every seat, so that no heartbeat goes alone any more.
async fn warm_up(region: &Product) -> Result<(), Error> {
    let (began, mut before) = (Instant::now(), Counts::read(region).await?);
    while began.elapsed() < WARM_UP_MAX {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let now = Counts::read(region).await?;
        if now.heartbeats > before.heartbeats && now.alone == before.alone {
            return Ok(());
        }
        before = now;
    }
    Err(Error::Worthless { why: format!("heartbeats still go alone after {WARM_UP_MAX:?}") })
}

/// Returns the heartbeats and the requests per second of each window.
async fn count(effort: Effort, region: &Product) -> Result<Vec<Counts>, Error> {
    let mut rates = Vec::new();
    for _ in 0..effort.rounds {
        let (began, before) = (Instant::now(), Counts::read(region).await?);
        tokio::time::sleep(effort.measured).await;
        let (seconds, after) = (began.elapsed().as_secs_f64(), Counts::read(region).await?);
        rates.push(Counts {
            heartbeats: (after.heartbeats - before.heartbeats) / seconds,
            batches: (after.batches - before.batches) / seconds,
            alone: (after.alone - before.alone) / seconds,
        });
    }
    Ok(rates)
}

impl Counts {
    async fn read(region: &Product) -> Result<Self, Error> {
        Ok(Self {
            heartbeats: region.metric("region_heartbeat_lag_seconds_count").await?,
            batches: region.metric("region_heartbeat_batches_total").await?,
            alone: region.metric("region_forwarded_total").await?,
        })
    }

    fn requests(&self) -> f64 {
        self.batches + self.alone
    }
}

fn line(rates: &[Counts]) -> Line {
    let requests: Vec<f64> = rates.iter().map(Counts::requests).collect();
    let heartbeats = median(&rates.iter().map(|rate| rate.heartbeats).collect::<Vec<_>>());
    let behind = format!("{heartbeats:.0} heartbeats a second");
    Line::new("requests a second to the home for foreign heartbeats", REQUESTS, &requests, behind)
}
