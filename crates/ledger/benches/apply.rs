//! Measures durable events per second, and reading a large ledger back.
//!
//! `cargo bench -p seatkeeper-ledger --bench apply` writes a ledger to a temporary directory (`TMPDIR`). With
//! `-- postgres` the ledger is on a temporary PostgreSQL with durable commits, first used by one node and
//! then shared by several nodes. With `-- history` only a ledger with a million ended sessions is measured.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use std::time::Instant;

use futures_util::TryStreamExt as _;
use seatkeeper_core::{
    Actor, Change, EndReason, Event, Holder, LatestHeartbeat, Origin, Particulars, PoolId, PoolKind, Region,
    RegistryTime, Seats, Session, SessionId, Span, TenantId, Tier, UserId, Users,
};
use seatkeeper_ledger::{Ledger, Location, PostgresUrl, Settings};
use seatkeeper_testbed::postgres::Postgres;

/// The epoch of every event.
const EPOCH: u64 = 1 << 16;
const POOLS: u64 = 1_000;
const TTL: Span = Span::from_secs(360);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let postgres = std::env::args().any(|arg| arg == "postgres").then(|| Postgres::start_with(&[]));
    let place = &BenchLedger { postgres };
    if std::env::args().any(|arg| arg == "history") {
        return runtime.block_on(history(place, 1_000_000));
    }
    runtime.block_on(async {
        for batch in [1, 16, 128, 512, 1_024, 4_096, 8_192] {
            commits(place, batch, 100_000.min(batch * 2_000)).await;
        }
        if place.postgres.is_some() {
            for nodes in [2, 3] {
                shared(place, nodes, 4_096, 100_000).await;
            }
        }
        live_sessions(place, 1_000_000).await;
    });
}

/// The location of ledgers.
struct BenchLedger {
    postgres: Option<Postgres>,
}

impl BenchLedger {
    async fn fresh(&self) -> (Option<tempfile::TempDir>, Ledger) {
        let (dir, location) = match &self.postgres {
            Some(server) => (None, server.url(&server.add_database()).parse::<PostgresUrl>().unwrap().into()),
            None => {
                let dir = tempfile::tempdir().unwrap();
                let location = Location::from(&dir);
                (Some(dir), location)
            }
        };
        let ledger = Ledger::open(Settings::new(location)).await.unwrap();
        assert_eq!(ledger.raise_epoch("memory", 0).await.unwrap(), EPOCH);
        (dir, ledger)
    }
}

/// Runs several nodes with separate pools. Sessions begin in one batch and end in the next.
async fn shared(place: &BenchLedger, nodes: u64, batch: u64, events: u64) {
    let (_dir, ledger) = place.fresh().await;
    let started = Instant::now();
    let mut running = Vec::new();
    for node in 0..nodes {
        let ledger = ledger.clone();
        running.push(tokio::spawn(async move {
            cycles(&ledger, &mut Pools { first: node * POOLS, ..Pools::default() }, batch, events).await
        }));
    }
    let mut done = 0;
    for node in running {
        done += node.await.unwrap();
    }
    let rate = done as f64 / started.elapsed().as_secs_f64();
    println!("{nodes} nodes, batches of {batch:>5} events: {rate:>8.0} events/s");
}

/// Runs one node. Sessions begin in one batch and end in the next.
async fn commits(place: &BenchLedger, batch: u64, events: u64) {
    let (_dir, ledger) = place.fresh().await;
    let started = Instant::now();
    let done = cycles(&ledger, &mut Pools::default(), batch, events).await;
    let rate = done as f64 / started.elapsed().as_secs_f64();
    println!("batches of {batch:>5} events: {rate:>8.0} events/s");
}

/// Measures a ledger with many ended sessions: the rate of events, and the reading of 10,000 live sessions.
async fn history(place: &BenchLedger, ended: u64) {
    let (_dir, ledger) = place.fresh().await;
    let mut pools = Pools::default();
    cycles(&ledger, &mut pools, 8_192, 2 * ended).await;
    for batch in [16, 1_024] {
        let started = Instant::now();
        let done = cycles(&ledger, &mut pools, batch, 100_000.min(batch * 2_000)).await;
        let rate = done as f64 / started.elapsed().as_secs_f64();
        println!("{ended} ended sessions, batches of {batch:>5} events: {rate:>8.0} events/s");
    }
    let batch: Vec<_> = (0..10_000).map(|_| pools.begin()).collect();
    ledger.apply(&batch).await.unwrap();
    let started = Instant::now();
    let read = ledger.live_sessions().try_fold(0, async |sum, pool| Ok(sum + pool.sessions.len())).await;
    println!("{} of {ended} sessions read in {:.3} s", read.unwrap(), started.elapsed().as_secs_f64());
}

async fn cycles(ledger: &Ledger, pools: &mut Pools, batch: u64, events: u64) -> u64 {
    let mut done = 0;
    while done < events {
        let begun: Vec<_> = (0..batch).map(|_| pools.begin()).collect();
        let ended: Vec<_> = begun.iter().map(|event| pools.end(event)).collect();
        done += (begun.len() + ended.len()) as u64;
        for half in [begun, ended] {
            ledger.apply(&half).await.unwrap();
        }
    }
    done
}

/// Fills a large ledger, flushes the heartbeats, reads the sessions back for a restart, and verifies the
/// ledger.
async fn live_sessions(place: &BenchLedger, sessions: u64) {
    let (_dir, ledger) = place.fresh().await;
    let mut pools = Pools::default();
    let mut ids = Vec::new();
    let started = Instant::now();
    for _ in 0..sessions / 4_000 {
        let batch: Vec<_> = (0..4_000).map(|_| pools.begin()).collect();
        ids.extend(batch.iter().map(subject));
        ledger.apply(&batch).await.unwrap();
    }
    println!("{sessions} admissions: {:>8.0} events/s", sessions as f64 / started.elapsed().as_secs_f64());

    let started = Instant::now();
    let beat = |&session| LatestHeartbeat { session, at: pools.now + TTL, ttl: TTL };
    let beats: Vec<_> = ids.iter().take(100_000).map(beat).collect();
    ledger.flush_heartbeats(&beats).await.unwrap();
    println!("100000 heartbeats flushed in {:.2} s", started.elapsed().as_secs_f64());

    let started = Instant::now();
    let read = ledger.live_sessions().try_fold(0, async |sum, pool| Ok(sum + pool.sessions.len())).await;
    println!("{} live sessions read in {:.2} s", read.unwrap(), started.elapsed().as_secs_f64());

    let started = Instant::now();
    let verdict = ledger.verify(|_| ()).await.unwrap();
    println!("verified in {:.2} s: {verdict:?}", started.elapsed().as_secs_f64());
}

/// Pools used in turn. Every session has a separate holder.
#[derive(Default)]
struct Pools {
    /// The number of the first pool.
    first: u64,
    now: RegistryTime,
    ids: u64,
    seqs: std::collections::HashMap<u64, (u64, u32)>,
}

impl Pools {
    fn begin(&mut self) -> Event {
        self.ids += 1;
        self.now = RegistryTime::from_millis(1_800_000_000_000 + self.ids);
        let name = self.first + self.ids % POOLS;
        let pool = PoolId::new(PoolKind::Subscriber, TenantId::from("acme"), name.to_string());
        // Random holder names, like the names of machines.
        let holder = Holder::new(format!(
            "{:016x}",
            (self.first << 32 | self.ids).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ));
        let session = Session {
            id: SessionId::mint(self.now, pool.bucket(), Region::default(), self.first << 32 | self.ids),
            holder,
            users: Users::one(UserId::from("ann")),
            started: self.now,
            last_heartbeat: self.now,
            ttl: TTL,
            tier: Tier(0),
        };
        let particulars = Particulars {
            ip: Some([192, 0, 2, 7].into()),
            user_agent: Some("cad/7 (linux)".into()),
            metadata: None,
            device: None,
        };
        let change = Change::Admitted {
            session: Box::new(session),
            expires: self.now + TTL,
            particulars: Box::new(particulars),
        };
        self.event(pool, change, 1)
    }

    fn end(&mut self, began: &Event) -> Event {
        let Change::Admitted { session, expires, .. } = &began.change else { unreachable!() };
        let change = Change::Ended {
            session: session.id,
            holder: session.holder.clone(),
            tier: session.tier,
            reason: EndReason::Released,
            last_heartbeat: self.now,
            expires: *expires,
        };
        self.event(began.pool.clone(), change, -1)
    }

    fn event(&mut self, pool: PoolId, change: Change, more: i32) -> Event {
        let (seq, live) = self.seqs.entry(pool.name.parse().unwrap()).or_default();
        *seq += 1;
        *live = live.saturating_add_signed(more);
        let origin = Origin { actor: Actor::User(UserId::from("ann")), request: Some("01hq-request".into()) };
        let (epoch, limit, version) = (EPOCH, Seats(1_000_000), 1);
        Event { seq: *seq, epoch, at: self.now, live: *live, limit, version, origin, change, pool }
    }
}

fn subject(event: &Event) -> SessionId {
    let Change::Admitted { session, .. } = &event.change else { unreachable!() };
    session.id
}
