//! Methods that a path does not allow.

use std::collections::BTreeSet;

use reqwest::Method;

use super::Siege;
use crate::http::exchange::{assert_problem, exchange};

const ALL: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"];

#[tokio::test]
async fn a_method_that_an_address_does_not_take_is_405_and_told_which_are() {
    let siege = Siege::begin().await;
    let description = siege.api.user("ann").get("/openapi.json").await.expect(200);
    for (path, item) in description["paths"].as_object().unwrap() {
        let mut taken: BTreeSet<_> =
            item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if taken.contains("GET") {
            taken.insert("HEAD".into());
        }
        let id = "0193d2f4-0007-8000-8abc-0123456789ab";
        let address = ["{session_id}", "{license_id}", "{subscription_id}", "{batch_id}"]
            .iter()
            .fold(path.replace("{job}", "retention"), |path, name| path.replace(name, id));
        let others = ALL.iter().copied().chain(["BREW"]).filter(|method| !taken.contains(*method));
        for method in others {
            let what = format!("{method} {path}");
            let request = siege.api.request(method.parse::<Method>().unwrap(), &address);
            let answer = exchange(request).await;
            assert_eq!(allowed(&answer.headers, &what), taken, "{what}");
            if method == "HEAD" {
                assert_eq!(answer.status, 405, "{what}");
            } else {
                assert_problem(&answer, 405, &what);
            }
        }
    }
    siege.withstood().await;
}

#[tokio::test]
async fn pages_are_only_read() {
    let siege = Siege::begin().await;
    for page in ["/openapi.json", "/docs", "/docs/", "/problems/internal"] {
        for method in [Method::POST, Method::PUT, Method::DELETE] {
            let answer = exchange(siege.api.request(method.clone(), page)).await;
            assert_problem(&answer, 405, &format!("{method} {page}"));
        }
    }
    siege.withstood().await;
}

#[track_caller]
fn allowed(headers: &reqwest::header::HeaderMap, what: &str) -> BTreeSet<String> {
    let allow = headers.get("allow").unwrap_or_else(|| panic!("{what}: no Allow"));
    allow.to_str().unwrap().split(',').map(|method| method.trim().to_owned()).collect()
}
