//! The metrics page, parsed as Prometheus would.

use std::collections::{BTreeMap, BTreeSet};

/// The metrics of one server, or the sum over several nodes.
#[derive(Debug, Default)]
pub(crate) struct Scrape {
    /// The type of each metric, by the metric name of its samples.
    pub(crate) types: BTreeMap<String, String>,
    /// The value of each series, by `name{label="value",…}` or the bare name.
    pub(crate) samples: BTreeMap<String, f64>,
}

impl Scrape {
    /// Scrapes servers without a token, and adds up their samples.
    pub(crate) async fn fetch(urls: &[String]) -> Self {
        Self::with_token(urls, "").await
    }

    /// Scrapes servers with a token, and adds up their samples.
    pub(crate) async fn with_token(urls: &[String], token: &str) -> Self {
        let (mut sum, client) = (Self::default(), reqwest::Client::new());
        for url in urls {
            let page =
                client.get(format!("{url}/metrics")).bearer_auth(token).send().await.expect("an answer");
            assert_eq!(page.status(), 200);
            let format = page.headers()["content-type"].to_str().expect("text").to_owned();
            assert_eq!(format, "application/openmetrics-text; version=1.0.0; charset=utf-8");
            sum.add(&page.text().await.expect("a page"));
        }
        sum
    }

    fn add(&mut self, page: &str) {
        assert!(page.ends_with("# EOF\n"), "{page}");
        for line in page.lines() {
            if let Some(told) = line.strip_prefix("# TYPE ") {
                let (name, kind) = told.split_once(' ').expect("a name and a type");
                let suffix = if kind == "counter" { "_total" } else { "" };
                self.types.insert(format!("{name}{suffix}"), kind.to_owned());
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once(' ').expect("a series and its value");
                *self.samples.entry(series.to_owned()).or_default() +=
                    value.parse::<f64>().expect("a number");
            }
        }
    }

    /// Returns the value of a series, or 0 for an unknown series.
    pub(crate) fn value(&self, series: &str) -> f64 {
        self.samples.get(series).copied().unwrap_or_default()
    }

    /// Returns the label names of a metric, without the labels that every metric of its type has.
    pub(crate) fn labels(&self, metric: &str) -> BTreeSet<String> {
        let of_metric = self.samples.keys().filter_map(|series| {
            let rest = series.strip_prefix(metric)?;
            let rest = ["_bucket", "_sum", "_count"]
                .iter()
                .fold(rest, |rest, end| rest.strip_prefix(end).unwrap_or(rest));
            (rest.is_empty() || rest.starts_with('{')).then_some(rest)
        });
        // Label values contain neither a quote nor an equals sign.
        let names =
            of_metric.flat_map(|labels| labels.trim_matches(['{', '}']).split("\",").map(str::to_owned));
        let names = names.filter_map(|label| Some(label.split_once('=')?.0.to_owned()));
        names.filter(|name| name != "le").collect()
    }
}
