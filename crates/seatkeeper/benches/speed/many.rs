//! Three nodes over Redis and PostgreSQL with many live sessions: the latency of heartbeats against a
//! deployment with few sessions, and the recovery time after Redis has lost its memory.
//!
//! The benchmark commits the sessions to the ledger directly. The rebuild after the loss of memory loads them
//! into Redis.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use seatkeeper_ledger::{Ledger, Location, PostgresUrl, Settings};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Memory, Redis};
use uuid::Uuid;

use crate::effort::Effort;
use crate::error::Error;
use crate::product::Product;
use crate::records::Records;
use crate::verdict::{Bound, Line, median};

const NODES: usize = 3;

/// Live sessions of the small deployment.
const FEW: u32 = 10_000;

/// Live sessions of the larger recovery.
const MORE: u32 = 100_000;

/// Seats per license, every seat taken.
const SEATS: u32 = 250;

/// Heartbeats of each side in a round at each node, and heartbeats in flight.
const HEARTBEATS: usize = 2_000;
const CONCURRENCY: usize = 8;

/// Time in which the statements of idle nodes are counted.
const IDLE: Duration = Duration::from_secs(10);

/// The most PostgreSQL statements for a heartbeat beyond those of idle nodes. Nodes write the times of heartbeats to
/// the ledger in batches.
const STATEMENTS_MAX: f64 = 0.01;

/// Sample of sessions that every node must serve again before service counts as back.
const SAMPLED: usize = 64;

/// Time limit of a recovery.
const RECOVERY_MAX: Duration = Duration::from_secs(600);

const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Returns the first line of the query for a session, as PostgreSQL logs the query.
fn query() -> &'static str {
    include_str!("../../../ledger/sql/find_session.sql").lines().next().unwrap_or_default()
}

/// Three nodes and their live sessions.
struct Deployment {
    // Fields drop in order: the nodes before their stores.
    nodes: Vec<Product>,
    ledger: Ledger,
    redis: Redis,
    postgres: Postgres,
    sessions: Vec<Uuid>,
}

pub(crate) async fn run(effort: Effort, sessions: u32) -> Result<Vec<Line>, Error> {
    let seed = rand::random();
    eprintln!("many: seed {seed}");
    let mut dice = StdRng::seed_from_u64(seed);
    let mut few = Deployment::start().await?;
    few.fill(FEW.min(sessions)).await?;
    let mut lines = vec![few.recovery(&mut dice, 5.0).await?];
    let mut many = Deployment::start().await?;
    if sessions >= MORE {
        many.fill(MORE).await?;
        lines.push(many.recovery(&mut dice, 15.0).await?);
    }
    let began = Instant::now();
    many.fill(sessions).await?;
    let filled = began.elapsed();
    let recovered = many.recover(&mut dice).await?;

    let idle_rate = many.idle_statements_per_second().await;
    let (queries_before, statements_before, phase) = (many.queries(), many.statements(), Instant::now());
    let (mut ratios, mut p99s) = (Vec::new(), [Vec::new(), Vec::new()]);
    // The extra round at the start warms up and does not count.
    for round in 0..=effort.rounds {
        eprintln!("many: round {round} of {}", effort.rounds);
        let sides = [many.p99(&mut dice).await?, few.p99(&mut dice).await?];
        if round > 0 {
            ratios.push(sides[0] / sides[1]);
            p99s.iter_mut().zip(sides).for_each(|(p99s, p99)| p99s.push(p99));
        }
    }
    let behind = format!(
        "{:.2} ms against {:.2} ms; filled in {:.0} s, served again after {:.1} s",
        median(&p99s[0]) * 1e3,
        median(&p99s[1]) * 1e3,
        filled.as_secs_f64(),
        recovered.as_secs_f64(),
    );
    let what = format!("p99 of heartbeats with {sessions} live sessions / with {FEW}");
    lines.push(Line::new(what, Bound::AtMost(1.5), &ratios, behind));
    let queries = (many.queries() - queries_before) as f64;
    let heartbeats = (effort.rounds + 1) * NODES * HEARTBEATS;
    let what = format!("PostgreSQL queries for a session in {heartbeats} of these heartbeats");
    lines.push(Line::new(what, Bound::AtMost(0.0), &[queries], String::new()));
    let statements = (many.statements() - statements_before) as f64;
    let idle = idle_rate * phase.elapsed().as_secs_f64();
    let each = ((statements - idle) / heartbeats as f64).max(0.0);
    let behind = format!("{statements:.0} statements, of which {idle:.0} by the rate of idle nodes");
    let what = "PostgreSQL statements of any kind for a heartbeat, beyond those of idle nodes";
    lines.push(Line::new(what, Bound::AtMost(STATEMENTS_MAX), &[each], behind));
    Ok(lines)
}

impl Deployment {
    async fn start() -> Result<Self, Error> {
        let (redis, postgres) = (Redis::start(), Postgres::start_with(&["max_wal_size = 8GB"]));
        let url = postgres.url(&postgres.add_database());
        let nodes = (0..NODES).map(|_| Product::start_over(&redis.url(), &url));
        let nodes = nodes.collect::<Result<_, _>>()?;
        let location: PostgresUrl = url.parse().map_err(|_| Error::Unclear { said: url.clone() })?;
        let ledger = Ledger::open(Settings::new(Location::from(location))).await?;
        Ok(Self { nodes, ledger, redis, postgres, sessions: Vec::new() })
    }

    /// Commits sessions until the deployment has `sessions` of them. Every seat of each license is taken.
    async fn fill(&mut self, sessions: u32) -> Result<(), Error> {
        // Logging pauses during the fill, whose log would be gigabytes.
        self.postgres.set("log_statement", "none");
        let wanted = sessions as usize;
        let licenses = wanted.saturating_sub(self.sessions.len()).div_ceil(SEATS as usize);
        let node = &self.nodes[0];
        let mut made = futures_util::stream::iter(0..licenses)
            .map(|_| node.license_id(SEATS))
            .buffer_unordered(CONCURRENCY);
        let mut records = Records::new(&self.ledger).await?;
        while let Some(license) = made.next().await {
            self.sessions.extend(records.take_seats(license?, SEATS).await?);
        }
        records.finish().await?;
        self.postgres.set("log_statement", "all");
        Ok(())
    }

    async fn recovery(&mut self, dice: &mut StdRng, seconds_max: f64) -> Result<Line, Error> {
        let took = self.recover(dice).await?.as_secs_f64();
        let what = format!("seconds until {} sessions are served again", self.sessions.len());
        Ok(Line::new(what, Bound::AtMost(seconds_max), &[took], "after Redis came back empty".to_owned()))
    }

    /// Restarts Redis with an empty memory, and returns the time until every node serves the sample.
    async fn recover(&mut self, dice: &mut StdRng) -> Result<Duration, Error> {
        eprintln!("many: {} sessions are on record, Redis loses its memory", self.sessions.len());
        self.redis.kill();
        self.redis.start_again(Memory::Lost);
        let began = Instant::now();
        let mut asked = Vec::new();
        for session in self.sessions.sample(dice, SAMPLED) {
            asked.extend(self.nodes.iter().map(|node| served(node, *session, began)));
        }
        let mut served = futures_util::stream::iter(asked).buffer_unordered(CONCURRENCY);
        while let Some(served) = served.next().await {
            served?;
        }
        Ok(began.elapsed())
    }

    /// Returns the 99th percentile of heartbeats of random sessions, in seconds: the median over the nodes.
    async fn p99(&self, dice: &mut StdRng) -> Result<f64, Error> {
        let mut p99s = Vec::new();
        for node in &self.nodes {
            let chosen: Vec<_> =
                (0..HEARTBEATS).map(|_| self.sessions[dice.random_range(0..self.sessions.len())]).collect();
            let beat = |session| async move {
                let began = Instant::now();
                node.heartbeat(session).await.map(|()| began.elapsed().as_secs_f64())
            };
            let mut beats = futures_util::stream::iter(chosen).map(beat).buffer_unordered(CONCURRENCY);
            let mut took = Vec::with_capacity(HEARTBEATS);
            while let Some(beat) = beats.next().await {
                took.push(beat?);
            }
            took.sort_by(f64::total_cmp);
            p99s.push(took[HEARTBEATS * 99 / 100]);
        }
        Ok(median(&p99s))
    }

    /// Counts the statements in PostgreSQL's log, transaction control included.
    fn statements(&self) -> usize {
        let log = self.postgres.log();
        ["LOG:  execute ", "LOG:  statement: "].iter().map(|start| log.matches(start).count()).sum()
    }

    async fn idle_statements_per_second(&self) -> f64 {
        let before = self.statements();
        tokio::time::sleep(IDLE).await;
        (self.statements() - before) as f64 / IDLE.as_secs_f64()
    }

    /// Counts the queries for a session in PostgreSQL's log.
    fn queries(&self) -> usize {
        self.postgres.log().matches(query()).count()
    }
}

/// Retries a heartbeat until the node renews the session.
async fn served(node: &Product, session: Uuid, began: Instant) -> Result<(), Error> {
    while let Err(error) = node.heartbeat(session).await {
        if began.elapsed() > RECOVERY_MAX {
            return Err(error);
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
    Ok(())
}
