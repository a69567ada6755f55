//! Two builds of the server against each other, in rounds: embedded, and as nodes over Redis and PostgreSQL.

use std::path::Path;
use std::time::Duration;

use seatkeeper_load::{Bounds, Plan, Report, Scenario};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::Redis;

use crate::effort::Effort;
use crate::error::Error;
use crate::product::Product;
use crate::renewal::renewal;
use crate::turns::{self, TURNS};
use crate::verdict::{Bound, Line, median};

/// Connections of the load, unless a load says otherwise.
const CONCURRENCY: usize = 64;

/// Connections of the loads with many clients.
const CONCURRENCY_HIGH: usize = 256;

/// Licenses of the loads in which each connection has its own license.
const LICENSES: usize = CONCURRENCY_HIGH;

/// Seats of the license that every connection shares.
const SEATS_SHARED: u32 = 1_000;

/// Seats of the license that is always full.
const SEATS_FULL: u32 = 10;

const SESSIONS_PER_CONNECTION: usize = 20;

const SUBSCRIBERS: usize = 4 * CONCURRENCY;

/// The lowest ratio at which a build counts as no slower than the other build.
const AS_FAST: Bound = Bound::AtLeast(0.97);

/// Settings of each side's PostgreSQL. A checkpoint or a vacuum would slow down the side that has its turn, so neither
/// falls into a run.
const POSTGRES: [&str; 4] =
    ["fsync = off", "max_wal_size = 16GB", "checkpoint_timeout = 1h", "autovacuum = off"];

/// Number of loads of each side.
const LOADS: usize = 9;

/// A server of one build and its loads.
struct Side {
    product: Product,
    loads: Vec<Load>,
    // Dropped after the server.
    _stores: Option<(Redis, Postgres)>,
}

struct Load {
    what: &'static str,
    /// The work of one turn.
    plan: Plan,
    /// Turns of a side in a round.
    turns: u32,
    /// True if events wait for the ledger after the last answer.
    leaves_events: bool,
    /// True if the rate counts up to the commit of the last event.
    on_record: bool,
}

/// Two builds in one topology.
struct Pair {
    topology: &'static str,
    sides: [Side; 2],
}

/// Compares two programs. Each rate of the first is divided by the second's.
pub(crate) async fn run(
    effort: Effort,
    [ours, theirs]: [&Path; 2],
    nodes_alone: bool,
) -> Result<Vec<Line>, Error> {
    let embedded = async |program| Side::start(effort, Product::start_as(program)?, None).await;
    let over_redis = async |program| {
        let (redis, postgres) = (Redis::start(), Postgres::start_with(&POSTGRES));
        let ledger = postgres.url(&postgres.add_database());
        let product = Product::start_over_as(program, &redis.url(), &ledger)?;
        Side::start(effort, product, Some((redis, postgres))).await
    };
    let nodes = [over_redis(ours).await?, over_redis(theirs).await?];
    let mut pairs = vec![Pair { topology: "Redis and PostgreSQL", sides: nodes }];
    if !nodes_alone {
        pairs.push(Pair { topology: "embedded", sides: [embedded(ours).await?, embedded(theirs).await?] });
    }
    let mut rates = vec![[Vec::new(), Vec::new()]; pairs.len() * LOADS];
    // The first round warms up and is not counted.
    for round in 0..=effort.rounds {
        eprintln!("versus: round {round} of {}", effort.rounds);
        let measured = play(&pairs, round % 2 == 1).await?;
        for (rates, measured) in rates.iter_mut().zip(measured).filter(|_| round > 0) {
            for (rates, rate) in rates.iter_mut().zip(measured) {
                rates.push(rate);
            }
        }
    }
    let names =
        pairs.iter().flat_map(|pair| pair.sides[0].loads.iter().map(|load| (pair.topology, load.what)));
    Ok(names.zip(&rates).map(|((topology, what), rates)| line(topology, what, rates)).collect())
}

/// Returns the mean rates of both sides for each load of each pair. The sides take turns within a load, and swap
/// places from round to round.
async fn play(pairs: &[Pair], backwards: bool) -> Result<Vec<[f64; 2]>, Error> {
    let mut measured = Vec::new();
    for Pair { sides, .. } in pairs {
        for load in 0..LOADS {
            let mut rates = [0.0; 2];
            for number in turns::sides(sides[0].loads[load].turns, backwards) {
                let Side { product, loads, .. } = &sides[number];
                rates[number] += loads[load].play(product).await? / f64::from(loads[load].turns);
            }
            measured.push(rates);
        }
    }
    Ok(measured)
}

fn line(topology: &str, what: &str, [ours, theirs]: &[Vec<f64>; 2]) -> Line {
    let ratios: Vec<f64> = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
    let behind = format!("{:.0} against {:.0} a second", median(ours), median(theirs));
    Line::new(format!("{topology}: {what}, ours / the other"), AS_FAST, &ratios, behind)
}

impl Side {
    async fn start(
        effort: Effort,
        product: Product,
        stores: Option<(Redis, Postgres)>,
    ) -> Result<Self, Error> {
        let mut license_keys = Vec::new();
        for _ in 0..LICENSES {
            license_keys.push(product.license(2 * SESSIONS_PER_CONNECTION as u32).await?);
        }
        let shared = vec![product.license(SEATS_SHARED).await?];
        let full = vec![product.license(SEATS_FULL).await?];
        let subscribers = product.subscribers(SUBSCRIBERS).await?;
        let (viewer, screen) = product.screen().await?;
        let target = product.target()?;
        let plan = |license_keys: &[String], scenario| Plan {
            target: target.clone(),
            license_keys: license_keys.to_vec(),
            concurrency: CONCURRENCY,
            bounds: Bounds { duration: effort.measured / TURNS, turns: None },
            scenario,
        };
        let of_many = |license_keys: &[String]| Plan {
            concurrency: CONCURRENCY_HIGH,
            ..plan(license_keys, Scenario::Cycle { heartbeats: 0 })
        };
        let few = &license_keys[..CONCURRENCY];
        let heartbeats = Scenario::Heartbeats { sessions_per_connection: SESSIONS_PER_CONNECTION };
        let cycle = || Scenario::Cycle { heartbeats: 0 };
        let evictions = |duration| Plan {
            bounds: Bounds { duration, turns: None },
            ..plan(few, Scenario::Evictions { subscribers: subscribers.clone() })
        };
        let in_turns = |what, plan| Load { what, plan, turns: TURNS, leaves_events: false, on_record: false };
        // The journal absorbs a burst of the whole length.
        let at_once = |what, plan, on_record| Load { what, plan, turns: 1, leaves_events: true, on_record };
        let loads: [Load; LOADS] = [
            in_turns("heartbeats", plan(few, heartbeats)),
            in_turns("heartbeats of a screen", Plan { target: viewer, ..plan(&[], renewal(screen)) }),
            in_turns("denied acquires", plan(&full, Scenario::Denied)),
            in_turns("acquire + release of one license", plan(&shared, cycle())),
            in_turns("acquire + release, a license each", plan(few, cycle())),
            in_turns("acquire + release of one license, 256 connections", of_many(&shared)),
            in_turns("acquire + release, a license each, 256 connections", of_many(&license_keys)),
            at_once("admissions with eviction, a burst", evictions(effort.measured), false),
            at_once("admissions with eviction, put on record", evictions(effort.sustained / 3), true),
        ];
        Ok(Self { product, loads: loads.into(), _stores: stores })
    }
}

impl Load {
    /// Returns the requests per second of a turn.
    async fn play(&self, product: &Product) -> Result<f64, Error> {
        let report: Report = seatkeeper_load::run(self.plan.clone(), |_| ()).await?;
        // Only evictions leave the ledger behind. The answers of the other loads wait for their records.
        let behind = if self.leaves_events { product.caught_up().await? } else { Duration::ZERO };
        if report.errors_total() > 0 || report.violations.count > 0 {
            let why = format!("{}: {:?} {:?}", self.what, report.errors, report.violations);
            return Err(Error::Worthless { why });
        }
        let late = if self.on_record { behind.as_secs_f64() } else { 0.0 };
        Ok(report.requests as f64 / (report.elapsed_seconds + late))
    }
}
