//! Invalid states refused by the tables themselves.

use sqlx::{AssertSqlSafe, Executor as _};

use crate::place::ANY_UUID;
use crate::story::{Story, ledger, subscribed};

#[tokio::test]
async fn the_tables_refuse_what_must_never_be() {
    let (place, ledger) = ledger().await;
    subscribed(&ledger, "ann", "basic").await;
    let mut story = Story::devices("ann");
    ledger.apply(&[story.admit("tv").1, story.admit("phone").1]).await.unwrap();
    let mut connection = place.connect().await;
    for statement in [
        "UPDATE audit_log SET live = 0",
        "UPDATE sessions SET holder = 'tv'",
        "INSERT INTO sessions SELECT ANY_UUID, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at,
             last_heartbeat_at, ttl_ms, expires_at, ended_at, end_reason, ip, user_agent, metadata, device_type,
             device_name FROM sessions WHERE holder = 'tv'",
        "UPDATE sessions SET ended_at = started_at",
        "UPDATE sessions SET end_reason = 'bored'",
        "UPDATE plans SET device_limit = -1",
        "UPDATE plans SET when_full = 'sometimes'",
        "UPDATE subscriptions SET ends_at = starts_at",
        "INSERT INTO subscriptions SELECT ANY_UUID, tenant_id, user_id, plan, status, starts_at, ends_at,
             version, created_at, updated_at FROM subscriptions",
        "INSERT INTO buckets (id, epoch, mode) VALUES (256, 0, 'registry')",
        "UPDATE buckets SET unreplayed_epoch = epoch, unreplayed_mode = mode",
        "UPDATE buckets SET unreplayed_epoch = 0",
        "UPDATE buckets SET lower_mode = 'deny'",
        "INSERT INTO job_runs (job, fencing_token, worker, scheduled_at, started_at, outcome)
         VALUES ('retention', 1, 'a', '2026-01-01', '2026-01-01', 'running')",
    ] {
        let statement = statement.replace("ANY_UUID", ANY_UUID);
        let refused = connection.execute(AssertSqlSafe(statement.clone())).await;
        assert!(refused.is_err(), "{statement}");
    }
}
