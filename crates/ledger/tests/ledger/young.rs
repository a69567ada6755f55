//! A young ledger on PostgreSQL, without planner statistics.

use std::time::{Duration, Instant};

use seatkeeper_core::{EndReason, Span};
use sqlx::Executor as _;

use crate::place::Connection;
use crate::story::{Story, ledger, licensed};

/// Enough rounds for each connection to replace custom plans by a generic plan.
const ROUNDS: usize = 20;

const POOLS: usize = 3;

/// The index that finds a record by pool and number, without reading a different pool.
const BY_PLACE: &str = "audit_log_tenant_id_pool_kind_pool_id_stream_seq_key";

#[tokio::test]
async fn what_is_recorded_or_asked_of_one_pool_never_reads_through_the_log_of_its_tenant() {
    let (place, ledger) = ledger().await;
    let mut observer = place.connect().await;
    let mut stories = Vec::new();
    for _ in 0..POOLS {
        stories.push(Story::new(&licensed(&ledger, 9).await));
    }
    sqlx::query("SELECT pg_stat_reset()").execute(&mut observer).await.unwrap();
    for _ in 0..ROUNDS {
        for story in &mut stories {
            let (id, began) = story.admit("laptop");
            ledger.apply(std::slice::from_ref(&began)).await.unwrap();
            // The same event again, as after a crash.
            ledger.apply(&[began]).await.unwrap();
            story.pass(Span::from_secs(1));
            ledger.apply(&[story.end(id, EndReason::Released)]).await.unwrap();
            assert!(ledger.pool_seq(&story.pool).await.unwrap() > 0);
            assert!(ledger.pool_head(&story.pool).await.unwrap().sessions.is_empty());
        }
    }
    drop(ledger);
    all_counted(&mut observer).await;

    let read = "SELECT indexrelname, idx_scan FROM pg_stat_user_indexes
        WHERE relname IN ('audit_log', 'sessions') AND idx_scan > 0";
    let mut used: Vec<(String, i64)> = sqlx::query_as(read).fetch_all(&mut observer).await.unwrap();
    let by_place = used.iter().position(|(index, _)| index == BY_PLACE).map(|at| used.remove(at));
    assert!(by_place.is_some_and(|(_, scans)| scans >= (ROUNDS * POOLS) as i64), "{used:?}");
    let narrow = ["audit_log_pkey", "audit_log_by_session", "sessions_pkey", "sessions_live"];
    used.retain(|(index, _)| !narrow.contains(&index.as_str()));
    assert_eq!(used, [], "indexes that lead through all of a tenant, or all that a pool has had");
    let undone = "SELECT xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    let undone: i64 = sqlx::query_scalar(undone).fetch_one(&mut observer).await.unwrap();
    let looked_at_a_head = (ROUNDS * POOLS) as i64;
    assert_eq!(undone, looked_at_a_head, "a batch was refused, and then put on record step by step");
}

/// Waits until all connections of the ledger have ended: PostgreSQL counts a connection's reads at its end.
pub(crate) async fn all_counted(observer: &mut Connection) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let others = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'";
    while sqlx::query_scalar::<_, i64>(others).fetch_one(&mut *observer).await.unwrap() > 0 {
        assert!(Instant::now() < deadline, "a connection stays");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    observer.execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
}
