//! A look at changed entitlements, some of whose pools do not answer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{PoolId, PoolKind, Region, RegistryTime, Terms};
use seatkeeper_ledger::{Error as LedgerError, Ledger, Settings};
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{Admission as _, ManualClock};
use tokio::sync::Semaphore;

use super::{POOLS_AT_ONCE, Reconcile};
use crate::commits::Commits;
use crate::engine::{Engine, Parts};
use crate::failover::EpochLease;
use crate::metrics::ClaimMetrics;
use crate::registries::Registries;
use crate::terms::TermsSource;

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
    let others = u32::try_from(pools.len() - 1).expect("few pools");
    let terms = FirstIsLast { first: pools[0].clone(), others, asked: Semaphore::new(0) };
    let (engine, terms) = (Arc::new(engine), Arc::new(terms));
    let worker = Reconcile { engine, ledger: ledger.clone(), terms, looked: Default::default() };

    let all = tokio::time::timeout(LOOK_MAX, worker.reconcile_all(&pools)).await;
    assert!(all.expect("the other pools wait for the first"));
    ledger.close().await;
}
