//! The metrics described in `docs/metrics.md`. The test `http` compares the page with the served metrics.

use std::collections::BTreeSet;

use crate::read;

/// Metrics that Prometheus adds.
const OF_PROMETHEUS: [&str; 1] = ["up"];

/// Words with underscores in queries that are no metrics: functions, labels, and variables of the dashboard.
const OTHER_WORDS: [&str; 6] =
    ["histogram_quantile", "label_values", "exported_job", "license_id", "pool_kind", "__rate_interval"];

/// Returns the names of all series. A histogram has three.
pub(super) fn series() -> BTreeSet<String> {
    let page = read("docs/metrics.md");
    let lines = page.lines().filter_map(|line| line.strip_prefix("| `"));
    lines
        .flat_map(|line| {
            let (name, rest) = line.split_once("` | ").expect("a name and a type");
            let ends: &[&str] =
                if rest.starts_with("histogram") { &["_bucket", "_count", "_sum"] } else { &[""] };
            ends.iter().map(move |end| format!("{name}{end}"))
        })
        .collect()
}

/// Returns the series in a query.
pub(super) fn named(query: &str) -> BTreeSet<String> {
    let words = query.split(|char: char| !char.is_alphanumeric() && char != '_');
    let is_name =
        |word: &&str| (word.contains('_') || OF_PROMETHEUS.contains(word)) && !OTHER_WORDS.contains(word);
    words.filter(is_name).map(str::to_owned).collect()
}

/// Fails the test if a query names no series, or an unknown series.
#[track_caller]
pub(super) fn must_be_there(query: &str) {
    let series = series();
    let named = named(query);
    assert!(!named.is_empty(), "{query}");
    let missing =
        named.iter().find(|name| !series.contains(*name) && !OF_PROMETHEUS.contains(&name.as_str()));
    assert_eq!(missing, None, "{query}");
}
