//! Nodes over one Redis and one ledger, and waiting until they serve.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use seatkeeper_ledger::{Location, PostgresUrl};
use seatkeeper_testbed::postgres::{self, Database};
use serde_json::Value;

use crate::house::{Answer, Client, Doors, House};

/// How long a bucket may go without being served.
const SERVED_WAIT_MAX: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(20);

/// Several nodes that share a ledger in PostgreSQL, and the key of their tokens.
pub(crate) struct Nodes {
    pub(crate) houses: Vec<House>,
    ledger: String,
    /// Of the server that tests share, unless the ledger is on one of the test's own.
    database: Option<Database>,
    settings: &'static [(&'static str, &'static str)],
}

impl Nodes {
    /// One node over each of these registries.
    pub(crate) fn over(registries: &[String]) -> Self {
        Self::over_with(registries, &[])
    }

    /// Likewise, with these settings besides.
    pub(crate) fn over_with(
        registries: &[String],
        settings: &'static [(&'static str, &'static str)],
    ) -> Self {
        let database = postgres::database();
        let mut nodes = Self { settings, ..Self::on(database.url()) };
        nodes.database = Some(database);
        registries.iter().for_each(|registry| nodes.add(registry));
        nodes
    }

    /// So many nodes without a Redis.
    pub(crate) fn in_ledger(count: usize) -> Self {
        let mut nodes = Self::over(&[]);
        let ledger = nodes.ledger.clone();
        (0..count).for_each(|_| nodes.add(&ledger));
        nodes
    }

    /// No node yet, and this ledger.
    pub(crate) fn on(ledger: String) -> Self {
        Self { houses: Vec::new(), ledger, database: None, settings: &[] }
    }

    /// Adds a node over this registry.
    pub(crate) fn add(&mut self, registry: &str) {
        self.add_in(&[], registry);
    }

    /// Likewise, in an environment that has these besides.
    pub(crate) fn add_in(&mut self, environment: &[(&str, PathBuf)], registry: &str) {
        let mut settings = vec![
            ("REGISTRY_URL", registry),
            ("LEDGER_URL", &*self.ledger),
            ("AUTH_ALGORITHM", "HS256"),
            ("AUTH_SECRET", "a secret that all nodes of a test know"),
        ];
        settings.extend(self.settings);
        self.houses.push(House::open_in(environment, &settings));
    }

    /// A client at each node.
    pub(crate) fn clients(&self) -> Vec<Client> {
        self.houses.iter().map(|house| house.client("crowd")).collect()
    }

    /// Where they listen.
    pub(crate) fn doors(&self) -> Doors {
        Doors::new(self.houses.iter().map(|house| house.url().to_owned()))
    }

    /// Where their ledger is.
    pub(crate) fn ledger(&self) -> Location {
        let ledger: PostgresUrl = self.ledger.parse().expect("the URL of a database");
        ledger.into()
    }

    /// Stops all nodes, whatever they logged, and proves the audit log. Gives the ledger, which is dropped with it.
    pub(crate) fn close(mut self) -> Closed {
        for house in &mut self.houses {
            let (status, log) = house.stop();
            assert_eq!(status.code(), Some(0), "{log}");
        }
        self.houses[0].prove();
        Closed { ledger: self.ledger(), _database: self.database }
    }
}

/// What nodes leave behind.
pub(crate) struct Closed {
    pub(crate) ledger: Location,
    // Dropped with this.
    _database: Option<Database>,
}

/// The seat that a machine got.
pub(crate) async fn seat(client: &Client, license: &Value, machine: &str) -> Value {
    client.acquire(&license["license_key"], machine).await.expect(201)["session_id"].clone()
}

/// Asks until the answer is no 503.
pub(crate) async fn answered(ask: impl AsyncFn() -> Answer) -> Answer {
    let started = Instant::now();
    loop {
        let answer = ask().await;
        if answer.status != 503 {
            return answer;
        }
        assert!(started.elapsed() < SERVED_WAIT_MAX, "not served: {:#}", answer.body);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until a session is served again: anything but a renewal or a 503 fails the test.
pub(crate) async fn renewed(client: &Client, session: &Value) {
    answered(async || client.heartbeat(session).await).await.expect(200);
}
