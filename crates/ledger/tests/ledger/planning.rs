//! PostgreSQL lists a page without reading rows of different tenants or rows long over.

use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::audit::{Action, AuditFilter};
use seatkeeper_ledger::sessions::SessionFilter;
use sqlx::Executor as _;

use crate::place::Connection;
use crate::retaining::run;
use crate::story::{Story, ledger, licensed, tenant};
use crate::young::all_counted;

/// More records of the tenant, newer records of a second tenant, and ended sessions of the tenant.
const MANY: &[&str] = &[
    "INSERT INTO audit_log (at, tenant_id, pool_kind, pool_id, stream, seq, epoch, action, session_id, holder, actor,
         limit_seats, limit_version, live, count, folded)
     SELECT now(), tenant, 'license', 'x', 'session', n, 1, 'admitted', sessions.id, 'x', 'system', 1, 1, 1, 1,
         false
     FROM sessions, (VALUES ('acme', 2000), ('globex', 40000)) AS t (tenant, many), generate_series(1, many) AS n
     ORDER BY tenant, n",
    "INSERT INTO sessions (id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at,
         ttl_ms, expires_at, ended_at, end_reason)
     SELECT gen_random_uuid(), tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at,
         ttl_ms, expires_at, now(), 'released'
     FROM sessions, generate_series(1, 20000)",
    "ANALYZE",
    "SELECT pg_stat_reset()",
];

/// Old records of an entitlement, which stay for ever, and of nodes.
const OLD_RECORDS: &str = "INSERT INTO audit_log (at, tenant_id, pool_kind, pool_id, stream, seq, epoch, action, actor,
         limit_seats, limit_version, count, folded)
     SELECT to_timestamp(since + n), 'third', 'license', 'kept', stream, n, 1, action, 'system', 1, 1, 1, false
     FROM (VALUES ('entitlement', 'license_updated', 20000, 0), ('node', 'ended_alone', 50, 100000))
         AS t (stream, action, many, since), generate_series(1, many) AS n";

/// The records of nodes among [`OLD_RECORDS`].
const OF_NODES: u64 = 50;

/// A time after [`OLD_RECORDS`], and before every record of a session.
const OLD: RegistryTime = RegistryTime::from_millis(2_000_000_000);

#[tokio::test]
async fn a_page_of_a_tenants_records_is_listed_without_those_of_others_and_the_rest() {
    read_little("audit_log", async |ledger| {
        let page = ledger.audit(&tenant(), &AuditFilter::default(), None, 100).await.unwrap();
        assert_eq!(page.items.len(), 100);
    })
    .await;
}

#[tokio::test]
async fn a_tenants_records_of_a_rare_action_are_listed_without_all_others() {
    let rare = AuditFilter { action: Some(Action::LicenseCreated), ..AuditFilter::default() };
    read_little("audit_log", async |ledger| {
        // Often enough for PostgreSQL to choose a generic plan.
        for _ in 0..20 {
            let page = ledger.audit(&tenant(), &rare, None, 100).await.unwrap();
            assert_eq!(page.items.len(), 1);
        }
    })
    .await;
}

#[tokio::test]
async fn a_pools_records_are_listed_without_those_of_the_tenants_other_pools() {
    read_little("audit_log", async |ledger| {
        let live = SessionFilter { live: Some(true), ..SessionFilter::default() };
        let page = ledger.search_sessions(&tenant(), &live, None, 1).await.unwrap();
        let pool = Some(page.items[0].pool.name.clone());
        let filter = AuditFilter { pool, ..AuditFilter::default() };
        for _ in 0..10 {
            let page = ledger.audit(&tenant(), &filter, None, 100).await.unwrap();
            assert_eq!(page.items.len(), 2, "the license and the admission");
        }
    })
    .await;
}

#[tokio::test]
async fn old_records_of_nodes_are_purged_without_a_read_of_the_records_that_stay() {
    read_little_beside(&[OLD_RECORDS], "audit_log", async |ledger| {
        let run = run(ledger).await;
        let purged = ledger.purge(&run, OLD, 100).await.unwrap();
        assert_eq!((purged.records, purged.more), (OF_NODES, false));
    })
    .await;
}

#[tokio::test]
async fn live_sessions_are_listed_without_those_that_are_over() {
    let live = SessionFilter { live: Some(true), ..SessionFilter::default() };
    read_little("sessions", async |ledger| {
        let page = ledger.search_sessions(&tenant(), &live, None, 100).await.unwrap();
        assert_eq!(page.items.len(), 1);
    })
    .await;
}

/// Lists records or sessions of a license with one session, and checks that few rows of the table were read.
async fn read_little(table: &str, list: impl AsyncFnOnce(&Ledger)) {
    read_little_beside(&[], table, list).await;
}

/// Checks a list as [`read_little`] does, beside the rows of further statements.
async fn read_little_beside(further: &[&'static str], table: &str, list: impl AsyncFnOnce(&Ledger)) {
    let (place, ledger) = ledger().await;
    ledger.apply(&[Story::new(&licensed(&ledger, 9).await).admit("laptop").1]).await.unwrap();
    let mut observer: Connection = place.connect().await;
    for statement in MANY.iter().chain(further) {
        observer.execute(*statement).await.unwrap();
    }
    list(&ledger).await;
    drop(ledger);
    all_counted(&mut observer).await;
    let read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = $1";
    let read: i64 = sqlx::query_scalar(read).bind(table).fetch_one(&mut observer).await.unwrap();
    assert!((1..300).contains(&read), "{read} rows were read");
}
