//! PostgreSQL lists a page without reading rows of different tenants or rows long over.

use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::audit::{Action, AuditFilter};
use seatkeeper_ledger::sessions::SessionFilter;
use sqlx::Executor as _;

use crate::place::Connection;
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
    let (place, ledger) = ledger().await;
    ledger.apply(&[Story::new(&licensed(&ledger, 9).await).admit("laptop").1]).await.unwrap();
    let mut observer: Connection = place.connect().await;
    for statement in MANY {
        observer.execute(*statement).await.unwrap();
    }
    list(&ledger).await;
    drop(ledger);
    all_counted(&mut observer).await;
    let read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = $1";
    let read: i64 = sqlx::query_scalar(read).bind(table).fetch_one(&mut observer).await.unwrap();
    assert!((1..300).contains(&read), "{read} rows were read");
}
