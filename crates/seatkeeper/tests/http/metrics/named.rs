//! The served metrics are the promised metrics, and `docs/metrics.md` describes each of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::TOKEN;
use crate::TOPOLOGY;
use crate::harness::{Scrape, Topology};
use crate::http::tenant_client::TenantClient;
use crate::http::until::until;

/// The names and labels that other programs rely on.
const PROMISED: &[(&str, &[&str])] = &[
    ("license_seats_used", &["license_id"]),
    ("license_seats_total", &["license_id"]),
    ("license_acquire_requests_total", &[]),
    ("license_acquire_failures_total", &["reason"]),
    ("license_sessions_expired_total", &["reason"]),
    ("session_heartbeat_latency_seconds", &[]),
    ("session_admission_latency_seconds", &["pool_kind", "decision"]),
    ("sessions_active", &["pool_kind"]),
    ("sessions_created_total", &["pool_kind"]),
    ("sessions_upgraded_total", &[]),
    ("cleanup_queue_size", &[]),
    ("cleanup_latency_seconds", &[]),
    ("journal_depth", &[]),
    ("journal_lag_seconds", &[]),
    ("job_duration_seconds", &["job"]),
    ("job_runs_total", &["job", "outcome"]),
    ("job_stale_locks_reclaimed_total", &[]),
    ("usage_emissions_total", &["outcome"]),
    ("usage_outbox_depth", &[]),
    ("usage_batches_dead", &[]),
    ("homes_moving", &[]),
    ("lock_contention_total", &[]),
    ("registry_mode", &["pool_kind"]),
    ("redis_ops_per_sec", &[]),
    ("redis_memory_used_bytes", &[]),
    ("redis_connected_clients", &[]),
    ("redis_evicted_keys", &[]),
    ("redis_slowlog_entries_total", &[]),
    ("http_requests_total", &["method", "route", "status"]),
    ("http_request_duration_seconds", &["method", "route"]),
];

/// Metrics that exist only if Redis has a memory limit. The tests' Redis has no limit.
const WITH_A_LIMIT: [&str; 2] = ["redis_memory_max_bytes", "redis_memory_used_ratio"];

type Described = BTreeMap<String, (String, BTreeSet<String>)>;

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns the type and the labels of each metric in `docs/metrics.md`.
fn described() -> Described {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let page = std::fs::read_to_string(path).unwrap();
    let lines = page.lines().filter(|line| line.starts_with("| `"));
    let described = lines.map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let mut cell = || cells.next().unwrap_or_default();
        let (name, kind, labels) = (cell().trim_matches('`').to_owned(), cell().to_owned(), cell());
        let labels = labels.split('`').skip(1).step_by(2).map(str::to_owned);
        (name, (kind, labels.collect()))
    });
    described.collect()
}

#[test]
fn the_page_about_metrics_has_all_that_are_promised() {
    let described = described();
    for (name, labels) in PROMISED {
        assert_eq!(described.get(*name).map(|(_, labels)| labels), Some(&set(labels)), "{name}");
    }
}

/// Asserts that the served metrics are the documented metrics, after at least one event for each metric.
pub(super) async fn are_those_of_the_page(api: &TenantClient) {
    let mut expected = described();
    if TOPOLOGY == Topology::Embedded {
        expected.retain(|name, _| !name.starts_with("redis_"));
    }
    WITH_A_LIMIT.iter().for_each(|name| drop(expected.remove(*name)));
    until("every metric is served", async || {
        let scrape = Scrape::with_token(api.harness.doors().all(), TOKEN).await;
        let served: Described = scrape
            .types
            .iter()
            .map(|(name, kind)| (name.clone(), (kind.clone(), scrape.labels(name))))
            .collect();
        let other = expected.iter().find(|(name, told)| served.get(*name) != Some(told));
        let unknown = served.iter().find(|(name, _)| !expected.contains_key(*name));
        match (other, unknown) {
            (None, None) => Ok(()),
            (other, unknown) => {
                let seen = other.and_then(|(name, _)| served.get(name));
                Err(format!("expected {other:?} and there is {seen:?}; nobody expected {unknown:?}"))
            }
        }
    })
    .await;
}
