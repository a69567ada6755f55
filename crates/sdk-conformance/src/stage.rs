//! The stage of one scenario: a server with a license, a proxy in front of it, and drivers of one language.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::driver::{Driver, LONG, Transcript};
use crate::invariants::Evidence;
use crate::language::Language;
use crate::proxy::{Identity, Proxy};
use crate::server::Server;
use crate::topology::Topology;

/// The terms of the license.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The number of seats.
    pub seats: u32,
    /// The life of a session after its last heartbeat.
    pub ttl: Duration,
}

impl Default for Terms {
    fn default() -> Self {
        Self { seats: 1, ttl: Duration::from_secs(3) }
    }
}

/// The source of a driver's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A token of an hour.
    Token,
    /// A file, [`Stage::token_file`], with a token of an hour at first.
    File,
    /// License tokens by the license key.
    LicenseKey,
}

/// The client and the server of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// The language of the client.
    pub language: Language,
    /// The nodes of the server.
    pub topology: Topology,
    /// The driver of the Rust client that cargo built.
    pub rust_driver: &'static str,
}

/// The stage of one scenario.
#[derive(Debug)]
pub struct Stage {
    /// The server.
    pub server: Server,
    /// The proxy between drivers and server.
    pub proxy: Proxy,
    /// The client and the server.
    pub cast: Cast,
    /// The id of the license.
    pub license_id: String,
    /// The terms of the license.
    pub terms: Terms,
    key: String,
    tokens: Vec<String>,
    random: StdRng,
    files: TempDir,
    ca_file: Option<PathBuf>,
    finished: Vec<Transcript>,
}

impl Stage {
    /// Starts a server with a license, and a proxy. Prints the seed, which `SEATKEEPER_SEED` sets.
    pub async fn start(cast: Cast, terms: Terms) -> Self {
        Self::start_with(cast, terms, None).await
    }

    /// Starts a server as [`Stage::start`] does. Clients speak TLS with the proxy, which has `identity` at first, and trust
    /// the authority in `ca_file`.
    pub async fn start_with_tls(cast: Cast, terms: Terms, identity: &Identity, ca_file: PathBuf) -> Self {
        let mut stage = Self::start_with(cast, terms, Some(identity)).await;
        stage.ca_file = Some(ca_file);
        stage
    }

    async fn start_with(cast: Cast, terms: Terms, identity: Option<&Identity>) -> Self {
        let seed = env::var("SEATKEEPER_SEED")
            .map_or_else(|_| rand::random(), |seed| seed.parse().expect("a number"));
        eprintln!("SEATKEEPER_SEED={seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let server = Server::start(cast.topology).await;
        let key = format!("CONFORMANCE-{:016X}", random.random::<u64>());
        let license_id = server.create_license(&key, terms.seats, terms.ttl).await;
        let proxy = Proxy::start(server.addresses(), identity).await;
        let files = tempfile::tempdir().expect("a directory");
        let (tokens, finished) = (Vec::new(), Vec::new());
        Self { server, proxy, cast, license_id, terms, key, tokens, random, files, ca_file: None, finished }
    }

    /// Returns the interval between two heartbeats: the server tells whole seconds.
    #[must_use]
    pub fn interval(&self) -> Duration {
        Duration::from_secs(self.terms.ttl.as_secs() / 3)
    }

    /// Returns a random span below `limit`.
    pub fn random_span(&mut self, limit: Duration) -> Duration {
        limit.mul_f64(self.random.random())
    }

    /// Returns the path of the token file.
    #[must_use]
    pub fn token_file(&self) -> PathBuf {
        self.files.path().join("token")
    }

    /// Writes a new token to the token file.
    pub async fn write_token(&mut self, ttl: &str) {
        let token = self.new_token(ttl).await;
        let new = self.files.path().join("token.new");
        fs::write(&new, token)
            .and_then(|()| fs::rename(&new, self.token_file()))
            .expect("a writable directory");
    }

    async fn new_token(&mut self, ttl: &str) -> String {
        let token = self.server.token("ann", None, ttl).await;
        self.tokens.push(token.clone());
        token
    }

    /// Adds the address of the server and a token to the fields of a command.
    pub async fn add_access(&mut self, fields: &mut Value, event_streams: bool) {
        fields["url"] = self.proxy.urls().into();
        fields["event_streams"] = event_streams.into();
        fields["token"] = self.new_token("1h").await.into();
    }

    /// Starts a driver with an open client, and leaves the states of its seats alone.
    pub async fn quiet_driver(&mut self, event_streams: bool) -> Driver {
        let mut driver = Driver::start(self.cast.language.driver(self.cast.rust_driver));
        let mut options = json!({});
        self.add_access(&mut options, event_streams).await;
        driver.open(options).await;
        driver
    }

    /// Starts a driver with an open client.
    pub async fn driver(&mut self, access: Access, event_streams: bool) -> Driver {
        let mut command = self.cast.language.driver(self.cast.rust_driver);
        let mut options = json!({"url": self.proxy.urls(), "event_streams": event_streams});
        if let Some(path) = &self.ca_file {
            command.env("NODE_EXTRA_CA_CERTS", path).env("SSL_CERT_FILE", path);
            options["ca_file"] = path.to_string_lossy().into();
        }
        match access {
            Access::Token => options["token"] = self.new_token("1h").await.into(),
            Access::File => {
                if !self.token_file().exists() {
                    self.write_token("1h").await;
                }
                options["token_file"] = self.token_file().to_string_lossy().into();
            }
            Access::LicenseKey => options["license_key"] = self.key.as_str().into(),
        }
        let mut driver = Driver::start(command);
        driver.open(options).await;
        driver.watch_states();
        driver
    }

    /// Returns the fields of an acquire by `machine`, whose seat has the same name.
    #[must_use]
    pub fn request(&self, machine: &str, wait: Option<u32>) -> Value {
        json!({"seat": machine, "machine": machine, "license_key": self.key, "wait": wait, "patience": 20})
    }

    /// Acquires a seat for `machine`, and returns the session.
    pub async fn acquire(&self, driver: &Driver, machine: &str) -> String {
        let answer = driver.call("acquire", self.request(machine, None), LONG).await;
        answer["session"].as_str().expect("the session of a seat").to_owned()
    }

    /// Ends a driver, and keeps the transcript for the check of the invariants.
    pub async fn close(&mut self, driver: Driver) {
        let transcript = driver.finish().await;
        self.finished.push(transcript);
    }

    /// Keeps the transcript of a dead driver for the check of the invariants.
    pub fn bury(&mut self, driver: &Driver) {
        self.finished.push(driver.transcript());
    }

    /// Proves the audit log, and checks the invariants. Every seat must be free.
    pub async fn finish(self) {
        let within = self.terms.ttl + LONG;
        self.server.wait_for_machines(&[], within).await;
        let audit = self.server.audit().await;
        self.server.verify_audit().await;
        let mut secrets = self.tokens.clone();
        secrets.push(self.key.clone());
        let interval = self.interval();
        let evidence = Evidence {
            exchanges: self.proxy.exchanges(),
            transcripts: self.finished,
            audit,
            interval,
            secrets,
            now: Instant::now(),
        };
        let broken = evidence.broken_invariants();
        let stories: Vec<_> = evidence.transcripts.iter().map(Transcript::story).collect();
        assert!(broken.is_empty(), "{}\n{}", broken.join("\n"), stories.join("\n"));
    }
}
