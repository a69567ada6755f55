//! Tests of `/api/v1/admin/usage`, and of the deliveries to a sink.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::sink::{Do, Sink, Taken, header};
use crate::http::exchange::{assert_field, assert_problem};
use crate::http::shown::shown;
use crate::http::tenant_client::{
    CAPACITIES, RECONCILIATION, TenantClient, USAGE, USAGE_BATCHES, capacity, text,
};
use crate::http::until::until;

const ALL_TIME: &str = "from=2020-01-01T00:00:00Z&to=2200-01-01T00:00:00Z";

/// Starts a server that sends usage to `sink` every second.
fn api(sink: &Sink, more: &[(&str, &str)]) -> TenantClient {
    let mut settings = vec![("USAGE_SINK_URL", sink.url.as_str()), ("USAGE_EMISSION_INTERVAL_SECONDS", "1")];
    settings.extend(more);
    TenantClient::open_with(&settings)
}

/// Takes a capacity in tier 3 for a new user of the tenant.
async fn held(api: &TenantClient) -> Value {
    let ask = capacity(&api.tenant, Uuid::new_v4(), Uuid::new_v4(), 3);
    api.service("ann").put(CAPACITIES, ask).await.expect(201)
}

/// Waits for the first batch that the sink accepts.
async fn first_taken(sink: &Sink) -> Taken {
    until("the sink takes a batch", async || sink.taken().first().cloned().ok_or("nothing".to_owned())).await
}

/// Waits for a batch of the tenant in a state.
async fn batch(api: &TenantClient, state: &str) -> Value {
    let path = format!("{USAGE_BATCHES}?state={state}");
    until("a batch comes so far", async || {
        let all = api.admin().get(USAGE_BATCHES).await.expect(200);
        let found = api.admin().get(&path).await.expect(200)["items"][0].clone();
        if found.is_null() { Err(all.to_string()) } else { Ok(found) }
    })
    .await
}

/// Waits for the job's first run. With an hourly job, a session that starts later is in a single window.
async fn first_run_is_over(api: &TenantClient) {
    until("the first run of the job is over", async || {
        let runs = api.admin().get("/api/v1/admin/jobs/usage_emission/runs").await.expect(200);
        if runs["items"][0]["finished_at"].is_string() { Ok(()) } else { Err(runs.to_string()) }
    })
    .await;
}

fn send_path(batch: &Value) -> String {
    format!("{USAGE_BATCHES}/{}/send", text(&batch["batch_id"]))
}

#[tokio::test]
async fn a_capacity_that_is_held_is_told_to_the_sink_and_shown_to_its_tenants_admins() {
    let sink = Sink::open(|_| Do::Take(204)).await;
    let api = api(&sink, &[("USAGE_SINK_TOKEN", "open-sesame")]);
    let session = held(&api).await;
    let taken = first_taken(&sink).await;
    assert_eq!(header(&taken.head, "content-type"), "application/json");
    assert_eq!(header(&taken.head, "authorization"), "Bearer open-sesame");
    let record = &taken.records()[0];
    assert_eq!(record.user_object_id, text(&session["userObjectId"]));
    assert_eq!(record.tenant_object_id, api.tenant);
    assert_eq!(record.capacity_id, text(&session["capacityId"]));
    assert_eq!(record.window_start_utc, text(&session["sessionStartUtc"]));
    let time = |text: &str| chrono::DateTime::parse_from_rfc3339(text).expect("a time");
    let window = time(&record.window_end_utc) - time(&record.window_start_utc);
    let exact = window.num_milliseconds() as f64 * 3.0 / 2_592.0;
    assert!((record.micros() as f64 - exact).abs() <= 0.5, "{window}: {record:?}");

    let delivered = batch(&api, "delivered").await;
    assert_eq!(
        shown(&delivered),
        json!({
            "batch_id": "[id]", "window_start": "[time]", "window_end": "[time]", "number": 1, "records": 1,
            "usage": delivered["usage"], "state": "delivered", "attempts": 1, "next_attempt_at": null,
            "last_status": 204, "last_error": null, "delivered_at": "[time]",
        })
    );
    let windows = api.admin().get(USAGE).await.expect(200);
    let oldest = windows["items"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((text(&oldest["window_start"]), &oldest["records"]), (&*record.window_start_utc, &json!(1)));
    assert_eq!(oldest["recorded"].as_f64(), record.usage.get().parse().ok());
    let stranger = api.neighbour();
    for path in [USAGE, USAGE_BATCHES] {
        assert_eq!(stranger.admin().get(path).await.expect(200)["items"], json!([]));
    }
    let upside_down = format!("{USAGE}?from=2030-01-01T00:00:00Z&to=2020-01-01T00:00:00Z");
    assert_field(&api.admin().get(&upside_down).await, "to", &upside_down);
}

#[tokio::test]
async fn what_the_sink_does_not_acknowledge_comes_again_under_the_same_ids() {
    let mut replies = [Do::Refuse(500), Do::Drop, Do::TakeAndDrop, Do::TakeAndHang].into_iter();
    let sink = Sink::open(move |_| replies.next().unwrap_or(Do::Take(409))).await;
    let api = api(&sink, &[("USAGE_SINK_TIMEOUT_SECONDS", "1")]);
    held(&api).await;
    let first = first_taken(&sink).await;
    until("all is delivered", async || {
        let pending = api.admin().get(&format!("{USAGE_BATCHES}?state=pending")).await.expect(200);
        let (keys, taken) = (sink.taken(), sink.taken().len());
        let again = keys.iter().filter(|taken| taken.key == first.key).count();
        if again >= 2 { Ok(()) } else { Err(format!("{taken} taken, {pending}")) }
    })
    .await;
    let same: HashSet<_> =
        sink.taken().into_iter().filter(|taken| taken.key == first.key).map(|taken| taken.body).collect();
    assert_eq!(same.len(), 1, "{same:?}");
}

#[tokio::test]
async fn what_the_sink_refuses_for_good_waits_until_its_tenants_admin_sends_it_again() {
    let sink = Sink::open(|_| Do::Refuse(422)).await;
    let api = api(&sink, &[]);
    held(&api).await;
    let dead = batch(&api, "dead").await;
    assert_eq!((&dead["last_status"], &dead["last_error"]), (&json!(422), &json!("it is 422")));
    let books = api.admin().get(&format!("{RECONCILIATION}?{ALL_TIME}")).await.expect(200);
    assert_eq!((&books["agrees"], &books["delivered"]), (&json!(false), &json!(0.0)));

    let stranger = api.neighbour();
    assert_problem(&stranger.admin().post(&send_path(&dead), json!({})).await, 404, "a stranger");
    assert_eq!(batch(&api, "dead").await["batch_id"], dead["batch_id"]);
    assert!(sink.taken().is_empty());
    sink.follow(|_| Do::Take(200));
    let sent = api.admin().post(&send_path(&dead), json!({})).await.expect(200);
    assert_eq!((&sent["state"], &sent["attempts"]), (&json!("pending"), &json!(0)));
    let key = text(&dead["batch_id"]).to_owned();
    until("the sink has it", async || {
        let taken: Vec<_> = sink.taken().into_iter().map(|taken| taken.key).collect();
        if taken.contains(&key) { Ok(()) } else { Err(format!("{taken:?}")) }
    })
    .await;
    until("it is noted", async || {
        let again = api.admin().post(&send_path(&dead), json!({})).await;
        assert_problem(&again, 409, "pending or delivered");
        let delivered = api.admin().get(&format!("{USAGE_BATCHES}?state=delivered")).await.expect(200);
        let ids: Vec<_> =
            delivered["items"].as_array().unwrap().iter().map(|b| b["batch_id"].clone()).collect();
        if ids.contains(&json!(key)) { Ok(()) } else { Err(format!("{ids:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_batch_that_is_too_large_for_the_sink_comes_in_parts() {
    comes_in_parts(413).await;
}

#[tokio::test]
async fn a_batch_that_the_sink_finds_invalid_comes_in_parts() {
    comes_in_parts(400).await;
}

/// Holds three capacities in one batch, and waits until a sink that answers `status` to more than one record has all.
async fn comes_in_parts(status: u16) {
    let sink = Sink::open(move |_| Do::TakeSingle(status)).await;
    let api = api(&sink, &[("USAGE_EMISSION_INTERVAL_SECONDS", "3600")]);
    first_run_is_over(&api).await;
    let mut users = HashSet::new();
    for _ in 0..3 {
        users.insert(text(&held(&api).await["userObjectId"]).to_owned());
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    api.admin().post("/api/v1/admin/jobs/usage_emission/run", json!({})).await.expect(202);
    until("the sink has every record", async || {
        let taken = sink.taken();
        let told: HashSet<_> = taken.iter().map(|taken| taken.records()[0].user_object_id.clone()).collect();
        if told == users { Ok(()) } else { Err(format!("{} of 3 records", told.len())) }
    })
    .await;
    let keys: HashSet<_> = sink.taken().into_iter().map(|taken| taken.key).collect();
    // More at midnight, which divides the window.
    assert!(keys.len() >= 3, "a key for each part");
}

#[tokio::test]
async fn cloud_events_come_in_batches() {
    let sink = Sink::open(|_| Do::Take(200)).await;
    let settings = [("USAGE_SINK_FORMAT", "cloudevents"), ("USAGE_EVENT_SOURCE", "urn:seats:1")];
    let api = api(&sink, &settings);
    let session = held(&api).await;
    let taken = first_taken(&sink).await;
    assert_eq!(header(&taken.head, "content-type"), "application/cloudevents-batch+json");
    let events: Value = serde_json::from_str(&taken.body).unwrap();
    let event = &events[0];
    assert_eq!(event["id"], event["data"]["recordId"]);
    assert_eq!(event["subject"], session["sessionId"]);
    assert_eq!(event["time"], event["data"]["windowEndUtc"]);
    assert_eq!(event["data"]["capacityId"], session["capacityId"]);
    let (version, kind) = (&event["specversion"], &event["type"]);
    assert_eq!((version, kind), (&json!("1.0"), &json!("seatkeeper.capacity.usage")));
    assert_eq!(
        (&event["source"], &event["datacontenttype"]),
        (&json!("urn:seats:1"), &json!("application/json"))
    );
}

#[tokio::test]
async fn the_command_shows_usage_sends_again_and_reconciles() {
    let sink = Sink::open(|_| Do::Refuse(410)).await;
    let api = api(&sink, &[("USAGE_EMISSION_INTERVAL_SECONDS", "3600")]);
    first_run_is_over(&api).await;
    held(&api).await;
    let tenant = api.tenant.clone();
    let command = |args: &[&str]| api.harness.command(&[args, &["--tenant", &tenant]].concat());
    // The next emission finds some usage by the session.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let asked = Instant::now();
    api.admin().post("/api/v1/admin/jobs/usage_emission/run", json!({})).await.expect(202);
    let dead = batch(&api, "dead").await;
    let again = api.admin().post("/api/v1/admin/jobs/usage_emission/run", json!({})).await;
    // A machine that is busy with other tests may be too late to ask too soon.
    if asked.elapsed() < Duration::from_secs(8) {
        assert_problem(&again, 429, "an emission right after the last");
        assert!((1..=10).contains(&again.body["retry_after_seconds"].as_u64().unwrap()), "{}", again.body);
    }
    let shown = command(&["usage", "batches", "--state", "dead"]).stdout;
    assert!(shown.contains(text(&dead["batch_id"])) && shown.contains("410"), "{shown}");

    let span = ["--from", "2020-01-01T00:00:00Z", "--to", "2200-01-01T00:00:00Z"];
    let reconcile = [&["usage", "reconcile"][..], &span].concat();
    let differs = command(&reconcile);
    assert_eq!(differs.status.code(), Some(1), "{}{}", differs.stdout, differs.stderr);
    assert!(differs.stdout.contains("THEY DO NOT AGREE"), "{}", differs.stdout);

    sink.follow(|_| Do::Take(200));
    let sent = command(&["usage", "send", text(&dead["batch_id"])]);
    assert_eq!((sent.stdout.trim(), sent.status.code()), ("on its way", Some(0)), "{}", sent.stderr);
    batch(&api, "delivered").await;
    let none = command(&["usage", "send", "--all-dead"]);
    assert_eq!((none.stdout.trim(), none.status.code()), ("on their way: 0", Some(0)), "{}", none.stderr);
    let listed = command(&["usage", "list"]);
    assert!(listed.stdout.contains("DELIVERED"), "{}{}", listed.stdout, listed.stderr);
    let agrees = command(&reconcile);
    assert_eq!(agrees.status.code(), Some(0), "{}{}", agrees.stdout, agrees.stderr);
    assert!(agrees.stdout.contains("They agree"), "{}", agrees.stdout);
    let json = command(&[&reconcile[..], &["--json"]].concat());
    let books: Value = serde_json::from_str(&json.stdout).unwrap();
    // One window, or two at midnight.
    assert!(books["agrees"] == true && books["windows"].as_u64() >= Some(1), "{books}");
    assert_eq!((&books["held"], &books["first_difference"]), (&books["delivered"], &Value::Null));
}

#[tokio::test]
async fn the_command_sends_all_dead_batches_of_its_tenant_again() {
    let sink = Sink::open(|_| Do::Refuse(400)).await;
    let api = api(&sink, &[]);
    held(&api).await;
    // Each window of a second has a batch of its own.
    let dead = until("two batches are dead", async || {
        let listed = api.admin().get(&format!("{USAGE_BATCHES}?state=dead")).await.expect(200);
        let dead = listed["items"].as_array().unwrap().clone();
        if dead.len() >= 2 { Ok(dead) } else { Err(listed.to_string()) }
    })
    .await;
    let stranger = api.neighbour();
    let sent = stranger.admin().post(&format!("{USAGE_BATCHES}/send"), json!({})).await.expect(200);
    assert_eq!(sent, json!({ "sent": 0 }));
    assert!(sink.taken().is_empty());

    sink.follow(|_| Do::Take(200));
    let command = |args: &[&str]| api.harness.command(&[args, &["--tenant", &api.tenant]].concat());
    let sent = command(&["usage", "send", "--all-dead", "--json"]);
    let answer: Value = serde_json::from_str(&sent.stdout).expect(&sent.stderr);
    assert!(answer["sent"].as_u64() >= Some(2), "{answer}");
    until("the sink has the batches", async || {
        let taken: HashSet<_> = sink.taken().into_iter().map(|taken| taken.key).collect();
        let missing = dead.iter().filter(|batch| !taken.contains(text(&batch["batch_id"]))).count();
        if missing == 0 { Ok(()) } else { Err(format!("{missing} are missing")) }
    })
    .await;
    let both = command(&["usage", "send", "--all-dead", text(&dead[0]["batch_id"])]);
    assert_eq!(both.status.code(), Some(2), "{}", both.stderr);
    assert_eq!(command(&["usage", "send"]).status.code(), Some(2), "which batch?");
}

#[tokio::test]
async fn without_a_sink_there_is_nothing_and_all_of_it_agrees() {
    let api = TenantClient::open();
    held(&api).await;
    assert_eq!(api.admin().get(USAGE).await.expect(200)["items"], json!([]));
    let books = api.admin().get(&format!("{RECONCILIATION}?{ALL_TIME}")).await.expect(200);
    assert_eq!(
        books,
        json!({
            "from": null, "to": null, "windows": 0, "held": 0.0, "recorded": 0.0, "delivered": 0.0,
            "pending": 0.0, "dead": 0.0, "agrees": true, "first_difference": null,
        })
    );
}

#[tokio::test]
async fn one_reconciliation_at_a_time_is_answered() {
    let api = TenantClient::open_with(&[]);
    let path = format!("{RECONCILIATION}?{ALL_TIME}");
    until("one of many at once is told to come again", async || {
        let ask = || async { api.admin().get(&path).await };
        let answers = futures_util::future::join_all((0..16).map(|_| ask())).await;
        let (done, busy): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.status == 200);
        for answer in &busy {
            assert_problem(answer, 503, "another is under way");
            assert_eq!(answer.body["retry_after_seconds"], json!(1));
        }
        assert!(!done.is_empty(), "nobody had an answer");
        if busy.is_empty() { Err("all were answered".to_owned()) } else { Ok(()) }
    })
    .await;
    api.admin().get(&path).await.expect(200);
}
