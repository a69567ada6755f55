//! Each request has one id: in the response, in the log and in the audit record. For traces, see `traces`.

use serde_json::{Value, json};

use crate::harness::{Answer, Harness};
use crate::http::until::until;

/// Claims two seats of a license that has one. Returns both answers, and the request ids from the audit log,
/// oldest first.
pub(super) async fn asked_for(harness: &Harness) -> ([Answer; 2], Vec<Value>) {
    let license = harness.license(1).await;
    let ann = harness.client("ann");
    let admitted = ann.acquire(&license["license_key"], "m1").await;
    let denied = ann.acquire(&license["license_key"], "m2").await;
    let ids = until("the denial, which nobody waited for, is on record", async || {
        let log = harness.admin().get("/api/v1/admin/audit").await.expect(200);
        let records = log["items"].as_array().expect("records").iter().rev();
        let ids: Vec<_> = records.skip(1).map(|record| record["request_id"].clone()).collect();
        if ids.len() == 2 { Ok(ids) } else { Err(log.to_string()) }
    });
    ([admitted, denied], ids.await)
}

pub(super) fn id_of(answer: &Answer) -> &str {
    answer.headers["x-request-id"].to_str().expect("text")
}

#[tokio::test]
async fn an_id_is_in_the_answer_in_the_record_and_in_every_line_of_the_log() {
    let mut harness = Harness::open_with(&[("LOG_LEVEL", "info,seatkeeper_server=debug")]);
    let (answers, recorded) = asked_for(&harness).await;
    assert_eq!(recorded, answers.each_ref().map(|answer| json!(id_of(answer))));
    let (_, log) = harness.stop();
    for answer in &answers {
        let lines = log.lines().filter(|line| line.contains(id_of(answer)));
        let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let answered = lines.iter().find(|line| line["message"] == "a request was answered").expect("a line");
        assert_eq!(answered["status"], answer.status);
        for line in &lines {
            assert_eq!(line["span"]["request.id"], id_of(answer), "{line}");
            assert_eq!(line["span"]["route"], "/api/v1/licenses/acquire", "{line}");
        }
    }
    let of_requests = log.lines().filter(|line| line.contains("a request was"));
    assert!(of_requests.clone().count() > 3);
    assert!(of_requests.clone().all(|line| line.contains("\"request.id\"")), "{log}");
}

#[tokio::test]
async fn at_the_usual_level_a_request_that_goes_well_leaves_no_line() {
    let mut harness = Harness::open();
    asked_for(&harness).await;
    let (_, log) = harness.stop();
    assert!(!log.contains("a request was"), "{log}");
}
