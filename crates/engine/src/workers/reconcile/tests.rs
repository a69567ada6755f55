//! A look at changed entitlements, some of whose pools do not answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Origin, PoolId, PoolKind, Region, RegistryTime, Seats, Span, Terms};
use seatkeeper_ledger::licenses::{Clients, CountPer, LicenseKey, NewLicense, Reacquire, Status};
use seatkeeper_ledger::{Error as LedgerError, Ledger, Settings, Write};
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{Admission as _, ManualClock};
use tokio::sync::Semaphore;

use super::{AGE_MIN, POOLS_AT_ONCE, RETRY_PAUSE, Reconcile};
use crate::commits::Commits;
use crate::engine::{Engine, Parts};
use crate::failover::EpochLease;
use crate::metrics::ClaimMetrics;
use crate::registries::Registries;
use crate::terms::TermsSource;
use crate::worker::{Progress, Worker as _};

/// Deadline for a look, on a busy machine.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// Keeps the terms of the pool `first` back until all other pools were asked for.
struct FirstIsLast {
    first: PoolId,
    others: u32,
    asked: Semaphore,
}

#[async_trait]
impl TermsSource for FirstIsLast {
    async fn terms(&self, pool: &PoolId, _now: RegistryTime) -> Result<Option<Terms>, LedgerError> {
        if *pool == self.first {
            let all_others = self.asked.acquire_many(self.others).await;
            all_others.map_err(|_| LedgerError::NotFound)?.forget();
        } else {
            self.asked.add_permits(1);
        }
        Ok(None)
    }
}

#[tokio::test]
async fn a_pool_that_does_not_answer_holds_up_no_other() {
    let pools: Vec<_> = (0..2 * POOLS_AT_ONCE)
        .map(|number| PoolId::new(PoolKind::License, "acme".into(), format!("pool-{number:02}")))
        .collect();
    let registry = MemoryRegistry::new(1, Region::default(), 100, ManualClock::default());
    for pool in &pools {
        registry.open(pool, 0, None, Vec::new()).await.expect("a pool in memory opens");
    }
    let others = u32::try_from(pools.len() - 1).expect("few pools");
    let terms = FirstIsLast { first: pools[0].clone(), others, asked: Semaphore::new(0) };
    let (worker, _directory) = worker(registry, terms).await;

    let all = tokio::time::timeout(LOOK_MAX, worker.reconcile_all(&pools)).await;
    assert!(all.expect("the other pools wait for the first"));
    worker.ledger.close().await;
}

/// Fails once, and has no terms afterwards.
#[derive(Default)]
struct FailsOnce(AtomicBool);

#[async_trait]
impl TermsSource for FailsOnce {
    async fn terms(&self, _: &PoolId, _now: RegistryTime) -> Result<Option<Terms>, LedgerError> {
        if self.0.swap(true, Relaxed) { Ok(None) } else { Err(LedgerError::NotFound) }
    }
}

#[tokio::test]
async fn a_look_that_missed_a_pool_does_not_count() {
    let now = RegistryTime::from_millis(1_800_000_000_000);
    let registry = MemoryRegistry::new(1, Region::default(), 100, ManualClock::at(now));
    let (worker, _directory) = worker(registry, FailsOnce::default()).await;
    let at = now - AGE_MIN - Span::from_secs(1);
    let license = NewLicense {
        tenant: "acme".into(),
        key: LicenseKey::new("KEY"),
        max_seats: Seats(1),
        status: Status::Active,
        expires_at: None,
        count_per: CountPer::Machine,
        clients: Clients::default(),
        ttl_seconds: None,
        grace_seconds: 0,
        reacquire: Reacquire::default(),
        contact: None,
    };
    let write = Write { origin: &Origin::SYSTEM, at, idempotency: None, home: None, expected_version: None };
    let license = worker.ledger.create_license(license, write).await.expect("a license").value;
    worker
        .engine
        .registries()
        .main
        .registry
        .open(&license.pool(), 0, None, Vec::new())
        .await
        .expect("a pool");

    assert_eq!(worker.activate().await.expect("a look"), Progress::Defer(RETRY_PAUSE));
    assert_eq!(*worker.looked.lock(), None);
    assert_eq!(worker.activate().await.expect("a look"), Progress::Idle);
    assert_eq!(*worker.looked.lock(), Some(now));
    worker.ledger.close().await;
}

/// Returns a worker over a registry in memory and an empty ledger, with the ledger's directory.
async fn worker(
    registry: MemoryRegistry<ManualClock>,
    terms: impl TermsSource,
) -> (Reconcile, tempfile::TempDir) {
    let directory = tempfile::tempdir().expect("a directory");
    let ledger = Ledger::open(Settings::new(directory.path())).await.expect("a ledger");
    let engine = Engine::new(Parts {
        registries: Registries::only(Arc::new(registry), Commits::new(100)),
        ledger: ledger.clone(),
        endings: Arc::default(),
        lease: Arc::new(EpochLease::unshared()),
        metrics: ClaimMetrics::default(),
        commit_timeout: LOOK_MAX,
        region: Region::default(),
        on_left: None,
    });
    let (engine, terms) = (Arc::new(engine), Arc::new(terms));
    (Reconcile { engine, ledger, terms, looked: Default::default() }, directory)
}
