//! A single node with sessions in its own memory and its ledger in PostgreSQL: no answer is lost when either
//! crashes.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use seatkeeper_testbed::postgres::{self, Postgres, Stop};
use seatkeeper_testbed::proxy::{Network, Proxy};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

use super::support::answered;
use crate::harness::{Answer, Client, Doors, Harness, TENANT, command, run, run_with};
use crate::support::capacity::{self, Capacity};
use crate::support::dice::Dice;
use crate::support::knobs;
use crate::until::within;

/// The key of tokens, the same for every process of a test.
const SHARED_KEY: [(&str, &str); 2] =
    [("AUTH_ALGORITHM", "HS256"), ("AUTH_SECRET", "a secret that all processes of a test know")];

/// Time limit for a start, a stop or a line of the log, on a machine that is busy with other tests.
const PROCESS_WAIT_MAX: Duration = Duration::from_secs(60);

/// Starts a server on this database. Its sessions outlive the test.
fn house_on(url: &str) -> Harness {
    Harness::open_with(&[
        ("LEDGER_URL", url),
        ("LICENSES_TTL_SECONDS", "3600"),
        ("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "1000"),
    ])
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_crash_and_can_be_proved() {
    let database = postgres::database();
    let mut harness = house_on(&database.url());
    let license = harness.license(2).await;
    let (ann, key) = (harness.client("ann"), &license["license_key"]);
    let stays = ann.acquire(key, "m1").await.expect(201);
    let gone = ann.acquire(key, "m2").await.expect(201);
    ann.release(&gone["session_id"]).await.expect(204);
    harness.kill();
    harness.start();

    let ann = harness.client("ann");
    ann.heartbeat(&stays["session_id"]).await.expect(200);
    let ended = ann.heartbeat(&gone["session_id"]).await.expect(410);
    assert_eq!(ended["reason"], "released");
    ann.acquire(key, "m3").await.expect(201);
    let full = ann.acquire(key, "m4").await.expect(403);
    assert_eq!(full["seats_total"], 2);
    let watching = json!({ "device_id": "tv", "device_type": "tv" });
    ann.post("/api/v1/devices/sessions", watching).await.expect(201);
    // A screen is recorded some time after its answer, and at the latest when the server stops.
    harness.stop();
    assert!(harness.prove().contains("4  none left its pool above its limit"));
}

#[tokio::test]
async fn a_server_outlives_a_ledger_that_crashes_and_comes_back() {
    let server = Postgres::start();
    let mut harness = house_on(&server.url("postgres"));
    let license = harness.license(1_000).await;
    let (ann, key) = (harness.client("ann"), &license["license_key"]);
    let mut seats = vec![ann.acquire(key, "m0").await.expect(201)];
    for round in 1..=5 {
        server.stop(Stop::Immediate);
        ann.heartbeat(&seats[0]["session_id"]).await.expect(200);
        ann.acquire(key, &format!("m{round}")).await.expect(503);
        server.start_again();
        let seat = answered(async || ann.acquire(key, &format!("m{round}")).await).await;
        assert!([200, 201].contains(&seat.status), "{:#}", seat.body);
        seats.push(seat.body);
    }
    for seat in &seats {
        ann.heartbeat(&seat["session_id"]).await.expect(200);
    }
    assert_eq!(seats[5]["seats_used"], 6);
    harness.stop();
    harness.prove();
}

/// A server that takes the database over gives each device 5 s more than the TTL. The 5 s do not add up over restarts,
/// although the record has the TTL that the device was told.
#[tokio::test]
async fn the_ttl_of_a_device_does_not_grow_with_each_restart() {
    const TTL_MILLIS: i64 = 600_000;
    const AFTER_TAKEOVER_MILLIS: i64 = TTL_MILLIS + 5_000;
    let database = postgres::database();
    let mut harness = Harness::open_with(&[
        ("LEDGER_URL", &database.url()),
        ("DEVICES_TTL_SECONDS", "600"),
        ("LEDGER_HEARTBEAT_FLUSH_SECONDS", "1"),
    ]);
    let screen = json!({ "device_id": "tv", "device_type": "tv" });
    let held = harness.client("ann").post("/api/v1/devices/sessions", screen).await.expect(201);
    let beat = json!({ "session_id": held["session_id"] });
    let mut record = PgConnection::connect(&database.url()).await.expect("the database is there");
    for (restart, expected) in [TTL_MILLIS, AFTER_TAKEOVER_MILLIS, AFTER_TAKEOVER_MILLIS].iter().enumerate() {
        let began = now();
        harness.client("ann").post("/api/v1/devices/sessions/heartbeat", beat.clone()).await.expect(204);
        let ttl = within(PROCESS_WAIT_MAX, "the heartbeat is on record", async || {
            let row = "SELECT ttl_ms, last_heartbeat_at FROM sessions WHERE pool_kind = 'subscriber'";
            let row: Option<(i64, DateTime<Utc>)> =
                sqlx::query_as(row).fetch_optional(&mut record).await.unwrap();
            row.filter(|row| row.1 >= began).ok_or_else(|| format!("{row:?}"))
        })
        .await
        .0;
        assert_eq!(ttl, *expected, "after restart {restart}");
        harness.kill();
        harness.start();
    }
}

/// A longer TTL of the settings holds for new sessions: the usage of a session is billed up to the end on record.
#[tokio::test]
async fn a_capacity_keeps_its_end_over_a_restart_with_a_longer_ttl() {
    let database = postgres::database();
    let settings = [("LEDGER_URL", database.url()), ("CAPACITIES_TTL_SECONDS", "86400".to_owned())];
    let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut harness = Harness::open_with(&settings);
    let service = capacity::client(&harness);
    let ask = Capacity::drawn(&mut Dice::new(knobs::seed(), 0)).ask(1);
    let taken = service.put(capacity::PATH, ask.clone()).await.expect(201);
    harness.kill();
    harness.start_with("CAPACITIES_TTL_SECONDS", "2592000");
    let kept = capacity::client(&harness).put(capacity::PATH, ask).await.expect(200);
    assert_eq!(kept["sessionEndUtc"], taken["sessionEndUtc"]);
}

/// A server process whose log is read line by line.
struct Process {
    child: Child,
    printed: Lines<BufReader<ChildStdout>>,
    log: Lines<BufReader<ChildStderr>>,
}

impl Process {
    fn start(url: &str, dir: &Path, settings: &[(&str, &str)]) -> Self {
        let ledger = ("LEDGER_URL", url);
        let settings = settings.iter().chain(&SHARED_KEY).chain([&ledger]);
        let variables: Vec<_> =
            settings.map(|(name, value)| (format!("SEATKEEPER_{name}"), (*value).to_owned())).collect();
        let mut command = Command::from(command(&variables));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(dir);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the server starts");
        let printed = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let log = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        Self { child, printed, log }
    }

    /// Waits for a line of the log.
    async fn logs(&mut self, text: &str) {
        let found = async {
            while let Some(line) = self.log.next_line().await.expect("the log") {
                if line.contains(text) {
                    return;
                }
            }
            panic!("the log ends without {text}");
        };
        timeout(PROCESS_WAIT_MAX, found).await.unwrap_or_else(|_| panic!("not in the log: {text}"));
    }

    /// Waits until the server listens, and returns its URL.
    async fn listens(&mut self) -> String {
        let line = timeout(PROCESS_WAIT_MAX, self.printed.next_line()).await;
        let line = line.expect("a server that listens").expect("its output").expect("a line");
        line.strip_prefix("listening on ").expect("the address").to_owned()
    }

    /// Waits for the end of the process, and returns its exit code.
    async fn ends(mut self) -> Option<i32> {
        timeout(PROCESS_WAIT_MAX, self.child.wait())
            .await
            .expect("a server that ends")
            .expect("its end")
            .code()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_waits_for_the_end_of_the_first() {
    let (database, dir) = (postgres::database(), tempfile::tempdir().expect("a directory"));
    let url = database.url();
    let settings = [&[("LEDGER_URL", &*url), ("LICENSES_TTL_SECONDS", "3600")], &SHARED_KEY[..]].concat();
    let mut first = tokio::task::block_in_place(|| Harness::open_with(&settings));
    let license = first.license(2).await;
    let (ann, key) = (first.client("ann"), &license["license_key"]);
    let seat = ann.acquire(key, "m1").await.expect(201);
    let mut second = Process::start(&url, dir.path(), &[]);
    second.logs("this process waits for its end").await;
    let mut node = Process::start(&url, dir.path(), &[("REGISTRY_URL", &url)]);
    node.logs("this process waits for its end").await;
    drop(node);
    ann.acquire(key, "m2").await.expect(201);

    let token = first.token("ann");
    tokio::task::block_in_place(|| first.kill());
    let ann = Client::at(Doors::new([second.listens().await]), token);
    ann.heartbeat(&seat["session_id"]).await.expect(200);
    ann.acquire(key, "m3").await.expect(403);
}

#[tokio::test]
async fn a_server_whose_ledger_another_process_has_taken_ends() {
    let (database, dir) = (postgres::database(), tempfile::tempdir().expect("a directory"));
    let mut server = Process::start(&database.url(), dir.path(), &[]);
    server.listens().await;
    let mut direct = PgConnection::connect(&database.url()).await.expect("a connection");
    sqlx::query("UPDATE buckets SET epoch = epoch + 1").execute(&mut direct).await.expect("a raise");
    server.logs("another process has taken this ledger").await;
    server.logs("the server stopped by itself").await;
    assert_eq!(server.ends().await, Some(1));
}

/// A commit of the raise waits until the server has answered by its journal.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_ledger_another_process_has_taken_tells_of_the_events_that_are_lost() {
    let database = postgres::database();
    let mut harness = tokio::task::block_in_place(|| house_on(&database.url()));
    let mut direct = PgConnection::connect(&database.url()).await.expect("a connection");
    let mut raise = direct.begin().await.expect("a transaction");
    sqlx::query("UPDATE buckets SET epoch = epoch + 1").execute(&mut *raise).await.expect("a raise");
    let watching = json!({ "device_id": "tv", "device_type": "tv" });
    harness.client("ann").post("/api/v1/devices/sessions", watching).await.expect(201);
    raise.commit().await.expect("a commit");
    stops_by_itself(&harness).await;
    let (status, log) = tokio::task::block_in_place(|| harness.stop());
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("events of sessions never reached the ledger"), "{log}");
}

/// Waits until a server has stopped by itself.
async fn stops_by_itself(harness: &Harness) {
    within(PROCESS_WAIT_MAX, "the server ends", async || {
        let log = harness.log_so_far();
        if log.contains("the server stopped by itself") { Ok(()) } else { Err(log) }
    })
    .await;
}

fn address_of(server: &Postgres) -> SocketAddr {
    ([127, 0, 0, 1], server.port()).into()
}

/// Returns the URL of a server's database through a proxy.
fn url_through(proxy: &Proxy, server: &Postgres) -> String {
    let port = |port: u16| format!(":{port}/");
    server.url("postgres").replace(&port(server.port()), &port(proxy.address().port()))
}

/// The server that takes a ledger.
enum Taker {
    Embedded,
    Node,
}

/// A server on a ledger behind a proxy, and a second server that may take the ledger.
struct Takeover {
    server: Postgres,
    proxy: Proxy,
    first: Harness,
    dir: tempfile::TempDir,
}

impl Takeover {
    /// The TTL of licenses and devices.
    const TTL: Duration = Duration::from_secs(6);
    const SETTINGS: [(&str, &str); 3] =
        [("LICENSES_TTL_SECONDS", "6"), ("DEVICES_TTL_SECONDS", "6"), ("DEVICES_DURABILITY", "ledger")];

    async fn new() -> Self {
        let server = tokio::task::block_in_place(Postgres::start);
        let proxy = Proxy::start(address_of(&server), knobs::seed()).await;
        let url = url_through(&proxy, &server);
        let settings = [&[("LEDGER_URL", &*url)], &Self::SETTINGS[..], &SHARED_KEY[..]].concat();
        let first = tokio::task::block_in_place(|| Harness::open_with(&settings));
        Self { server, proxy, first, dir: tempfile::tempdir().expect("a directory") }
    }

    /// Cuts the first server off from the ledger, and starts a second server, which takes the ledger at once.
    async fn take(&self, by: Taker) -> Process {
        self.proxy.set(Network::Silent);
        let direct = self.server.url("postgres");
        let mut settings = Self::SETTINGS.to_vec();
        match by {
            Taker::Embedded => {}
            Taker::Node => settings.push(("REGISTRY_URL", &direct)),
        }
        let mut connection = PgConnection::connect(&direct).await.expect("a connection");
        let end_lock = "SELECT pg_terminate_backend(pid, 30000) FROM pg_locks WHERE locktype = 'advisory'";
        sqlx::query(end_lock).execute(&mut connection).await.expect("the end of the lock");
        Process::start(&direct, self.dir.path(), &settings)
    }

    /// Heartbeats by `beat` at the first server until the answer is 503, or for a TTL without PostgreSQL.
    async fn heartbeats(
        &self,
        beat: impl AsyncFn() -> Answer,
        mut answered: impl FnMut(DateTime<Utc>, Answer),
    ) {
        let silent = Instant::now();
        loop {
            let (asked, asked_at) = (Instant::now(), now());
            let answer = beat().await;
            if answer.status == 503 {
                return;
            }
            assert!(
                asked < silent + Self::TTL,
                "an answer later than a TTL after the last word of PostgreSQL"
            );
            answered(asked_at, answer);
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Returns the end of a session at the second server.
    async fn kept_until(&self, second: &mut Process, session: &Value) -> DateTime<Utc> {
        let second =
            Client::at(Doors::new([second.listens().await]), self.first.token_of(TENANT, "ops", "admin"));
        let session = format!("/api/v1/admin/sessions/{}", session.as_str().expect("an id"));
        expires_at(&second.get(&session).await.expect(200))
    }

    /// The first server hears of the takeover, and stops by itself.
    async fn ends(mut self) {
        self.proxy.set(Network::Well);
        stops_by_itself(&self.first).await;
        let (status, log) = tokio::task::block_in_place(|| self.first.stop());
        assert_eq!(status.code(), Some(1), "{log}");
    }
}

/// The next owner gives every session of the ledger a full TTL.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_cut_off_from_its_ledger_promises_no_more_than_the_next_owner_keeps() {
    let takeover = Takeover::new().await;
    let license = takeover.first.license(1).await;
    let ann = takeover.first.client("ann");
    let seat = ann.acquire(&license["license_key"], "m1").await.expect(201);
    let mut second = takeover.take(Taker::Embedded).await;
    let mut promised = expires_at(&seat);
    let beats = takeover.heartbeats(
        async || ann.heartbeat(&seat["session_id"]).await,
        |_, answer| promised = promised.max(expires_at(&answer.expect(200))),
    );
    let kept = takeover.kept_until(&mut second, &seat["session_id"]);
    let ((), kept) = tokio::join!(beats, kept);
    assert!(promised <= kept, "promised until {promised}, and kept until {kept}");
    ann.heartbeat(&seat["session_id"]).await.expect(503);
    takeover.ends().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_cut_off_from_its_ledger_promises_devices_no_more_than_the_next_owner_keeps() {
    promises_devices_no_more(Taker::Embedded).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_cut_off_from_its_ledger_promises_devices_no_more_than_nodes_keep() {
    promises_devices_no_more(Taker::Node).await;
}

/// The answer to a device's heartbeat tells no end, so the device counts on a full TTL from its request.
async fn promises_devices_no_more(by: Taker) {
    let takeover = Takeover::new().await;
    let ann = takeover.first.client("ann");
    let watching = json!({ "device_id": "tv", "device_type": "tv" });
    let screen = ann.post("/api/v1/devices/sessions", watching).await.expect(201);
    let mut second = takeover.take(by).await;
    let (began, mut last) = (now(), None);
    let beat = async || {
        let ask = json!({ "session_id": screen["session_id"] });
        ann.post("/api/v1/devices/sessions/heartbeat", ask).await
    };
    let beats = takeover.heartbeats(beat, |asked_at, answer| {
        answer.expect(204);
        last = Some(asked_at);
    });
    let kept = takeover.kept_until(&mut second, &screen["session_id"]);
    let ((), kept) = tokio::join!(beats, kept);
    let last = last.expect("an answer of the first server");
    assert!(last > began + Duration::from_secs(2), "the first server answered until {last}, from {began}");
    let promised = last + Takeover::TTL;
    assert!(promised <= kept, "promised until {promised}, and kept until {kept}");
    takeover.ends().await;
}

/// The answer to a device's heartbeat tells no end, so the device counts on a full TTL.
#[tokio::test(flavor = "multi_thread")]
async fn devices_hear_503_from_a_server_without_a_recent_word_of_its_ledger() {
    const DEVICES: &str = "/api/v1/devices/sessions";
    let server = tokio::task::block_in_place(Postgres::start);
    let proxy = Proxy::start(address_of(&server), knobs::seed()).await;
    let url = url_through(&proxy, &server);
    let mut harness = tokio::task::block_in_place(|| {
        Harness::open_with(&[("LEDGER_URL", &url), ("DEVICES_TTL_SECONDS", "600")])
    });
    let ann = harness.client("ann");
    let claim = async |device| ann.post(DEVICES, json!({ "device_id": device, "device_type": "tv" })).await;
    let screen = claim("first").await.expect(201);
    let beat = async || {
        let ask = json!({ "session_id": screen["session_id"] });
        ann.post(&format!("{DEVICES}/heartbeat"), ask).await
    };
    beat().await.expect(204);

    proxy.set(Network::Silent);
    heard(&beat, 503).await;
    claim("second").await.expect(503);

    proxy.set(Network::Well);
    heard(&beat, 204).await;
    let listed = ann.get(DEVICES).await.expect(200);
    assert_eq!(
        listed["items"].as_array().map(Vec::len),
        Some(1),
        "the refused claim took a screen: {listed:#}"
    );
    // A job that met the silent ledger has logged an error.
    let (status, log) = tokio::task::block_in_place(|| harness.stop());
    assert!(status.success(), "{log}");
}

/// Waits until a request is answered with `status`.
async fn heard(ask: &impl AsyncFn() -> Answer, status: u16) {
    within(PROCESS_WAIT_MAX, "another answer", async || {
        let answer = ask().await;
        if answer.status == status { Ok(()) } else { Err(format!("{} {:#}", answer.status, answer.body)) }
    })
    .await;
}

#[expect(clippy::disallowed_methods, reason = "it decides nothing; ends of sessions are compared with it")]
fn now() -> DateTime<Utc> {
    std::time::SystemTime::now().into()
}

/// Returns the end of the session in an answer.
fn expires_at(answer: &Value) -> DateTime<Utc> {
    answer["expires_at"].as_str().and_then(|text| text.parse().ok()).expect("the end of a session")
}

/// The standby has the epoch of the running server, and lacks its last admission.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_ends_after_a_promotion_and_the_next_start_serves_by_the_records_of_the_standby() {
    let primary = tokio::task::block_in_place(Postgres::start);
    let to_ledger = Proxy::start(address_of(&primary), knobs::seed()).await;
    let replication = Proxy::start(address_of(&primary), knobs::seed()).await;
    let mut harness = tokio::task::block_in_place(|| house_on(&url_through(&to_ledger, &primary)));
    let license = harness.license(3).await;
    let (ann, key) = (harness.client("ann"), &license["license_key"]);
    let kept = ann.acquire(key, "m1").await.expect(201);
    let standby = tokio::task::block_in_place(|| Postgres::standby_of(replication.address()));
    replication.set(Network::Silent);
    let lost = ann.acquire(key, "m2").await.expect(201);

    tokio::task::block_in_place(|| {
        primary.stop(Stop::Immediate);
        standby.promote();
    });
    to_ledger.redirect(address_of(&standby));
    stops_by_itself(&harness).await;
    let (status, log) = tokio::task::block_in_place(|| harness.stop());
    assert_eq!(status.code(), Some(1), "{log}");
    assert!(log.contains("a promoted standby or a restored backup has replaced it"), "{log}");

    tokio::task::block_in_place(|| harness.start());
    let ann = harness.client("ann");
    ann.heartbeat(&kept["session_id"]).await.expect(200);
    ann.heartbeat(&lost["session_id"]).await.expect(404);
    ann.acquire(key, "m2").await.expect(201);
    tokio::task::block_in_place(|| harness.stop());
    tokio::task::block_in_place(|| harness.prove());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_registry_of_the_nodes_does_not_start_beside_them() {
    let (database, dir) = (postgres::database(), tempfile::tempdir().expect("a directory"));
    let url = database.url();
    let settings = [&[("LEDGER_URL", &*url), ("REGISTRY_URL", &*url)], &SHARED_KEY[..]].concat();
    let node = tokio::task::block_in_place(|| Harness::open_with(&settings));
    let mut server = Process::start(&url, dir.path(), &[]);
    server.logs("serve with this ledger, or may").await;
    assert_eq!(server.ends().await, Some(1));
    let license = node.license(1).await;
    node.client("ann").acquire(&license["license_key"], "m1").await.expect(201);
    tokio::task::block_in_place(|| drop(node));
}

#[test]
fn its_tables_are_made_by_migrate_and_its_log_is_proved_without_a_server() {
    let database = postgres::database();
    let url = database.url();
    let unmade = run(&["audit", "verify", "--ledger", &url]);
    assert_eq!(unmade.status.code(), Some(1), "{}", unmade.stdout);
    assert!(unmade.stderr.contains("version 0"), "{}", unmade.stderr);
    let made = run(&["migrate", "--ledger", &url]);
    assert!(made.status.success() && made.stdout.contains("is at version"), "{}{}", made.stdout, made.stderr);
    let proved = run(&["audit", "verify", "--ledger", &url]);
    assert!(proved.status.success(), "{}{}", proved.stdout, proved.stderr);
}

#[test]
fn its_password_is_shown_nowhere() {
    // A listener that hangs up at once. A server that is not up yet would be waited for.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || listener.incoming().for_each(drop));
    let url = format!("postgres://app:s3cret@{address}/seats");
    let variables = [("SEATKEEPER_LEDGER_URL".to_owned(), url)];
    let config = run_with(&variables, &["config"]);
    assert!(config.stdout.contains("url = \"********\""), "{}", config.stdout);
    let serve = run_with(&variables, &["migrate"]);
    assert_eq!(serve.status.code(), Some(1), "{}", serve.stdout);
    for output in [config, serve] {
        assert!(!format!("{output:?}").contains("s3cret"), "{output:?}");
    }
}
