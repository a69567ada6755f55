//! Measures the emission of many live capacity sessions: time, memory, and the wait of concurrent admissions.
//!
//! `cargo bench -p seatkeeper-ledger --bench usage` writes ledgers to temporary directories (`TMPDIR`).
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, reason = "a benchmark")]

use std::time::{Duration, Instant};

use seatkeeper_core::{
    Actor, Change, Event, Holder, Origin, Particulars, PoolId, PoolKind, Region, RegistryTime, Seats,
    Session, SessionId, Span, TenantId, Tier, UserId, Users,
};
use seatkeeper_ledger::jobs::JobName;
use seatkeeper_ledger::usage::Settlement;
use seatkeeper_ledger::{Ledger, Settings};
use uuid::Uuid;

/// The epoch of every event.
const EPOCH: u64 = 1 << 16;
const TERM: Span = Span::from_secs(30 * 24 * 3_600);
const MINUTE: Span = Span::from_secs(60);
const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);
/// The number of tenants, so that batches of several tenants alternate in the order of sessions.
const TENANTS: u64 = 10;
const BATCH_RECORDS: usize = 1_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        for sessions in [100_000, 1_000_000] {
            emissions(sessions).await;
        }
    });
}

/// Emits two windows over the same sessions, the second during admissions, and delivers all batches.
async fn emissions(sessions: u64) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    assert_eq!(ledger.raise_epoch("memory", 0).await.unwrap(), EPOCH);
    for first in (0..sessions).step_by(4_000) {
        let batch: Vec<_> = (first..sessions.min(first + 4_000)).map(|number| held(number, START)).collect();
        ledger.apply(&batch).await.unwrap();
    }
    println!("{sessions} live sessions, {} MiB on disk", disk_mib(dir.path()));
    emit(&ledger, "alone", START + MINUTE).await;
    let admissions = tokio::spawn(admit(ledger.clone(), sessions));
    emit(&ledger, "while others are admitted", START + MINUTE + MINUTE).await;
    admissions.abort();
    deliver(&ledger, START + MINUTE + MINUTE).await;
    ledger.close().await;
}

async fn emit(ledger: &Ledger, how: &str, until: RegistryTime) {
    ledger.ensure_job(JobName::UsageEmission, MINUTE, START).await.unwrap();
    let run = ledger.take_job(JobName::UsageEmission, "bench", until).await.unwrap().unwrap();
    let before = memory_mib("VmRSS:");
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let started = Instant::now();
    let emitted = ledger.emit_usage(until, BATCH_RECORDS, &run.fence).await.unwrap().unwrap();
    let took = started.elapsed().as_secs_f64();
    let peak = memory_mib("VmHWM:");
    ledger.complete_job(&run.fence, until).await.unwrap();
    println!(
        "  emitted {how}: {} records in {} batches, {took:.2} s; memory {before} MiB, at its peak {peak} MiB",
        emitted.records, emitted.batches
    );
}

/// Admits one session after another until aborted, and prints the longest wait each second.
async fn admit(ledger: Ledger, first: u64) {
    let (mut number, mut told) = (first, Instant::now());
    let (mut longest, mut count) = (Duration::ZERO, 0);
    loop {
        let started = Instant::now();
        ledger.apply(&[held(number, START + MINUTE)]).await.unwrap();
        longest = longest.max(started.elapsed());
        (number, count) = (number + 1, count + 1);
        if told.elapsed() > Duration::from_secs(5) {
            println!("    {count} admissions in 5 s, the longest {:.0} ms", longest.as_secs_f64() * 1_000.0);
            (longest, count, told) = (Duration::ZERO, 0, Instant::now());
        }
    }
}

/// Reads every batch and settles the batch, without a sink.
async fn deliver(ledger: &Ledger, now: RegistryTime) {
    ledger.ensure_job(JobName::UsageDelivery, MINUTE, START).await.unwrap();
    let run = ledger.take_job(JobName::UsageDelivery, "bench", now).await.unwrap().unwrap();
    let (started, mut batches) = (Instant::now(), 0);
    loop {
        let due = ledger.due_usage(now, None, 4).await.unwrap();
        if due.is_empty() {
            break;
        }
        for batch in due {
            let settlement = Settlement::Delivered { status: 200, at: now };
            ledger.settle_usage(batch.id, settlement, &run.fence).await.unwrap();
            batches += 1;
        }
    }
    println!("  {batches} batches read and settled in {:.2} s", started.elapsed().as_secs_f64());
}

/// Returns the admission of a user to a capacity.
fn held(number: u64, at: RegistryTime) -> Event {
    let tenant = TenantId::new(Uuid::from_u128(u128::from(number % TENANTS)).to_string());
    // Random user ids.
    let user = Uuid::from_u128(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835));
    let pool = PoolId::new(PoolKind::Capacity, tenant, format!("{user}/{}", Uuid::from_u128(0xca)));
    let at = at + Span::from_millis(number / 1_000);
    let session = Session {
        id: SessionId::mint(at, pool.bucket(), Region::default(), number),
        holder: Holder::new(user.to_string()),
        users: Users::one(UserId::from("ann")),
        started: at,
        last_heartbeat: at,
        ttl: TERM,
        tier: Tier(1 + (number % 3) as u8),
    };
    let particulars = Box::new(Particulars::default());
    let change = Change::Admitted { session: Box::new(session), expires: at + TERM, particulars };
    let origin = Origin { actor: Actor::System, request: None };
    Event { pool, seq: 1, epoch: EPOCH, at, live: 1, limit: Seats(1), version: 1, origin, change }
}

fn memory_mib(line: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let found = status.lines().find_map(|text| text.strip_prefix(line)).unwrap();
    found.split_whitespace().next().unwrap().parse::<u64>().unwrap() / 1_024
}

fn disk_mib(dir: &std::path::Path) -> u64 {
    let sizes = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    sizes.sum::<u64>() >> 20
}
