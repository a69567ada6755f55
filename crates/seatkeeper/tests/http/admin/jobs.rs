//! Tests of `/api/v1/admin/jobs`.

use serde_json::{Value, json};

use crate::http::exchange::assert_problem;
use crate::http::shown::shown;
use crate::http::tenant_client::{JOBS, TenantClient};
use crate::http::until::until;

const RUNS: &str = "/api/v1/admin/jobs/session_expiry/runs";

/// Waits until the newest run has the fencing token `newest` and has ended. Returns all runs on record.
async fn ended(api: &TenantClient, newest: u64) -> Vec<Value> {
    until("a run ends", async || {
        let runs = api.admin().get(RUNS).await.expect(200);
        let first = &runs["items"][0];
        if first["fencing_token"].as_u64() == Some(newest) && first["outcome"] != "running" {
            Ok(runs["items"].as_array().unwrap().clone())
        } else {
            Err(runs.to_string())
        }
    })
    .await
}

#[tokio::test]
async fn jobs_are_listed_with_how_they_stand() {
    let api = TenantClient::open_with(&[]);
    ended(&api, 1).await;
    let jobs = api.admin().get(JOBS).await.expect(200);
    let names: Vec<_> = jobs["items"].as_array().unwrap().iter().map(|job| job["job"].clone()).collect();
    assert_eq!(
        names,
        ["housekeeping", "moves", "retention", "session_expiry", "usage_delivery", "usage_emission"]
    );
    assert_eq!(
        shown(&jobs["items"][3]),
        json!({
            "job": "session_expiry", "state": "scheduled", "interval_seconds": 600, "next_run_at": "[time]",
            "retry_at": null, "last_run_at": "[time]", "locked_by": null, "locked_at": null,
            "fencing_token": 1, "failures": 0, "last_error": null,
        })
    );
    for (number, interval) in [(1, 5), (2, 600), (4, 5), (5, 60)] {
        let off = &jobs["items"][number];
        assert_eq!(
            *off,
            json!({
                "job": names[number], "state": "off", "interval_seconds": interval, "next_run_at": null,
                "retry_at": null, "last_run_at": null, "locked_by": null, "locked_at": null,
                "fencing_token": 0, "failures": 0, "last_error": null,
            })
        );
    }
}

#[tokio::test]
async fn a_job_that_is_asked_for_runs_at_once_and_its_grid_stays() {
    let api = TenantClient::open_with(&[]);
    ended(&api, 1).await;
    let next_run = async || api.admin().get(JOBS).await.expect(200)["items"][3]["next_run_at"].clone();
    let before = next_run().await;
    let asked = api.admin().post("/api/v1/admin/jobs/session_expiry/run", json!({})).await;
    assert_eq!(asked.expect(202), json!({ "job": "session_expiry" }));
    let runs = ended(&api, 2).await;
    assert_eq!(next_run().await, before);
    assert_eq!(
        shown(&runs[0]),
        json!({
            "fencing_token": 2, "worker": "[id]", "scheduled_at": "[time]", "started_at": "[time]",
            "finished_at": "[time]", "outcome": "succeeded", "error": null,
        })
    );
}

#[tokio::test]
async fn runs_come_in_pages_the_newest_first() {
    let api = TenantClient::open_with(&[]);
    for run in 1..=3 {
        ended(&api, run).await;
        api.admin().post("/api/v1/admin/jobs/session_expiry/run", json!({})).await.expect(202);
    }
    ended(&api, 4).await;
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for size in [2, 2] {
        let page = api.admin().get(&format!("{RUNS}?limit=2{cursor}")).await.expect(200);
        let items = page["items"].as_array().unwrap();
        assert_eq!(items.len(), size);
        seen.extend(items.iter().map(|run| run["fencing_token"].as_u64().unwrap()));
        cursor = page["next_cursor"].as_str().map(|next| format!("&cursor={next}")).unwrap_or_default();
    }
    assert_eq!((seen, cursor.as_str()), (vec![4, 3, 2, 1], ""));
}

#[tokio::test]
async fn a_job_that_this_server_does_not_run_is_not_found() {
    let api = TenantClient::open();
    for job in ["retention", "nothing", "Housekeeping", "housekeeping%20", "%00", "%FF", "0"] {
        let runs = api.admin().get(&format!("{JOBS}/{job}/runs")).await;
        assert_problem(&runs, 404, job);
        assert_eq!(runs.body["type"], "/problems/job-not-found", "{job}");
        assert_problem(&api.admin().post(&format!("{JOBS}/{job}/run"), json!({})).await, 404, job);
    }
}

#[tokio::test]
async fn history_is_deleted_by_a_job_if_it_is_kept_for_a_time() {
    let api = TenantClient::open_with(&[("LEDGER_RETENTION_DAYS", "1")]);
    let jobs = api.admin().get(JOBS).await.expect(200);
    assert_eq!(jobs["items"][2]["job"], "retention");
    api.admin().post(&format!("{JOBS}/retention/run"), json!({})).await.expect(202);
}

#[tokio::test]
async fn after_a_restart_the_grid_goes_on() {
    let mut api = TenantClient::open_with(&[]);
    ended(&api, 1).await;
    let next_run =
        async |api: &TenantClient| api.admin().get(JOBS).await.expect(200)["items"][3]["next_run_at"].clone();
    let before = next_run(&api).await;
    api.restart();
    assert_eq!(next_run(&api).await, before);
    assert_eq!(ended(&api, 1).await.len(), 1);
}
