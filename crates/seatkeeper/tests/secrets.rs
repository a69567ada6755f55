//! The product's output contains no secret, even at the most verbose log level and under failures.
//!
//! Each secret is a canary, a text without a second use. The tests keep and search everything that processes
//! print and log, and every problem in an answer.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a failed test panics")]

mod harness;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;

#[path = "secrets/story.rs"]
mod story;
#[path = "secrets/written.rs"]
mod written;

use std::fs;

use seatkeeper_testbed::port;
use seatkeeper_testbed::postgres;
use seatkeeper_testbed::redis::{Memory, Redis};

use harness::sink::{Do, Sink};
use seatkeeper_server::auth::KEY_FILE_NAME;
use written::Written;

/// The canaries.
const TOKEN_SECRET: &str = "canary-of-the-secret-that-signs-tokens";
const REDIS_PASSWORD: &str = "canary-of-the-redis-password";
const DATABASE_PASSWORD: &str = "canary-of-the-database-password";
const PASSWORD_IN_FILE: &str = "canary-of-a-password-in-a-file";
const WRONG_PASSWORD_IN_FILE: &str = "canary-of-a-wrong-password-in-a-file";
const SINK_TOKEN: &str = "canary-of-the-sink-token";
const METRICS_TOKEN: &str = "canary-of-the-token-of-metrics";
const LICENSE_KEY: &str = "CANARY-OF-A-LICENSE-KEY-7Q4Z";
const WRONG_LICENSE_KEY: &str = "CANARY-OF-A-WRONG-LICENSE-KEY-3K9X";
const BEARER: &str = "canary.of-a.bearer-token";
const IDEMPOTENCY_KEY: &str = "canary-of-an-idempotency-key";

const CANARIES: [&str; 11] = [
    TOKEN_SECRET,
    REDIS_PASSWORD,
    DATABASE_PASSWORD,
    PASSWORD_IN_FILE,
    WRONG_PASSWORD_IN_FILE,
    SINK_TOKEN,
    METRICS_TOKEN,
    LICENSE_KEY,
    WRONG_LICENSE_KEY,
    BEARER,
    IDEMPOTENCY_KEY,
];

fn all_of(more: &[String]) -> Vec<&str> {
    CANARIES.into_iter().chain(more.iter().map(String::as_str)).collect()
}

/// Returns settings with the most verbose log level.
fn talkative(more: &[(&str, &str)]) -> Vec<(String, String)> {
    let usual = [
        ("LOG_LEVEL", "trace"),
        ("AUTH_ALGORITHM", "HS256"),
        ("AUTH_SECRET", TOKEN_SECRET),
        ("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "1000"),
    ];
    let settings = usual.iter().chain(more);
    settings.map(|(name, value)| (format!("SEATKEEPER_{name}"), (*value).to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn of_a_server_alone_that_is_used_and_misused() {
    let sink = Sink::open(|_| Do::RefuseAndRepeat(400)).await;
    let mut written = Written::default();
    let settings = talkative(&[
        ("USAGE_SINK_URL", &sink.url),
        ("USAGE_SINK_TOKEN", SINK_TOKEN),
        ("METRICS_TOKEN", METRICS_TOKEN),
        ("USAGE_EMISSION_INTERVAL_SECONDS", "1"),
    ]);
    let server = written.serve(&settings);
    let mut tokens = story::told(&mut written, &server.url(), &settings).await;
    tokens.push(story::told_what_the_sink_said(&mut written, &server.url(), &settings).await);
    written.end(server);
    written.must_have_none(&all_of(&tokens));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn of_a_node_whose_redis_and_database_fail() {
    let mut redis = Redis::start();
    let user = [">".to_owned() + REDIS_PASSWORD, "on".into(), "~*".into(), "&*".into(), "+@all".into()];
    redis.ask::<()>(redis::cmd("ACL").arg("SETUSER").arg("seatkeeper").arg(&user[..]).take());
    let redis_url = redis.url().replace("://", &format!("://seatkeeper:{REDIS_PASSWORD}@"));
    let database = postgres::database();
    let users_url = database.for_user("seatkeeper_of_secrets", PASSWORD_IN_FILE);
    let database_url = users_url.replacen('@', &format!(":{DATABASE_PASSWORD}@"), 1);
    let mut written = Written::default();
    let file_with = |name: &str, password: &str| {
        let path = written.path(name);
        fs::write(&path, format!("{password}\n")).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let right = file_with("right", PASSWORD_IN_FILE);
    let wrong = file_with("wrong", WRONG_PASSWORD_IN_FILE);
    let by = |ledger_url: &str, password_file: &str| {
        talkative(&[
            ("REGISTRY_URL", &redis_url),
            ("LEDGER_URL", ledger_url),
            ("LEDGER_PASSWORD_FILE", password_file),
        ])
    };
    let settings = by(&database_url, &right);

    let closed = format!("postgres://seatkeeper:{DATABASE_PASSWORD}@127.0.0.1:{}/seatkeeper", port::free());
    // The server retries the connection for longer than the test takes.
    let _hopeless = written.serve(&talkative(&[("LEDGER_URL", &closed)]));
    let nobody = database_url.replace("/test_", "/no_such_");
    for (ledger_url, password_file) in
        [(&nobody, &*right), (&database_url, &*wrong), (&database_url, "/no/such/file")]
    {
        let failing = written.serve(&by(ledger_url, password_file));
        written.has_failed(failing);
    }
    let server = written.serve(&settings);
    let mut tokens = story::told(&mut written, &server.url(), &settings).await;
    // Redis comes back without the user, so that the password is refused.
    redis.kill();
    tokens.extend(story::told_that_it_fails(&mut written, &server.url(), &settings).await);
    redis.start_again(Memory::Lost);
    tokens.extend(story::told_that_it_fails(&mut written, &server.url(), &settings).await);
    // Killed, because a graceful shutdown would wait for the unreachable stores.
    drop(server);
    written.must_have_none(&all_of(&tokens));
}

#[test]
fn of_the_key_that_a_first_start_makes() {
    let mut written = Written::default();
    let server = written.serve(&[("SEATKEEPER_LOG_LEVEL".to_owned(), "trace".to_owned())]);
    server.url();
    written.end(server);
    let key = fs::read_to_string(written.path("data").join(KEY_FILE_NAME)).unwrap();
    let lines: Vec<_> = key.lines().filter(|line| line.len() > 10 && !line.starts_with('-')).collect();
    assert!(!lines.is_empty(), "no key");
    written.must_have_none(&lines);
}

#[test]
fn of_settings_that_are_shown_or_wrong() {
    let mut written = Written::default();
    let key = "canary-of-a-short-secret".to_owned();
    let right = talkative(&[
        ("REGISTRY_URL", &format!("rediss+cluster://ann:{REDIS_PASSWORD}@127.0.0.1:1,127.0.0.1:2")),
        ("LEDGER_URL", &format!("postgres://ann:{DATABASE_PASSWORD}@127.0.0.1:1/seatkeeper")),
        ("USAGE_SINK_TOKEN", SINK_TOKEN),
    ]);
    for args in [&["config"][..], &["config", "check"]] {
        assert!(written.run(&right, args), "right settings");
    }
    for (name, value) in [
        ("AUTH_SECRET", key.clone()),
        ("LEDGER_URL", format!("mysql://ann:{DATABASE_PASSWORD}@host/x")),
        ("LEDGER_URL", format!("postgres://ann:{DATABASE_PASSWORD}@host:port/x")),
        ("LEDGER_URL", DATABASE_PASSWORD.to_owned()),
        ("REGISTRY_URL", format!("redis://ann:{REDIS_PASSWORD}@host:port")),
        ("REGISTRY_URL", format!("http://ann:{REDIS_PASSWORD}@host")),
        ("REGISTRY_URL", format!("redis://{REDIS_PASSWORD}@host:x:y")),
        ("REGISTRY_URL", REDIS_PASSWORD.to_owned()),
        ("USAGE_SINK_TOKEN", format!("{SINK_TOKEN} and a space")),
        ("USAGE_SINK_URL", format!("https://ann:{SINK_TOKEN}@host/usage")),
        ("AUTH_JWKS_URL", format!("https://ann:{TOKEN_SECRET}@host/keys")),
        ("SERVER_SECRET", TOKEN_SECRET.to_owned()),
    ] {
        let settings = [talkative(&[]), vec![(format!("SEATKEEPER_{name}"), value)]].concat();
        for args in [&["config"][..], &["config", "check"], &["serve"]] {
            assert!(!written.run(&settings, args), "{name} is wrong");
        }
    }
    for text in [
        format!("[auth]\nsecret = \"{TOKEN_SECRET}\n"),
        format!("[auth]\nsecret = {TOKEN_SECRET}\n"),
        format!("[auth]\nsecret = [\"{TOKEN_SECRET}\"]\n"),
        format!("[auth]\nsecret = \"{TOKEN_SECRET}\"\nsecret = \"{TOKEN_SECRET}\"\n"),
        format!("[auth]\nsecret = \"{TOKEN_SECRET}\" x\n"),
        format!("[usage]\nsink_token = '{SINK_TOKEN}\n"),
        format!("[ledger]\nurl = {{ at = \"{DATABASE_PASSWORD}\" }}\n"),
        format!("[ledger]\nurl = \"postgres://ann:{DATABASE_PASSWORD}@host/x\nretention_days = 1\n"),
    ] {
        let path = written.path("wrong.toml");
        fs::write(&path, &text).unwrap();
        let path = path.to_str().unwrap();
        for args in [&["config", "--config", path][..], &["config", "check", "--config", path]] {
            assert!(!written.run(&[], args), "{text}");
        }
    }
    let path = written.path("key.pem");
    fs::write(&path, TOKEN_SECRET).unwrap();
    let settings = [("SEATKEEPER_AUTH_KEY_FILE".to_owned(), path.to_str().unwrap().to_owned())];
    assert!(!written.run(&settings, &["serve"]), "a file without a key");
    for args in [
        format!("serve --registry redis://ann:{REDIS_PASSWORD}@host:port"),
        format!("serve --ledger postgres://ann:{DATABASE_PASSWORD}@host:port/x"),
        format!("serve --ledger mysql://ann:{DATABASE_PASSWORD}@host/x"),
        format!("migrate --ledger postgres://ann:{DATABASE_PASSWORD}@host:port/x"),
        format!("license list --server http://127.0.0.1:1 --token {BEARER}"),
        format!("license list --server nonsense --token {BEARER}"),
    ] {
        let args: Vec<_> = args.split(' ').collect();
        assert!(!written.run(&[], &args), "{args:?}");
    }
    written.must_have_none(&all_of(&[key]));
}
