//! Tests of the alert rules with `promtool`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::metrics::must_be_there;
use super::prometheus::RULES;
use crate::{path, read};

const CASES: &str = "deploy/prometheus/seatkeeper.rules.test.yml";

/// Returns the values of a key, in the order of the file.
fn values<'t>(text: &'t str, key: &str) -> Vec<&'t str> {
    let values = text.lines().filter_map(|line| line.trim_start().trim_start_matches("- ").strip_prefix(key));
    values.map(|value| value.trim().trim_matches('\'')).collect()
}

/// Factors on a bound. The test cases must notice either deviation.
const OFF: [f64; 2] = [0.8, 1.2];

/// Runs `promtool`, and returns its output: `Ok` if the exit status is 0, `Err` otherwise.
fn promtool(dir: &Path, args: &[&str]) -> Result<String, String> {
    let output = Command::new("promtool")
        .args(args)
        .current_dir(dir)
        .output()
        .expect("promtool; Debian has it in the package prometheus");
    let told =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(told) } else { Err(told) }
}

fn cases_of<'t>(cases: &'t str, alert: &str) -> Vec<&'t str> {
    let names_it = |case: &&str| case.contains(&format!("alertname: {alert}\n"));
    cases.split("  - name: ").filter(names_it).collect()
}

/// Returns the rule of an alert up to `end`, with the text before and the text after.
fn around<'t>(rules: &'t str, alert: &str, end: &str) -> (&'t str, &'t str, &'t str) {
    let start = rules.find(&format!("- alert: {alert}\n")).expect("an alert");
    let (before, rest) = rules.split_at(start);
    let (rule, after) = rest.split_at(rest.find(end).expect("its end"));
    (before, rule, after)
}

/// Returns mutants of the rules: with the alert's `for:` a minute off, which is one evaluation; and, if the
/// expression counts events, with its window a fifth shorter and longer. Windows of rates stay, because a
/// rate hardly depends on the window.
fn with_times_off(rules: &str, alert: &str) -> Vec<String> {
    let (before, rule, after) = around(rules, alert, "labels:");
    let (expression, waits) = rule.split_once("for: ").expect("a time");
    let minutes: u64 = waits.trim().trim_end_matches('m').parse().expect("minutes");
    let waits = [minutes.wrapping_sub(1), minutes + 1].into_iter().filter(|_| minutes > 0);
    let waits = waits.map(|off| format!("{before}{expression}for: {off}m\n        {after}"));
    let counts = expression.contains("increase(") || expression.contains("delta(");
    let window = expression.split(['[', ']']).nth(1).filter(|_| counts);
    let windows = window.into_iter().flat_map(|window| {
        let (number, unit) = window.split_at(window.len() - 1);
        let seconds = number.parse::<f64>().expect("a number") * if unit == "h" { 3_600.0 } else { 60.0 };
        OFF.map(|off| {
            let other =
                expression.replace(&format!("[{window}]"), &format!("[{}s]", (seconds * off).round()));
            format!("{before}{other}for: {minutes}m\n        {after}")
        })
    });
    waits.chain(windows).collect()
}

/// Returns mutants of the rules, each with one bound of the alert multiplied by `off`. A bound of 0 stays.
fn with_bounds_off(rules: &str, alert: &str, off: f64) -> Vec<String> {
    let (before, rule, after) = around(rules, alert, "for: ");
    let comparisons = rule.match_indices(['>', '<']).map(|(at, sign)| at + sign.len());
    let bounds = comparisons.filter_map(|at| {
        let digits = rule[at..].trim_start_matches(' ');
        let start = rule.len() - digits.len();
        let digits = digits.split(|char: char| !char.is_ascii_digit() && char != '.').next()?;
        let bound: f64 = digits.parse().ok().filter(|bound| *bound != 0.0)?;
        let (left, right) = (&rule[..start], &rule[start + digits.len()..]);
        Some(format!("{before}{left}{}{right}{after}", bound * off))
    });
    bounds.collect()
}

#[test]
fn every_rule_fires_when_it_should_and_not_otherwise() {
    let told =
        promtool(&path("deploy/prometheus"), &["check", "rules", "seatkeeper.rules.yml"]).expect("rules");
    let alerts = values(&read(RULES), "alert: ").len();
    assert!(told.contains(&format!("{alerts} rules found")), "{told}");
    promtool(&path("deploy/prometheus"), &["test", "rules", "seatkeeper.rules.test.yml"])
        .expect("cases that hold");
}

#[test]
fn a_bound_or_a_time_that_is_off_is_noticed() {
    let (rules, cases) = (read(RULES), read(CASES));
    let (head, _) = cases.split_once("  - name: ").expect("cases");
    let dir = tempfile::tempdir().expect("a directory");
    let mut tried = 0;
    for alert in values(&rules, "alert: ") {
        let own = cases_of(&cases, alert).iter().map(|case| format!("  - name: {case}")).collect::<String>();
        fs::write(dir.path().join("cases.yml"), format!("{head}{own}")).expect("a file");
        let mutants = OFF.iter().flat_map(|off| with_bounds_off(&rules, alert, *off));
        let mutants = mutants.chain(with_times_off(&rules, alert));
        for mutant in mutants {
            fs::write(dir.path().join("seatkeeper.rules.yml"), &mutant).expect("a file");
            let told = promtool(dir.path(), &["test", "rules", "cases.yml"]).expect_err(&mutant);
            assert!(told.contains("FAILED"), "{told}");
            tried += 1;
        }
    }
    assert!(tried >= 70, "{tried} bounds and times");
}

#[test]
fn every_rule_has_a_case_in_which_it_fires_and_one_in_which_it_does_not() {
    let (rules, cases) = (read(RULES), read(CASES));
    for alert in values(&rules, "alert: ") {
        let of = cases_of(&cases, alert);
        let silent = of.iter().filter(|case| case.contains("exp_alerts: []")).count();
        assert!(silent > 0 && of.len() > silent, "{alert}");
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
