//! Tests of the alerts: each test brings about an alert's condition, and a real Prometheus must fire the
//! alert. A new alert needs a test and an entry in `ALERTS` of a submodule.

mod cleanup;
mod clients;
mod clocks;
mod jobs;
mod moves;
mod outages;
mod redis;
mod regions;
mod usage;

use std::collections::BTreeSet;

use super::prometheus::RULES;
use crate::read;

/// The alerts with a test. Tests that take minutes are ignored by default.
const BROUGHT_ABOUT: [&[&str]; 14] = [
    &clients::ALERTS,
    &clocks::ALERTS,
    &cleanup::ALERTS,
    &cleanup::SLOW_ALERTS,
    &cleanup::ALERTS_WITHOUT_SWEEPER,
    &jobs::ALERTS,
    &jobs::SLOW_ALERTS,
    &redis::ALERTS,
    &moves::ALERTS,
    &regions::ALERTS,
    &outages::ALERTS,
    &outages::ALERTS_OF_NODE,
    &usage::ALERTS,
    &usage::ALERTS_OF_EMISSION,
];

async fn nothing() {}

#[test]
fn each_alert_of_the_rules_is_brought_about() {
    let rules = read(RULES);
    let alerts: BTreeSet<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    let brought_about: BTreeSet<_> = BROUGHT_ABOUT.concat().into_iter().collect();
    assert_eq!(brought_about, alerts);
}
