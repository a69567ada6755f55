//! Each alert's condition is brought about for real, and Prometheus is seen to fire it.

mod cleanup;
mod clients;
mod clocks;
mod jobs;
mod outages;
mod redis;
mod usage;

use std::collections::BTreeSet;

use super::prometheus::RULES;
use crate::read;

/// Alerts that a test brings about. Those that take minutes are not among all tests.
const BROUGHT_ABOUT: [&[&str]; 11] = [
    &clients::ALERTS,
    &clocks::ALERTS,
    &cleanup::ALERTS,
    &cleanup::SLOW_ALERTS,
    &cleanup::ALERTS_WITHOUT_SWEEPER,
    &jobs::ALERTS,
    &jobs::SLOW_ALERTS,
    &redis::ALERTS,
    &outages::ALERTS,
    &outages::ALERTS_OF_NODE,
    &usage::ALERTS,
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
