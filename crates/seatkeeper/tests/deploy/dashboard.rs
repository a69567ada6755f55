//! Tests of the dashboard: every metric is on the dashboard, and every query names existing metrics.

use std::collections::BTreeSet;

use serde_json::Value;

use super::metrics::{must_be_there, named, series};
use crate::read;

fn dashboard() -> Value {
    serde_json::from_str(&read("deploy/grafana/seatkeeper.json")).expect("JSON")
}

fn queries(dashboard: &Value) -> Vec<&str> {
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| target["expr"].as_str().expect("a query")).collect()
}

#[test]
fn the_dashboard_shows_every_metric_and_none_that_is_not_there() {
    let dashboard = dashboard();
    let queries = queries(&dashboard);
    queries.iter().for_each(|query| must_be_there(query));
    let shown: BTreeSet<_> = queries.iter().flat_map(|query| named(query)).collect();
    // A histogram is shown if any of its series is shown.
    let family = |name: &str| {
        let ends = ["_bucket", "_count", "_sum"];
        ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
    };
    let shown: BTreeSet<_> = shown.iter().map(|name| family(name)).collect();
    let hidden: BTreeSet<_> =
        series().iter().map(|name| family(name)).filter(|name| !shown.contains(name)).collect();
    assert_eq!(hidden, BTreeSet::new());
}

#[test]
fn the_dashboard_can_be_imported_and_asks_for_its_data_source() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64() >= Some(36), "{}", dashboard["schemaVersion"]);
    let variables = dashboard["templating"]["list"].as_array().expect("variables");
    let source = variables.iter().find(|variable| variable["type"] == "datasource").expect("a data source");
    assert_eq!((&source["name"], &source["query"]), (&"datasource".into(), &"prometheus".into()));
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().expect("an id")).collect();
    assert_eq!(ids.len(), panels.len(), "two panels share an id");
    let mut taken = BTreeSet::new();
    for panel in panels {
        let place = &panel["gridPos"];
        let at = |name: &str| place[name].as_u64().expect("a number");
        assert!(at("x") + at("w") <= 24, "{}", panel["title"]);
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(taken.insert((x, y)), "{} lies over another", panel["title"]);
            }
        }
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{}", panel["title"]);
        }
    }
}
