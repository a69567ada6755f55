//! A node over Redis and PostgreSQL beside the thin server over a Redis of its own, and beside one commit to
//! PostgreSQL. Rates are measured with many connections, latencies with one client.
//!
//! PostgreSQL runs with `fsync` off for the lines about CPU. An acquire on record and the commit beside the
//! acquire run on one PostgreSQL with the default, `fsync` on.

use std::time::{Duration, Instant};

use seatkeeper_load::{Bounds, Operation, Plan, Scenario, Target};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::Redis;
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _, PgConnection};
use uuid::Uuid;

use crate::child::Child;
use crate::effort::Effort;
use crate::error::Error;
use crate::faultless::answered;
use crate::process::cpu_time;
use crate::product::Product;
use crate::thin;
use crate::verdict::{Bound, Line, median};

/// Connections of the loads that measure rates.
const CONCURRENCY: usize = 64;

const SESSIONS_PER_CONNECTION: usize = 20;

/// Seats of the licenses that are never full.
const SEATS: u32 = 2 * SESSIONS_PER_CONNECTION as u32;

/// Seats of the license that is always full.
const SEATS_FULL: u32 = 10;

/// The lines of the report, in the order of a round's figures.
const LINES: [(&str, Bound); 6] = [
    ("heartbeats through one node / thin", Bound::AtLeast(0.65)),
    ("denied acquires through one node / thin", Bound::AtLeast(0.55)),
    ("CPU of Redis for a heartbeat, µs", Bound::AtMost(20.0)),
    ("one client: p50 of a heartbeat / thin", Bound::AtMost(1.6)),
    ("one client: p50 of a denied acquire / thin", Bound::AtMost(1.6)),
    ("one client: p50 of an acquire on record / one commit", Bound::AtMost(2.0)),
];

/// A server and its Redis.
struct Side {
    heartbeats: Plan,
    denied: Plan,
    server: u32,
    redis: u32,
}

/// A node whose PostgreSQL has `fsync` on, and a connection of our own to the same PostgreSQL.
struct OnRecord {
    acquires: Plan,
    ledger: PgConnection,
    product: Product,
    // Dropped after the node.
    _servers: (Redis, Postgres),
}

/// The rate of a load, and the CPU time of server and Redis for each request, in microseconds.
#[derive(Clone, Copy)]
struct Rate {
    requests_per_second: f64,
    server_micros: f64,
    redis_micros: f64,
}

/// The figure of a line in one round, with ours and the other side's.
struct Figure {
    value: f64,
    ours: String,
    theirs: String,
}

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    let (redis, thin_redis, postgres) = (Redis::start(), Redis::start(), Postgres::start());
    let product = Product::start_over(&redis.url(), &postgres.url(&postgres.add_database()))?;
    let mut thin = Child::in_role(&["thin", &thin_redis.url()])?;
    let address = product.with_our_token(&thin.says("listening on ")?)?;

    let mut ours = Vec::with_capacity(CONCURRENCY);
    for _ in 0..CONCURRENCY {
        ours.push(product.license(SEATS).await?);
    }
    let theirs = (0..CONCURRENCY).map(|number| thin::license_key(SEATS, number)).collect();
    let full = [product.license(SEATS_FULL).await?, thin::license_key(SEATS_FULL, 0)];
    let measured = effort.measured;
    let side = |target: &Target, licenses, full: &String, pids: [u32; 2]| Side {
        heartbeats: plan(target, licenses, measured, heartbeats()),
        denied: plan(target, vec![full.clone()], measured, Scenario::Denied),
        server: pids[0],
        redis: pids[1],
    };
    let sides = [
        side(&product.target()?, ours, &full[0], [product.pid(), redis.pid()]),
        side(&address, theirs, &full[1], [thin.pid(), thin_redis.pid()]),
    ];
    let mut on_record = OnRecord::start(measured).await?;

    let mut rounds = Vec::new();
    // The extra round at the start warms up and does not count.
    for round in 0..=effort.rounds {
        eprintln!("thin: round {round} of {}", effort.rounds);
        let figures = play(&sides, &mut on_record, measured).await?;
        if round > 0 {
            rounds.push(figures);
        }
    }
    Ok(LINES.into_iter().enumerate().map(|(number, line)| report(line, number, &rounds)).collect())
}

fn heartbeats() -> Scenario {
    Scenario::Heartbeats { sessions_per_connection: SESSIONS_PER_CONNECTION }
}

fn plan(target: &Target, license_keys: Vec<String>, measured: Duration, scenario: Scenario) -> Plan {
    let bounds = Bounds { duration: measured, turns: None };
    Plan { target: target.clone(), license_keys, concurrency: CONCURRENCY, bounds, scenario }
}

/// Measures a round: a figure for each of `LINES`.
async fn play(
    sides: &[Side; 2],
    on_record: &mut OnRecord,
    measured: Duration,
) -> Result<[Figure; LINES.len()], Error> {
    let [ours, theirs] = sides;
    let heartbeats = [ours.rate(&ours.heartbeats).await?, theirs.rate(&theirs.heartbeats).await?];
    let denied = [ours.rate(&ours.denied).await?, theirs.rate(&theirs.denied).await?];
    let alone = |plan: &Plan| Plan { concurrency: 1, ..plan.clone() };
    let beat = [
        p50_millis(&alone(&ours.heartbeats), Operation::Heartbeat).await?,
        p50_millis(&alone(&theirs.heartbeats), Operation::Heartbeat).await?,
    ];
    let refused = [
        p50_millis(&alone(&ours.denied), Operation::Denied).await?,
        p50_millis(&alone(&theirs.denied), Operation::Denied).await?,
    ];
    let acquire = p50_millis(&on_record.acquires, Operation::Acquire).await?;
    on_record.product.caught_up().await?;
    let commit = commit_millis(&mut on_record.ledger, measured).await?;
    let redis = heartbeats.map(|rate| rate.redis_micros);
    Ok([
        Figure::from_rates(heartbeats),
        Figure::from_rates(denied),
        Figure { value: redis[0], ours: format!("{:.1}", redis[0]), theirs: format!("thin {:.1}", redis[1]) },
        Figure::from_millis(beat),
        Figure::from_millis(refused),
        Figure::from_millis([acquire, commit]),
    ])
}

impl OnRecord {
    /// Starts the servers, and a load of one client that acquires and releases.
    async fn start(measured: Duration) -> Result<Self, Error> {
        let (redis, postgres) = (Redis::start(), Postgres::start_with(&[]));
        let product = Product::start_over(&redis.url(), &postgres.url(&postgres.add_database()))?;
        let licenses = vec![product.license(SEATS).await?];
        let cycle = plan(&product.target()?, licenses, measured, Scenario::Cycle { heartbeats: 0 });
        let database = postgres.url(&postgres.add_database());
        let mut ledger = database.parse::<PgConnectOptions>()?.connect().await?;
        ledger.execute(include_str!("beside_thin/schema.sql")).await?;
        let acquires = Plan { concurrency: 1, ..cycle };
        Ok(Self { acquires, ledger, product, _servers: (redis, postgres) })
    }
}

impl Side {
    async fn rate(&self, plan: &Plan) -> Result<Rate, Error> {
        let before = [cpu_time(self.server)?, cpu_time(self.redis)?];
        let report = answered(plan).await?;
        let micros = |now: Duration, before: Duration| {
            now.saturating_sub(before).as_secs_f64() * 1e6 / report.requests as f64
        };
        Ok(Rate {
            requests_per_second: report.requests_per_second,
            server_micros: micros(cpu_time(self.server)?, before[0]),
            redis_micros: micros(cpu_time(self.redis)?, before[1]),
        })
    }
}

impl Figure {
    fn from_rates([ours, theirs]: [Rate; 2]) -> Self {
        let text = |rate: Rate| {
            let Rate { requests_per_second, server_micros, redis_micros } = rate;
            format!("{requests_per_second:.0}/s with {server_micros:.0} + {redis_micros:.0} µs")
        };
        let value = ours.requests_per_second / theirs.requests_per_second;
        Self { value, ours: text(ours), theirs: text(theirs) }
    }

    fn from_millis([ours, theirs]: [f64; 2]) -> Self {
        Self { value: ours / theirs, ours: format!("{ours:.3} ms"), theirs: format!("{theirs:.3} ms") }
    }
}

/// Returns the line with number `number`. The figures behind it are those of the median round.
fn report((what, bound): (&str, Bound), number: usize, rounds: &[[Figure; LINES.len()]]) -> Line {
    let values: Vec<f64> = rounds.iter().map(|round| round[number].value).collect();
    let middle = median(&values);
    let behind = rounds.iter().map(|round| &round[number]).find(|figure| figure.value == middle);
    let behind = behind.map_or(String::new(), |figure| format!("{} against {}", figure.ours, figure.theirs));
    Line::new(what, bound, &values, behind)
}

async fn p50_millis(plan: &Plan, operation: Operation) -> Result<f64, Error> {
    Ok(answered(plan).await?.operation(operation).map_or(f64::NAN, |operation| operation.p50_ms))
}

/// Returns the median latency of a commit of one row, in milliseconds.
async fn commit_millis(ledger: &mut PgConnection, measured: Duration) -> Result<f64, Error> {
    let (began, mut took) = (Instant::now(), Vec::new());
    while began.elapsed() < measured {
        let sent = Instant::now();
        let commit = sqlx::query(include_str!("beside_thin/commit.sql"));
        commit.bind(Uuid::new_v4()).execute(&mut *ledger).await?;
        took.push(sent.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(&took))
}
