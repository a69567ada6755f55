//! SQLite's tables are strict, and statements use their indexes.

use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::place::Connection;
use crate::story::ledger;

/// Returns the steps of SQLite's plan of a statement.
async fn plan_of(file: &mut Connection, statement: &str) -> Vec<String> {
    let plan = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
    let steps = sqlx::query(plan).fetch_all(file).await.unwrap();
    steps.iter().map(|step| step.get("detail")).collect()
}

/// Asserts that a plan searches each index.
fn searches_each<'s>(name: &str, steps: &[String], searches: impl Iterator<Item = &'s &'s str>) {
    for search in searches {
        let found = steps.iter().any(|step| step.starts_with("SEARCH") && step.contains(search));
        assert!(found, "{name} does not search {search}: {steps:#?}");
    }
}

#[tokio::test]
async fn every_table_is_strict() {
    let (place, _ledger) = ledger().await;
    let loose = "SELECT name FROM pragma_table_list
                 WHERE type = 'table' AND strict = 0 AND name NOT LIKE 'sqlite_%' AND name NOT LIKE '_sqlx_%'";
    let rows = place.connect().await.fetch_all(loose).await.unwrap();
    assert_eq!(rows.len(), 0, "{:?}", rows[0].get::<String, _>(0));
}

#[tokio::test]
async fn no_statement_of_a_request_walks_a_whole_table() {
    let (place, _ledger) = ledger().await;
    let mut file = place.connect().await;
    let flush = include_str!("../../sql/flush_heartbeats.sql");
    let flush = flush.replace("/* rows */", &["(?, ?, ?)"; 1_024].join(", "));
    for (name, statement) in [
        ("flush_heartbeats", flush.as_str()),
        ("find_session", include_str!("../../sql/find_session.sql")),
        ("session_moved_to", include_str!("../../sql/session_moved_to.sql")),
        ("live_sessions_of", include_str!("../../sql/live_sessions_of.sql")),
        ("admission_after_end", include_str!("../../sql/admission_after_end.sql")),
        ("arriving_sessions", include_str!("../../sql/arriving_sessions.sql")),
        ("license", include_str!("../../sql/license.sql")),
        ("license_by_key", include_str!("../../sql/license_by_key.sql")),
        ("plan", include_str!("../../sql/plan.sql")),
        ("subscription", include_str!("../../sql/subscription.sql")),
        ("newest_subscription", include_str!("../../sql/newest_subscription.sql")),
        ("subscriber", include_str!("../../sql/subscriber.sql")),
        ("next_entitlement_version", include_str!("../../sql/next_entitlement_version.sql")),
        ("next_record_seq", include_str!("../../sql/next_record_seq.sql")),
        ("idempotent_answer", include_str!("../../sql/idempotent_answer.sql")),
        ("plan_records", include_str!("../../sql/plan_records.sql")),
        ("pool_seq", include_str!("../../sql/pool_seq.sql")),
        ("recorded_event", include_str!("../../sql/recorded_event.sql")),
        ("end_sessions", include_str!("../../sql/end_sessions.sql")),
        ("begin_sessions", include_str!("../../sql/begin_sessions.sql")),
        ("cut_pool", include_str!("../../sql/cut_pool.sql")),
        ("purge_candidates", include_str!("../../sql/purge_candidates.sql")),
        ("purge_alone", include_str!("../../sql/purge_alone.sql")),
        ("purge_sessions", include_str!("../../sql/purge_sessions.sql")),
        ("purge_records", include_str!("../../sql/purge_records.sql")),
        ("purge_idempotency_keys", include_str!("../../sql/purge_idempotency_keys.sql")),
        ("metered_sessions", include_str!("../../sql/metered_sessions.sql")),
        ("metered_sessions_of_tenant", include_str!("../../sql/metered_sessions_of_tenant.sql")),
        ("next_metered", include_str!("../../sql/next_metered.sql")),
        ("usage_starts_at", include_str!("../../sql/usage_starts_at.sql")),
        ("metered_until", include_str!("../../sql/metered_until.sql")),
        ("staged_batches", include_str!("../../sql/staged_batches.sql")),
        ("commit_window", include_str!("../../sql/commit_window.sql")),
        ("due_batches", include_str!("../../sql/due_batches.sql")),
        ("latest_due_batch", include_str!("../../sql/latest_due_batch.sql")),
        ("recall_batches", include_str!("../../sql/recall_batches.sql")),
        ("dead_batches", include_str!("../../sql/dead_batches.sql")),
        ("batch_to_split", include_str!("../../sql/batch_to_split.sql")),
        ("send_dead_batches_again", include_str!("../../sql/send_dead_batches_again.sql")),
        ("window_books", include_str!("../../sql/window_books.sql")),
        ("tenant_windows", include_str!("../../sql/tenant_windows.sql")),
        ("purge_batches", include_str!("../../sql/purge_batches.sql")),
        ("purge_windows", include_str!("../../sql/purge_windows.sql")),
        ("next_pool", include_str!("../../sql/next_pool.sql")),
        ("pool_records", include_str!("../../sql/pool_records.sql")),
        ("pool_sessions", include_str!("../../sql/pool_sessions.sql")),
        ("job_due", include_str!("../../sql/job_due.sql")),
        ("take_job", include_str!("../../sql/take_job.sql")),
        ("hold_job", include_str!("../../sql/hold_job.sql")),
        ("lose_job_run", include_str!("../../sql/lose_job_run.sql")),
        ("job_runs", include_str!("../../sql/job_runs.sql")),
        ("home", include_str!("../../sql/home.sql")),
        ("homes_here_after", include_str!("../../sql/homes_here_after.sql")),
        ("anchor", include_str!("../../sql/anchor.sql")),
        ("next_known_tenant", include_str!("../../sql/next_known_tenant.sql")),
        ("known_subscribers_page", include_str!("../../sql/known_subscribers_page.sql")),
        ("claim_homes_page", include_str!("../../sql/claim_homes_page.sql")),
        ("lost_homes_page", include_str!("../../sql/lost_homes_page.sql")),
        ("note_homes_adopted", include_str!("../../sql/note_homes_adopted.sql")),
        ("adopt_homes", include_str!("../../sql/adopt_homes.sql")),
        ("retarget_homes_moving", include_str!("../../sql/retarget_homes_moving.sql")),
    ] {
        for step in plan_of(&mut file, statement).await {
            let scanned = step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
            let tables = [
                "audit_cuts",
                "audit_log",
                "homes",
                "sessions",
                "live_sessions",
                "licenses",
                "idempotency_keys",
                "jobs",
                "job_runs",
                "tenants",
                "plans",
                "subscriptions",
                "usage_windows",
                "usage_outbox",
                "usage_payloads",
                "a",
                "k",
                "e",
                "s",
                "l",
                "w",
                "o",
            ];
            // Partial indexes with metered sessions or dead batches only.
            let is_part =
                [" INDEX sessions_metered_live", " INDEX audit_log_metered_ends", " INDEX usage_outbox_dead"]
                    .iter()
                    .any(|index| step.contains(index));
            assert!(is_part || scanned.is_none_or(|table| !tables.contains(&table)), "{name}: {step}");
        }
    }
}

#[tokio::test]
async fn retention_and_the_latest_time_read_each_stream_by_an_index_of_its_own() {
    let (place, _ledger) = ledger().await;
    let mut file = place.connect().await;
    for (name, statement, searches) in [
        (
            "purge_alone",
            include_str!("../../sql/purge_alone.sql"),
            &["audit_log_of_nodes_by_time (at<?)"][..],
        ),
        (
            "purge_candidates",
            include_str!("../../sql/purge_candidates.sql"),
            &["audit_log_of_sessions_by_time (at<?)"],
        ),
        ("newest_event", include_str!("../../sql/newest_event.sql"), &["audit_log_of_sessions_by_time"]),
        (
            "last_record_time",
            include_str!("../../sql/last_record_time.sql"),
            &["audit_log_of_sessions_by_time", "audit_log_of_entitlements", "audit_log_of_plans_by_time"],
        ),
    ] {
        let steps = plan_of(&mut file, statement).await;
        searches_each(name, &steps, searches.iter());
        assert!(!steps.iter().any(|step| step.contains("FOR ORDER BY")), "{name} sorts: {steps:#?}");
    }
}

#[tokio::test]
async fn what_is_asked_about_usage_reads_no_more_than_it_needs() {
    let (place, _ledger) = ledger().await;
    let mut file = place.connect().await;
    for (name, statement, searches) in [
        (
            "metered_sessions_of_tenant",
            include_str!("../../sql/metered_sessions_of_tenant.sql"),
            ["sessions_metered_live (tenant_id", "audit_log_metered_ends (at>"],
        ),
        (
            "tenant_windows",
            include_str!("../../sql/tenant_windows.sql"),
            ["usage_outbox_by_tenant (tenant_id=? AND window_starts_at", "usage_windows_1 (starts_at="],
        ),
        (
            "window_books",
            include_str!("../../sql/window_books.sql"),
            ["usage_windows_1 (starts_at>? AND starts_at<?)", "usage_outbox_by_tenant (tenant_id="],
        ),
    ] {
        let steps = plan_of(&mut file, statement).await;
        searches_each(name, &steps, searches.iter());
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{name} sorts: {steps:#?}");
    }
}
