//! A node over Redis and PostgreSQL against its own parts: the same Lua scripts, sent to Redis without a
//! node; and one PostgreSQL transaction for each acquire and each release, without a server and through a
//! naive server. Transactions are measured with one license for every client, and with a license for each
//! client. Everything shares the machine.

use std::time::Duration;

use seatkeeper_load::{Bounds, Plan, Scenario};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Call, Redis, Replay};

use crate::child::Child;
use crate::effort::Effort;
use crate::error::Error;
use crate::faultless::answered;
use crate::naive;
use crate::product::Product;
use crate::verdict::{Bound, Line, median};

/// Connections of the load. Acquires and releases also run with `CONCURRENCY_HIGH`, because requests share
/// group commits.
const CONCURRENCY: usize = 64;
const CONCURRENCY_HIGH: usize = 256;
/// Seats of the license that every connection shares.
const SEATS_SHARED: u32 = 1_000;
/// Connections for the replay of scripts.
const REPLAY_CONNECTIONS: usize = 50;

/// Calls that are captured for the replay.
const REPLAYED_CALLS: usize = 2_000;

/// Prefix of the keys of rate limits.
const KEY_OF_COUNT: &str = "sk:rate:";

/// Time limit of a capture.
const CAPTURE_MAX: Duration = Duration::from_secs(60);

const SESSIONS_PER_CONNECTION: usize = 20;
/// Licenses whose sessions the captured heartbeats renew.
const HELD_LICENSES: usize = 10;

const SUBSCRIBERS: usize = 4 * CONCURRENCY;

/// The loads of the node, and the parts that each is compared with.
struct Sides {
    heartbeats: Plan,
    admissions: Plan,
    heartbeat_scripts: Scripts,
    admission_scripts: Scripts,
    cycles: [Cycle; 4],
}

/// A load of acquires and releases, and the same work as one transaction each: by the same number of callers,
/// over the same number of connections and licenses.
struct Cycle {
    plan: Plan,
    /// The transactions without a server.
    direct: naive::Postgres,
    naive: Option<Naive>,
}

/// A naive server with one transaction per request.
struct Naive {
    plan: Plan,
    /// Kept alive for `plan`, whose requests go to this process.
    _server: Child,
}

/// The calls to Redis of a node that serves one request at a time, captured for a replay.
struct Scripts {
    /// Every call that a response waits for: the deciding script and the rate limit.
    all: Replay,
    /// The deciding script alone.
    deciding: Replay,
}

/// The name and the lowest ratio of each line.
const LINES: [(&str, f64); 10] = [
    ("heartbeats through one node / the same scripts, -c 50 -P 1", 0.8),
    ("  / the script alone that decides", 0.8),
    ("admissions with eviction through one node / the same scripts", 0.6),
    ("  / the script alone that decides", 0.6),
    ("acquire + release, on record, 64 connections to one license / its transactions", 3.0),
    ("  256 connections to one license / its transactions", 5.0),
    ("  64 connections, a license each / its transactions", 2.5),
    ("  / a naive server's transactions", 2.0),
    ("  256 connections, a license each / its transactions", 2.5),
    ("  / a naive server's transactions", 3.0),
];

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    let redis = Redis::start();
    let postgres = Postgres::start_with(&["max_connections = 1200"]);
    let ledger = postgres.url(&postgres.add_database());
    let product = Product::start_over(&redis.url(), &ledger)?;
    let sides = Sides::start(effort, &product, &redis, &postgres).await?;

    let mut ratios: [Vec<f64>; LINES.len()] = Default::default();
    let mut rates: [[Vec<f64>; 2]; LINES.len()] = Default::default();
    // The extra round at the start warms up and does not count.
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
    let line = |(number, (what, target)): (usize, (&str, f64))| {
        let [ours, theirs] = &rates[number];
        let behind = format!("{:.0} against {:.0} a second", median(ours), median(theirs));
        Line::new(what, Bound::AtLeast(target), &ratios[number], behind)
    };
    Ok(LINES.into_iter().enumerate().map(line).collect())
}

impl Sides {
    async fn start(
        effort: Effort,
        product: &Product,
        redis: &Redis,
        postgres: &Postgres,
    ) -> Result<Self, Error> {
        let target = product.target()?;
        let mut license_keys = Vec::new();
        for _ in 0..CONCURRENCY_HIGH {
            license_keys.push(product.license(2 * SESSIONS_PER_CONNECTION as u32).await?);
        }
        let plan_over = |license_keys: &[String], concurrency: usize, scenario| Plan {
            target: target.clone(),
            license_keys: license_keys.to_vec(),
            concurrency,
            bounds: Bounds { duration: effort.measured, turns: None },
            scenario,
        };
        let plan = |scenario| plan_over(&license_keys[..CONCURRENCY], CONCURRENCY, scenario);
        let heartbeats = plan(Scenario::Heartbeats { sessions_per_connection: SESSIONS_PER_CONNECTION });
        let subscribers = product.subscribers(SUBSCRIBERS).await?;
        let admissions = plan(Scenario::Evictions { subscribers });
        let mut held = Vec::new();
        for license in &license_keys[..HELD_LICENSES] {
            held.extend(product.fill(license, SESSIONS_PER_CONNECTION as u32, CONCURRENCY).await?);
        }
        let beats = async || {
            for session in held.iter().cycle().take(2 * REPLAYED_CALLS) {
                product.heartbeat(*session).await?;
            }
            Ok(())
        };
        let heartbeat_scripts = Scripts::taken_down(redis, beats).await?;
        let turns = Some(2 * REPLAYED_CALLS as u64);
        let one_by_one =
            Plan { concurrency: 1, bounds: Bounds { duration: CAPTURE_MAX, turns }, ..admissions.clone() };
        let admits = async || Ok(seatkeeper_load::run(one_by_one.clone(), |_| ()).await.map(drop)?);
        // The first run opens and fills every pool. The second run is captured.
        admits().await?;
        let admission_scripts = Scripts::taken_down(redis, admits).await?;
        product.caught_up().await?;
        let direct = async |concurrency: usize| {
            naive::Postgres::create(&postgres.url(&postgres.add_database()), concurrency as u32).await
        };
        let shared = [product.license(SEATS_SHARED).await?];
        let cycle_of_one = async |concurrency: usize| {
            let plan = plan_over(&shared, concurrency, Scenario::Cycle { heartbeats: 0 });
            Ok::<_, Error>(Cycle { plan, direct: direct(concurrency).await?, naive: None })
        };
        let cycle_of_many = async |concurrency: usize| {
            let plan =
                plan_over(&license_keys[..concurrency], concurrency, Scenario::Cycle { heartbeats: 0 });
            let naive = Naive::start(&plan, product, &postgres.url(&postgres.add_database()))?;
            Ok::<_, Error>(Cycle { plan, direct: direct(concurrency).await?, naive: Some(naive) })
        };
        let cycles = [
            cycle_of_one(CONCURRENCY).await?,
            cycle_of_one(CONCURRENCY_HIGH).await?,
            cycle_of_many(CONCURRENCY).await?,
            cycle_of_many(CONCURRENCY_HIGH).await?,
        ];
        Ok(Self { heartbeats, admissions, heartbeat_scripts, admission_scripts, cycles })
    }

    /// Measures a round. Returns our rate and the other rate for each of `LINES`.
    async fn play(&self, effort: Effort, product: &Product) -> Result<Vec<[f64; 2]>, Error> {
        let replayed = async |replay: &Replay| {
            let rate = replay.rate(REPLAY_CONNECTIONS, effort.measured).await;
            rate.map_err(Error::system("replay what Redis was sent"))
        };
        let heartbeats = rate(&self.heartbeats, product).await?;
        let heartbeats_sent = replayed(&self.heartbeat_scripts.all).await?;
        let heartbeats_decided = replayed(&self.heartbeat_scripts.deciding).await?;
        let admissions = rate(&self.admissions, product).await?;
        let admissions_sent = replayed(&self.admission_scripts.all).await?;
        product.caught_up().await?;
        let admissions_decided = replayed(&self.admission_scripts.deciding).await?;
        product.caught_up().await?;
        let mut measured = vec![
            [heartbeats, heartbeats_sent],
            [heartbeats, heartbeats_decided],
            [admissions, admissions_sent],
            [admissions, admissions_decided],
        ];
        for cycle in &self.cycles {
            measured.extend(cycle.play(effort, product).await?);
        }
        assert_eq!(measured.len(), LINES.len(), "a figure for each line");
        Ok(measured)
    }
}

impl Cycle {
    /// Measures our rate against the transactions without a server, and against the naive server if there is
    /// one.
    async fn play(&self, effort: Effort, product: &Product) -> Result<Vec<[f64; 2]>, Error> {
        let ours = rate(&self.plan, product).await?;
        let licenses = self.plan.license_keys.len();
        let direct = self.direct.rate(self.plan.concurrency, licenses, effort.measured).await?;
        let mut measured = vec![[ours, direct]];
        if let Some(naive) = &self.naive {
            measured.push([ours, answered(&naive.plan).await?.requests_per_second]);
        }
        Ok(measured)
    }
}

impl Naive {
    /// Starts a naive server on an empty database, with a load like ours.
    fn start(ours: &Plan, product: &Product, database: &str) -> Result<Self, Error> {
        let mut server = Child::in_role(&["naive-postgres", database, &ours.concurrency.to_string()])?;
        let plan = Plan {
            // With our token, a request to the naive server is as long as a request to ours.
            target: product.with_our_token(&server.says("listening on ")?)?,
            license_keys: (0..ours.license_keys.len()).map(naive::license_key).collect(),
            ..ours.clone()
        };
        Ok(Self { plan, _server: server })
    }
}

impl Scripts {
    /// Captures the calls that the product sends to Redis under `load`, for a replay without the product.
    async fn taken_down(redis: &Redis, load: impl AsyncFn() -> Result<(), Error>) -> Result<Self, Error> {
        let replay = async |calls_each, is_wanted| {
            let mut loaded = Ok(());
            let sent = async { loaded = load().await };
            let replay = Replay::run(redis.port(), REPLAYED_CALLS, calls_each, is_wanted, sent).await;
            loaded?;
            replay.map_err(Error::system("listen to Redis"))
        };
        let all = |call: &Call<'_>| call.is_on_pool() || call.keys[0].starts_with(KEY_OF_COUNT);
        Ok(Self { all: replay(2, all).await?, deciding: replay(1, |call| call.is_on_pool()).await? })
    }
}

/// Returns the product's requests per second, and waits until the ledger has committed everything.
async fn rate(plan: &Plan, product: &Product) -> Result<f64, Error> {
    let rate = answered(plan).await?.requests_per_second;
    product.caught_up().await?;
    Ok(rate)
}
