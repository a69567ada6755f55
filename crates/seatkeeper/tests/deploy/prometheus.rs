//! Prometheus itself, over a real run: each alert's condition is brought about, and the alert is seen to fire.
//!
//! It goes by a copy of the rules in which nothing has to last for longer than a second. What takes longer to bring
//! about than a test may last is left to `promtool`: [`TOO_SLOW`].

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use seatkeeper_testbed::port;
use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::house::House;
use crate::house::sink::{Do, Sink};
use crate::read;
use crate::until::until;

/// They need minutes without a sweeper, a job that fails or whose node dies, or hundreds of thousands of events.
const TOO_SLOW: [&str; 6] = [
    "SeatkeeperCleanupBacklog",
    "SeatkeeperCleanupSlow",
    "SeatkeeperSweeperDown",
    "SeatkeeperJournalFilling",
    "SeatkeeperStaleLocks",
    "SeatkeeperJobFailing",
];

/// A user of a tenant whose name is a UUID, as those of capacities are.
const TENANT: &str = "80004000-8000-0000-0000-000000000001";

/// Batches of usage that wait, one for each: more than the rule allows.
const CAPACITIES: usize = 110;

/// Seats of clients that fall silent: enough to be worth an alert.
const SILENT: usize = 100;

struct Prometheus {
    url: String,
    child: Child,
    fired: BTreeSet<String>,
    _dir: TempDir,
}

impl Prometheus {
    /// Watches this server by the rules, every second.
    fn start(target: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let rules = read("deploy/prometheus/seatkeeper.rules.yml");
        let at_once = rules.lines().map(|line| match line.trim_start().strip_prefix("for: ") {
            Some(_) => "        for: 1s".to_owned(),
            None => line.to_owned(),
        });
        fs::write(dir.path().join("rules.yml"), at_once.collect::<Vec<_>>().join("\n")).expect("a file");
        let target = target.trim_start_matches("http://");
        let config = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nrule_files: [rules.yml]\nscrape_configs:\n  \
             - job_name: seatkeeper\n    static_configs: [{{ targets: ['{target}'] }}]\n"
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

    /// Waits until these alerts fire; `meanwhile` is done before each look.
    async fn fires(&mut self, alerts: &[&str], meanwhile: impl AsyncFn()) {
        for alert in alerts {
            until(alert, async || {
                meanwhile().await;
                let firing = self.firing().await?;
                if firing.contains(*alert) { Ok(()) } else { Err(format!("{firing:?}")) }
            })
            .await;
            self.fired.insert((*alert).to_owned());
        }
    }

    /// Waits until it has scraped often enough to tell, and nothing fires.
    async fn is_silent(&self) {
        until("samples", async || {
            let told = self.get("/api/v1/query?query=count_over_time(node_ready[1m])").await?;
            let count =
                told["data"]["result"][0]["value"][1].as_str().and_then(|count| count.parse::<u32>().ok());
            if count >= Some(4) { Ok(()) } else { Err(told.to_string()) }
        })
        .await;
        assert_eq!(self.firing().await, Ok(BTreeSet::new()));
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn config(name: &str, value: &str) -> redis::Cmd {
    let mut command = redis::cmd("CONFIG");
    command.arg("SET").arg(name).arg(value);
    command
}

async fn nothing() {}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes two minutes: cargo test -p seatkeeper --test deploy -- --ignored"]
async fn each_alert_fires_when_what_it_is_about_happens() {
    let sink = Sink::open(|_| Do::Refuse(500)).await;
    let (postgres, mut redis) = tokio::task::block_in_place(|| (Postgres::start(), Redis::start()));
    let ledger = postgres.url(&postgres.add_database());
    let mut house = tokio::task::block_in_place(|| {
        House::open_with(&[
            ("REGISTRY_URL", &redis.url()),
            ("LEDGER_URL", &ledger),
            ("AUTH_ALGORITHM", "HS256"),
            ("AUTH_SECRET", "a secret that is as long as one has to be"),
            ("METRICS_REFRESH_SECONDS", "1"),
            ("LICENSES_TTL_SECONDS", "2"),
            ("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "500"),
            ("DEVICES_DURABILITY", "journal"),
            ("USAGE_SINK_URL", &sink.url),
            ("USAGE_EMISSION_INTERVAL_SECONDS", "2"),
            ("USAGE_BATCH_RECORDS", "1"),
        ])
    });
    let mut prometheus = Prometheus::start(house.url());
    prometheus.is_silent().await;
    let ann = house.client("ann");

    let full = house.license_with(json!({ "max_seats": 1, "ttl_seconds": 600 })).await;
    let seat = ann.acquire(&full["license_key"], "m1").await.expect(201)["session_id"].clone();
    let ask = async || drop(ann.acquire(&full["license_key"], "m2").await);
    prometheus.fires(&["SeatkeeperLicenseAlmostFull", "SeatkeeperAcquireFailures"], ask).await;

    let silent = house.license(SILENT as u32).await;
    for machine in 0..SILENT {
        ann.acquire(&silent["license_key"], &machine.to_string()).await.expect(201);
    }
    prometheus.fires(&["SeatkeeperSessionsExpire"], nothing).await;

    let meter = house.client_with(house.token_of(TENANT, "meter", "service"));
    for _ in 0..CAPACITIES {
        let ask = json!({
            "userObjectId": Uuid::new_v4(), "tenantObjectId": TENANT, "capacityId": Uuid::new_v4(), "sessionKind": 1,
        });
        meter.put("/api/v1/capacities/sessions", ask).await.expect(201);
    }
    prometheus.fires(&["SeatkeeperUsageOutboxFull", "SeatkeeperUsageEmissionFailing"], nothing).await;
    sink.follow(|_| Do::Refuse(400));
    prometheus.fires(&["SeatkeeperUsageDead"], nothing).await;
    sink.follow(|_| Do::Take(200));

    let mut pause = redis::cmd("CLIENT");
    pause.arg("PAUSE").arg(400).arg("ALL");
    let beat = async || {
        redis.ask::<()>(pause.clone());
        ann.heartbeat(&seat).await.expect(200);
    };
    prometheus.fires(&["SeatkeeperHeartbeatsSlow"], beat).await;
    let used = redis.ask::<String>(redis::cmd("INFO").arg("memory").clone());
    let used = used.lines().find_map(|line| line.strip_prefix("used_memory:")?.trim().parse::<u64>().ok());
    let used = used.expect("a number");
    redis.ask::<()>(config("maxmemory", &(used + used / 5).to_string()));
    prometheus.fires(&["SeatkeeperRedisMemory"], nothing).await;
    redis.ask::<()>(config("maxmemory-policy", "allkeys-lru"));
    redis.ask::<()>(config("maxmemory", &(used / 2).to_string()));
    prometheus.fires(&["SeatkeeperRedisEvicts"], nothing).await;

    redis.ask::<()>(config("maxmemory", "0"));
    redis.ask::<()>(config("maxmemory-policy", "noeviction"));
    let tv = json!({ "device_id": "tv-1", "device_type": "tv" });
    until("devices are served again", async || {
        let status = house.client("bob").post("/api/v1/devices/sessions", tv.clone()).await.status;
        if status < 300 { Ok(()) } else { Err(status.to_string()) }
    })
    .await;
    tokio::task::block_in_place(|| postgres.stop(Stop::Immediate));
    let began = Instant::now();
    let ask = async || {
        ann.acquire(&silent["license_key"], "late").await;
        let phone = json!({ "device_id": began.elapsed().as_millis().to_string(), "device_type": "mobile" });
        house.client("bob").post("/api/v1/devices/sessions", phone).await;
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let down = ["SeatkeeperLedgerDown", "SeatkeeperAcquireUnavailable", "SeatkeeperJournalLag"];
    prometheus.fires(&down, ask).await;
    // Nobody can agree on what serves in its place.
    redis.kill();
    prometheus.fires(&["SeatkeeperRedisDown", "SeatkeeperNodeNotReady"], nothing).await;
    tokio::task::block_in_place(|| postgres.start_again());
    prometheus.fires(&["SeatkeeperRegistryFallback"], nothing).await;
    tokio::task::block_in_place(|| house.stop());
    prometheus.fires(&["SeatkeeperNodeDown"], nothing).await;

    let rules = read("deploy/prometheus/seatkeeper.rules.yml");
    let alerts: BTreeSet<_> =
        rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect();
    let fired = prometheus.fired.iter().cloned().chain(TOO_SLOW.map(str::to_owned)).collect::<BTreeSet<_>>();
    assert_eq!(fired, alerts, "an alert that is neither brought about nor too slow");
}
