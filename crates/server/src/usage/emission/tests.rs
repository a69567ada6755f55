//! Tests of emission: no window ends later than trusted time.

use seatkeeper_core::{
    Change, Event, Origin, Particulars, PoolId, PoolKind, Region, Seats, Session, SessionId, Tier, Users,
};
use seatkeeper_engine::Commits;
use seatkeeper_ledger::Settings;
use seatkeeper_registry::ManualClock;
use seatkeeper_registry::memory::MemoryRegistry;

use super::*;

pub(in crate::usage) const START: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);
const MINUTE: Span = Span::from_secs(60);
const HOUR: Span = Span::from_secs(3_600);
const YEAR: Span = Span::from_secs(365 * 86_400);

/// Returns the admission of a capacity session that started at `at` and lasts for a year.
pub(in crate::usage) fn admission(at: RegistryTime) -> Event {
    admission_of(2, at)
}

/// Returns the admission of the only session of a user of the tenant.
pub(in crate::usage) fn admission_of(user: u128, at: RegistryTime) -> Event {
    let (tenant, user, capacity) =
        (uuid::Uuid::from_u128(1), uuid::Uuid::from_u128(user), uuid::Uuid::from_u128(3));
    let pool =
        PoolId::new(PoolKind::Capacity, tenant.to_string().as_str().into(), format!("{user}/{capacity}"));
    let session = Session {
        id: SessionId::mint(at, pool.bucket(), Region::default(), user.as_u128() as u64),
        holder: "ann".into(),
        users: Users::one("ann".into()),
        started: at,
        last_heartbeat: at,
        ttl: YEAR,
        tier: Tier(1),
    };
    let particulars = Box::new(Particulars::default());
    Event {
        pool,
        seq: 1,
        epoch: 0,
        at,
        live: 1,
        limit: Seats(1),
        version: 1,
        origin: Origin::SYSTEM,
        change: Change::Admitted { session: Box::new(session), expires: at + YEAR, particulars },
    }
}

/// Starts a server at `now`, and returns the server's clock and the emission.
async fn started(ledger: &Ledger, now: RegistryTime) -> (Arc<ManualClock>, Emission) {
    let manual = Arc::new(ManualClock::at(now));
    let registry = Arc::new(MemoryRegistry::new(1, Region::default(), 1_000, Arc::clone(&manual)));
    let clock = Arc::new(JobClock::of_process(Arc::clone(&registry) as _));
    let trusted = TrustedClock::start(Arc::clone(&clock), ledger.clone(), now).await.unwrap();
    let backend = Backend::lasting(registry as _, Commits::new(1_000));
    let job = Emission {
        clock,
        trusted: Arc::new(trusted),
        backend,
        ledger: ledger.clone(),
        interval: HOUR,
        batch_records: 100,
        metrics: UsageMetrics::default(),
    };
    (manual, job)
}

/// Starts a server at `now`, runs an emission, and returns the end of the last window and whether the run succeeded.
async fn start_and_emit(ledger: &Ledger, now: RegistryTime) -> (RegistryTime, bool) {
    let (_clock, job) = started(ledger, now).await;
    ledger.ensure_job(JobName::UsageDelivery, HOUR, now).await.unwrap();
    ledger.ensure_job(JobName::UsageEmission, HOUR, now).await.unwrap();
    ledger.run_job_now(JobName::UsageEmission, now).await.unwrap();
    let run = ledger.take_job(JobName::UsageEmission, "a", now).await.unwrap().unwrap();
    let done = job.run(&run.fence).await;
    assert!(matches!(done, Ok(()) | Err(Error::TimeUnconfirmed)), "{done:?}");
    ledger.complete_job(&run.fence, now).await.unwrap();
    (ledger.usage_metered_until().await.unwrap().unwrap_or_default(), done.is_ok())
}

#[tokio::test]
async fn a_clock_a_year_ahead_meters_no_usage_of_that_year_until_an_operator_confirms() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.apply(&[admission(START)]).await.unwrap();
    assert_eq!(start_and_emit(&ledger, START + HOUR).await, (START + HOUR, true));

    let wrong = start_and_emit(&ledger, START + YEAR).await;
    assert_eq!(wrong, (START + HOUR, false), "the clock is wrong, and the run fails for an operator to hear");
    let right = start_and_emit(&ledger, START + HOUR + HOUR).await;
    assert_eq!(right, (START + HOUR + HOUR, true), "the clock is right");
    ledger.confirm_time(START + YEAR).await.unwrap();
    assert_eq!(start_and_emit(&ledger, START + YEAR).await, (START + YEAR, true));
}

#[tokio::test]
async fn repetitions_before_the_confirmation_cut_no_short_windows() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(Settings::new(dir.path())).await.unwrap();
    ledger.apply(&[admission(START)]).await.unwrap();
    assert_eq!(start_and_emit(&ledger, START + HOUR).await, (START + HOUR, true));

    let (clock, job) = started(&ledger, START + YEAR).await;
    let emit = async |now| {
        ledger.run_job_now(JobName::UsageEmission, now).await.unwrap();
        let run = ledger.take_job(JobName::UsageEmission, "a", now).await.unwrap().unwrap();
        let done = job.run(&run.fence).await;
        assert!(matches!(done, Err(Error::TimeUnconfirmed)), "{done:?}");
        ledger.complete_job(&run.fence, now).await.unwrap();
        ledger.usage_metered_until().await.unwrap().unwrap()
    };
    clock.advance(Span::from_secs(5));
    assert_eq!(emit(START + YEAR + Span::from_secs(5)).await, START + HOUR);
    clock.advance(HOUR);
    let metered = emit(START + YEAR + Span::from_secs(5) + HOUR).await;
    assert!((START + HOUR + HOUR..START + HOUR + HOUR + MINUTE).contains(&metered), "{metered:?}");
}
