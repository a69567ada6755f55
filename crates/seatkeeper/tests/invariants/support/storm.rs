//! A storm of clients against a real server.

use std::collections::BTreeMap;

use seatkeeper_load::Target;
use seatkeeper_testbed::storm::{Storm, Verdict};

use crate::TOPOLOGY;
use crate::harness::Harness;

/// Returns every node as a target, with the token of `user`; or without a token, if each request brings one.
pub(crate) fn nodes(harness: &Harness, user: Option<&str>) -> Vec<Target> {
    let token = user.map(|user| harness.token(user));
    let urls = harness.doors().all().iter();
    urls.map(|url| Target::new(url, token.as_deref()).expect("a target")).collect()
}

/// Runs a storm, and fails the test with the first broken promises that its clients saw.
pub(crate) async fn raging(storm: Storm) -> Verdict {
    let progress = |over: u32| {
        if over.is_multiple_of(1_000) {
            println!("{over} rounds are over");
        }
    };
    let verdict = storm.run(progress).await.expect("a storm");
    println!("{:?}", verdict.statistics);
    let told: Vec<_> = verdict.violations.first().iter().map(ToString::to_string).collect();
    assert_eq!(verdict.violations.count(), 0, "{told:#?}");
    verdict
}

/// Returns true if no error occurred but 503 in a topology of several nodes. A 503 says that a node cannot
/// decide for a while, and that nothing is lost.
pub(crate) fn no_other_errors(errors: &BTreeMap<String, u64>) -> bool {
    errors.keys().all(|error| TOPOLOGY.nodes() > 1 && error == "503")
}
