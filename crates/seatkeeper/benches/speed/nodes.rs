//! A node over Redis and PostgreSQL: against the same scripts sent to Redis one at a time, and against one plain
//! transaction for each acquire and each release. All of them share the machine.

use std::time::Duration;

use seatkeeper_load::{Bounds, Plan, Report, Scenario, Target};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Redis, Replay};

use crate::args::Effort;
use crate::error::Error;
use crate::plain::Plain;
use crate::product::Product;
use crate::verdict::{Bound, Line, median};

/// Connections of the load, and those that scripts are replayed over.
const CONCURRENCY: usize = 64;
const REPLAY_CONNECTIONS: usize = 50;

/// Calls that are taken down to be replayed.
const REPLAYED_CALLS: usize = 2_000;

/// How long that may take.
const CAPTURE_MAX: Duration = Duration::from_secs(60);

const SESSIONS_PER_CONNECTION: usize = 20;
/// Licenses of whose sessions the replayed heartbeats are.
const HELD_LICENSES: usize = 10;

const SUBSCRIBERS: usize = 4 * CONCURRENCY;

/// What is measured, each against what of the parts.
struct Sides {
    heartbeats: Plan,
    admissions: Plan,
    cycle: Plan,
    heartbeat_scripts: Replay,
    admission_scripts: Replay,
    plain: Plain,
}

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    let redis = Redis::start();
    let postgres = Postgres::start_with(&[]);
    let ledger = postgres.url(&postgres.add_database());
    let product = Product::start_over(&redis.url(), &ledger)?;
    let sides = Sides::of(effort, &product, &redis, &postgres).await?;

    let mut ratios: [Vec<f64>; 3] = Default::default();
    let mut rates: [[Vec<f64>; 2]; 3] = Default::default();
    // One more than is wanted: the first warms everything up.
    for round in 0..=effort.rounds {
        eprintln!("nodes: round {round} of {}", effort.rounds);
        let measured = sides.play(effort, &product).await?;
        if round == 0 {
            continue;
        }
        for (line, [ours, theirs]) in measured.into_iter().enumerate() {
            ratios[line].push(ours / theirs);
            rates[line][0].push(ours);
            rates[line][1].push(theirs);
        }
    }
    let lines = [
        ("heartbeats through one node / the same scripts, -c 50 -P 1", 0.8),
        ("admissions with eviction through one node / the same scripts", 0.6),
        ("acquire + release, on record / plain transactions", 2.5),
    ];
    let line = |(number, (what, target)): (usize, (&str, f64))| {
        let [ours, theirs] = &rates[number];
        let behind = format!("{:.0} against {:.0} a second", median(ours), median(theirs));
        Line::new(what, Bound::AtLeast(target), &ratios[number], behind)
    };
    Ok(lines.into_iter().enumerate().map(line).collect())
}

impl Sides {
    async fn of(
        effort: Effort,
        product: &Product,
        redis: &Redis,
        postgres: &Postgres,
    ) -> Result<Self, Error> {
        let target = product.target()?;
        let mut license_keys = Vec::new();
        for _ in 0..CONCURRENCY {
            license_keys.push(product.license(2 * SESSIONS_PER_CONNECTION as u32).await?);
        }
        let plan = |target: &Target, scenario| Plan {
            target: target.clone(),
            license_keys: license_keys.clone(),
            concurrency: CONCURRENCY,
            bounds: Bounds { duration: effort.measured, turns: None },
            scenario,
        };
        let sessions_per_connection = SESSIONS_PER_CONNECTION;
        let heartbeats = plan(&target, Scenario::Heartbeats { sessions_per_connection });
        let subscribers = product.subscribers(SUBSCRIBERS).await?;
        let admissions = plan(&target, Scenario::Evictions { subscribers });
        let cycle = plan(&target, Scenario::Cycle { heartbeats: 0 });
        let mut held = Vec::new();
        for license in &license_keys[..HELD_LICENSES] {
            held.extend(product.fill(license, SESSIONS_PER_CONNECTION as u32, CONCURRENCY).await?);
        }
        let heartbeat_scripts = taken_down(redis, async {
            for session in held.iter().cycle().take(REPLAYED_CALLS) {
                product.heartbeat(*session).await?;
            }
            Ok(())
        });
        let heartbeat_scripts = heartbeat_scripts.await?;
        let turns = Some(2 * REPLAYED_CALLS as u64);
        let some = Plan { bounds: Bounds { duration: CAPTURE_MAX, turns }, ..admissions.clone() };
        let admission_scripts =
            taken_down(redis, async { Ok(seatkeeper_load::run(some, |_| ()).await.map(drop)?) }).await?;
        product.caught_up().await?;
        let plain = Plain::on(&postgres.url(&postgres.add_database()), CONCURRENCY).await?;
        Ok(Self { heartbeats, admissions, cycle, heartbeat_scripts, admission_scripts, plain })
    }

    /// What each of ours and of theirs does a second.
    async fn play(&self, effort: Effort, product: &Product) -> Result<[[f64; 2]; 3], Error> {
        let replayed = async |replay: &Replay| {
            let rate = replay.rate(REPLAY_CONNECTIONS, effort.measured).await;
            rate.map_err(Error::system("replay what Redis was sent"))
        };
        let heartbeats = [rate(&self.heartbeats, product).await?, replayed(&self.heartbeat_scripts).await?];
        let admissions = [rate(&self.admissions, product).await?, replayed(&self.admission_scripts).await?];
        product.caught_up().await?;
        let cycle = [rate(&self.cycle, product).await?, self.plain.rate(effort.measured).await?];
        Ok([heartbeats, admissions, cycle])
    }
}

/// What the product sends Redis for this load, to be sent again without it.
async fn taken_down(redis: &Redis, load: impl Future<Output = Result<(), Error>>) -> Result<Replay, Error> {
    let mut loaded = Ok(());
    let replay = Replay::of(redis.port(), REPLAYED_CALLS, async { loaded = load.await }).await;
    loaded?;
    replay.map_err(Error::system("listen to Redis"))
}

/// What the product does a second, all of it on record before the next is measured.
async fn rate(plan: &Plan, product: &Product) -> Result<f64, Error> {
    let report: Report = seatkeeper_load::run(plan.clone(), |_| ()).await?;
    product.caught_up().await?;
    if report.errors_total() > 0 || report.violations.count > 0 {
        let why = format!("{:?} {:?}", report.errors, report.violations);
        return Err(Error::Worthless { why });
    }
    Ok(report.requests_per_second)
}
