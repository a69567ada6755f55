//! The rules by which somebody is called.

use std::process::Command;

use super::metrics::must_be_there;
use crate::{path, read};

const RULES: &str = "deploy/prometheus/seatkeeper.rules.yml";
const CASES: &str = "deploy/prometheus/seatkeeper.rules.test.yml";

/// The values of this key, in the order of the file.
fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let values = text.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix(key));
    values.map(|value| value.trim().trim_matches('\'')).collect()
}

fn promtool(args: &[&str]) -> String {
    let output = Command::new("promtool")
        .args(args)
        .current_dir(path("deploy/prometheus"))
        .output()
        .expect("promtool; Debian has it in the package prometheus");
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    told
}

#[test]
fn every_rule_fires_when_it_should_and_not_otherwise() {
    let told = promtool(&["check", "rules", "seatkeeper.rules.yml"]);
    let alerts = values(&read(RULES), "alert: ").len();
    assert!(told.contains(&format!("{alerts} rules found")), "{told}");
    promtool(&["test", "rules", "seatkeeper.rules.test.yml"]);
}

#[test]
fn every_rule_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() {
    let (rules, cases) = (read(RULES), read(CASES));
    let of = |alert: &str| {
        cases
            .split("- name: ")
            .filter(|case| case.contains(&format!("alertname: {alert}\n")))
            .collect::<Vec<_>>()
    };
    for alert in values(&rules, "alert: ") {
        let silent = of(alert).iter().filter(|case| case.contains("exp_alerts: []")).count();
        assert!(silent > 0 && of(alert).len() > silent, "{alert}");
    }
}

#[test]
fn rules_look_at_metrics_that_there_are() {
    values(&read(RULES), "expr: ").into_iter().for_each(must_be_there);
}

#[test]
fn the_page_about_alerts_says_of_each_what_to_do() {
    let (rules, page) = (read(RULES), read("docs/alerts.md"));
    let (alerts, runbooks) = (values(&rules, "alert: "), values(&rules, "runbook: "));
    let described: Vec<_> = values(&page, "### ");
    assert_eq!(described, alerts);
    assert_eq!(page.matches("**Do:**").count(), alerts.len());
    let anchors: Vec<_> =
        alerts.iter().map(|alert| format!("docs/alerts.md#{}", alert.to_lowercase())).collect();
    assert_eq!(runbooks, anchors);
}
