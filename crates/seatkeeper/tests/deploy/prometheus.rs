//! A real Prometheus that watches a real server by the shipped rules.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use seatkeeper_testbed::port;
use serde_json::Value;
use tempfile::TempDir;

use crate::read;
use crate::until::{until, within};

/// The file of the alert rules.
pub(super) const RULES: &str = "deploy/prometheus/seatkeeper.rules.yml";

/// The bearer token of every scrape. Servers without `metrics.token` ignore the token.
pub(super) const TOKEN: &str = "let-me-see-it-all";

/// Time limit until an alert fires, on a machine that is busy with other work.
const FIRES_WITHIN: Duration = Duration::from_secs(60);

/// A Prometheus that scrapes the server and evaluates the rules every second. Each `for:` in the rules is
/// shortened to a second, because `promtool` tests the real durations. Windows and bounds of the alerts are
/// as shipped.
pub(super) struct Prometheus {
    url: String,
    child: Child,
    fired: BTreeSet<String>,
    _dir: TempDir,
}

impl Prometheus {
    /// Starts a Prometheus for a server, and waits until it has seen the healthy server without a firing
    /// alert.
    pub(super) async fn watching(server: &str) -> Self {
        let prometheus = Self::start(server);
        prometheus.is_silent().await;
        prometheus
    }

    fn start(server: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let rules = read(RULES);
        let at_once = rules.lines().map(|line| match line.split_once("for: ") {
            Some((indent, _)) => format!("{indent}for: 1s"),
            None => line.to_owned(),
        });
        fs::write(dir.path().join("rules.yml"), at_once.collect::<Vec<_>>().join("\n")).expect("a file");
        let target = server.trim_start_matches("http://");
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [rules.yml]\nscrape_configs:\n  \
             - job_name: seatkeeper\n    authorization: {{ credentials: {TOKEN} }}\n    static_configs: [{{ targets: ['{target}'] }}]\n"
        );
        fs::write(dir.path().join("prometheus.yml"), config).expect("a file");
        let address = format!("127.0.0.1:{}", port::free());
        let child = Command::new("prometheus")
            .args(["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=error"])
            .arg(format!("--web.listen-address={address}"))
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .spawn()
            .expect("prometheus; Debian has it in the package of that name");
        Self { url: format!("http://{address}"), child, fired: BTreeSet::new(), _dir: dir }
    }

    async fn get(&self, path: &str) -> Result<Value, String> {
        let answer = reqwest::get(format!("{}{path}", self.url)).await.map_err(|error| error.to_string())?;
        answer.json().await.map_err(|error| error.to_string())
    }

    async fn firing(&self) -> Result<BTreeSet<String>, String> {
        let told = self.get("/api/v1/alerts").await?;
        let alerts = told["data"]["alerts"].as_array().ok_or("no list")?;
        let firing = alerts.iter().filter(|alert| alert["state"] == "firing");
        Ok(firing.filter_map(|alert| Some(alert["labels"]["alertname"].as_str()?.to_owned())).collect())
    }

    /// Waits until `alerts` have fired, in any order. Runs `meanwhile` before each poll.
    pub(super) async fn fires(&mut self, alerts: &[&str], meanwhile: impl AsyncFn()) {
        self.fires_within(FIRES_WITHIN, alerts, meanwhile).await;
    }

    /// Waits at most `deadline` until `alerts` have fired, in any order. Runs `meanwhile` before each poll.
    pub(super) async fn fires_within(
        &mut self,
        deadline: Duration,
        alerts: &[&str],
        meanwhile: impl AsyncFn(),
    ) {
        within(deadline, "alerts that fire", async || {
            meanwhile().await;
            self.fired.extend(self.firing().await?);
            let silent: Vec<_> = alerts.iter().filter(|alert| !self.fired.contains(**alert)).collect();
            if silent.is_empty() {
                Ok(())
            } else {
                Err(format!("silent: {silent:?}; fired: {:?}", self.fired))
            }
        })
        .await;
    }

    /// Waits for enough samples, and asserts that no alert fires.
    async fn is_silent(&self) {
        until("samples", async || {
            let told = self.get("/api/v1/query?query=count_over_time(node_ready[1m])").await?;
            let count = told["data"]["result"][0]["value"][1].as_str();
            let count = count.and_then(|count| count.parse::<u32>().ok());
            if count >= Some(4) { Ok(()) } else { Err(told.to_string()) }
        })
        .await;
        assert_eq!(self.firing().await, Ok(BTreeSet::new()));
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The process may have exited already: an error here is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
