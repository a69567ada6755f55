//! The number of requests for many heartbeats between a region and a home.

use std::time::{Duration, Instant};

use seatkeeper_load::{Bounds, Plan, Scenario};
use tokio::sync::oneshot;

use crate::effort::Effort;
use crate::error::Error;
use crate::faultless;
use crate::product::Product;
use crate::verdict::{Bound, Line, median};

/// Connections. A connection has a heartbeat in flight, for up to 25 ms until the next batch.
const CONNECTIONS: usize = 1_200;

/// Seats of a connection, renewed in turn.
const SEATS_PER_CONNECTION: usize = 10;

/// All seats.
pub(super) const SEATS: u32 = (CONNECTIONS * SEATS_PER_CONNECTION) as u32;

/// Time in which every seat is renewed at least once: the first heartbeat of a session goes alone.
const WARM_UP: Duration = Duration::from_secs(4);

/// The fewest heartbeats in a request: 33,000 heartbeats a second (1,000,000 sessions renewed every 30 s) in 60 requests. The
/// machine need not reach that rate: a higher rate only fills the requests further.
const PER_REQUEST: Bound = Bound::AtLeast(550.0);

/// Counts of a region with batched heartbeats: totals, or per second.
struct Counts {
    heartbeats: f64,
    requests: f64,
}

/// Renews seats through `region` as fast as the machine can, in as many windows as there are rounds. Counts the
/// heartbeats and the requests to the home in each window.
pub(super) async fn run(effort: Effort, region: &Product, license: &str) -> Result<Line, Error> {
    let windows = effort.measured * effort.rounds as u32;
    let plan = Plan {
        target: region.target()?,
        license_keys: vec![license.to_owned()],
        concurrency: CONNECTIONS,
        bounds: Bounds { duration: WARM_UP + windows + effort.measured, turns: None },
        scenario: Scenario::Heartbeats { sessions_per_connection: SEATS_PER_CONNECTION },
    };
    let (warm, is_warm) = oneshot::channel();
    let mut warm = Some(warm);
    let load = async {
        let report = seatkeeper_load::run(plan, |progress| {
            if let Some(warm) = warm.take_if(|_| progress.elapsed >= WARM_UP) {
                // The receiver is gone only after an error.
                let _ = warm.send(());
            }
        });
        faultless::checked(report.await?)
    };
    let counts = async {
        // Without a sender the load has failed, with an error of its own.
        let _ = is_warm.await;
        count(effort, region).await
    };
    let (_, rates) = tokio::try_join!(load, counts)?;
    Ok(line(&rates))
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
            requests: (after.requests - before.requests) / seconds,
        });
    }
    Ok(rates)
}

impl Counts {
    async fn read(region: &Product) -> Result<Self, Error> {
        let batches = region.metric("region_heartbeat_batches_total").await?;
        let forwarded = region.metric("region_forwarded_total").await?;
        let heartbeats = region.metric("region_heartbeat_lag_seconds_count").await?;
        Ok(Self { heartbeats, requests: batches + forwarded })
    }
}

fn line(rates: &[Counts]) -> Line {
    let middle = |figure: fn(&Counts) -> f64| median(&rates.iter().map(figure).collect::<Vec<_>>());
    let (heartbeats, requests) = (middle(|rate| rate.heartbeats), middle(|rate| rate.requests));
    let per_request: Vec<f64> = rates.iter().map(|rate| rate.heartbeats / rate.requests).collect();
    let behind = format!("{heartbeats:.0} heartbeats and {requests:.0} requests a second");
    Line::new("heartbeats that a request to the home carries", PER_REQUEST, &per_request, behind)
}
