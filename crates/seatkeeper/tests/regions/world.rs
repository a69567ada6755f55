//! Three regions in this process: `eu`, `us` and `ap`, numbers 1 to 3. A proxy stands between each region and each peer.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Method;
use seatkeeper_core::SessionId;
use seatkeeper_ledger::homes::OwnRegion;
use seatkeeper_ledger::{Ledger, Location};
use seatkeeper_server::auth::{TokenRequest, mint};
use seatkeeper_server::wall_clock;
use seatkeeper_server::{LimitsSettings, PeerSettings, RegistryUrl, Running, Secret, Settings, start};
use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::harness::{Answer, Client, run_with, write_ed25519_key};

pub(crate) const NAMES: [&str; 3] = ["eu", "us", "ap"];
/// The index of the anchor of every tenant.
pub(crate) const EU: usize = 0;
pub(crate) const US: usize = 1;
pub(crate) const AP: usize = 2;

pub(crate) const TENANT: &str = "acme";

/// An address at which no server listens.
pub(crate) const NOWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 1);

/// The shared stores of a region. A region without shared stores is embedded.
struct Stores {
    redis: Redis,
    database: Database,
    /// The last backup of the database.
    backup: Option<Database>,
    /// The ledger of the region is the backup.
    is_lost: bool,
}

impl Stores {
    fn start() -> Self {
        Self { redis: Redis::start(), database: postgres::database(), backup: None, is_lost: false }
    }

    /// Returns the URL of the region's ledger.
    fn ledger_url(&self) -> String {
        let restored = self.backup.as_ref().filter(|_| self.is_lost);
        restored.unwrap_or(&self.database).url()
    }
}

pub(crate) struct World {
    dir: TempDir,
    pub(crate) settings: Vec<Settings>,
    servers: [Mutex<Option<Server>>; 3],
    /// The network from a region to a peer.
    links: Vec<Vec<Option<Proxy>>>,
    stores: Vec<Option<Stores>>,
}

struct Server {
    stop: CancellationToken,
    running: Running,
}

impl World {
    /// Starts three embedded regions.
    pub(crate) async fn start() -> Self {
        Self::start_with([false; 3], |_| {}).await
    }

    /// Starts three regions. A region of `shares` has a Redis and a PostgreSQL of its own. `change` changes the settings
    /// of every region.
    pub(crate) async fn start_with(shares: [bool; 3], change: impl Fn(&mut Settings)) -> Self {
        let world = Self::prepare(shares, change).await;
        for region in 0..3 {
            world.start_region(region).await;
        }
        world
    }

    /// Starts a single embedded region. The two others have never run.
    pub(crate) async fn start_alone(region: usize) -> Self {
        let world = Self::prepare([false; 3], |_| {}).await;
        world.start_region(region).await;
        world
    }

    async fn prepare(shares: [bool; 3], change: impl Fn(&mut Settings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for file in ["tokens", "licenses"].into_iter().chain(NAMES) {
            write_key_pair(dir.path(), file);
        }
        let mut links = Vec::new();
        for from in 0..3 {
            let mut row = Vec::new();
            for to in 0..3 {
                let seed = (from * 3 + to) as u64;
                row.push(if from == to { None } else { Some(Proxy::start(NOWHERE, seed).await) });
            }
            links.push(row);
        }
        let stores: Vec<_> = shares.into_iter().map(|shares| shares.then(Stores::start)).collect();
        let mut settings = Vec::new();
        for region in 0..3 {
            let mut own = settings_of(dir.path(), region, &links[region], stores[region].as_ref());
            change(&mut own);
            settings.push(own);
        }
        Self { dir, settings, servers: [const { Mutex::new(None) }; 3], links, stores }
    }

    /// Starts a stopped region, and leads the links of the others to it.
    pub(crate) async fn start_region(&self, region: usize) {
        let stop = CancellationToken::new();
        let running = start(self.settings[region].clone(), stop.clone()).await.expect("a region that starts");
        for from in 0..3 {
            if let Some(link) = &self.links[from][region] {
                link.redirect(running.addr);
            }
        }
        *self.servers[region].lock().unwrap() = Some(Server { stop, running });
    }

    /// Stops a region.
    pub(crate) async fn stop_region(&self, region: usize) {
        let server = self.servers[region].lock().unwrap().take();
        let Server { stop, running } = server.expect("a running region");
        for from in 0..3 {
            if let Some(link) = &self.links[from][region] {
                link.redirect(NOWHERE);
            }
        }
        stop.cancel();
        running.finished().await;
    }

    /// Stops a region for a moment, and backs its ledger up.
    pub(crate) async fn back_up(&mut self, region: usize) {
        self.stop_region(region).await;
        match &mut self.stores[region] {
            Some(stores) => stores.backup = Some(stores.database.copy()),
            None => {
                let data = &self.settings[region].ledger.data_dir;
                copy_dir(data, &restored(data));
            }
        }
        self.start_region(region).await;
    }

    /// Stops a region for good, and makes the backup its ledger.
    pub(crate) async fn lose(&mut self, region: usize) {
        self.stop_region(region).await;
        self.restore(region);
    }

    /// Makes the backup the ledger of a region.
    pub(crate) fn restore(&mut self, region: usize) {
        let ledger = &mut self.settings[region].ledger;
        match &mut self.stores[region] {
            Some(stores) => {
                stores.is_lost = true;
                ledger.url = Some(Secret::new(stores.ledger_url()));
            }
            None => ledger.data_dir = restored(&ledger.data_dir),
        }
    }

    /// Changes the networks between all regions.
    pub(crate) fn set_all(&self, network: Network) {
        for link in self.links.iter().flatten().flatten() {
            link.set(network);
        }
    }

    /// Heals all networks, and lets every answer take a round trip between the continents.
    pub(crate) fn set_far_apart(&self) {
        for (from, row) in self.links.iter().enumerate() {
            for (to, link) in row.iter().enumerate() {
                let round_trip = if from == AP || to == AP { 150 } else { 80 };
                if let Some(link) = link {
                    link.set(Network::AnswersLate(Duration::from_millis(round_trip)));
                }
            }
        }
    }

    /// Leads the link from a region to a peer elsewhere.
    pub(crate) fn redirect(&self, from: usize, to: usize, upstream: SocketAddr) {
        self.links[from][to].as_ref().expect("a link between two regions").redirect(upstream);
    }

    /// Changes the networks between a region and its peers, both ways.
    pub(crate) fn set_around(&self, region: usize, network: Network) {
        for other in 0..3 {
            for link in [&self.links[region][other], &self.links[other][region]].into_iter().flatten() {
                link.set(network);
            }
        }
    }

    /// Returns the address of a region.
    pub(crate) fn address(&self, region: usize) -> SocketAddr {
        let server = self.servers[region].lock().unwrap();
        server.as_ref().expect("a running region").running.addr
    }

    /// Returns the base URL of a region.
    pub(crate) fn url(&self, region: usize) -> String {
        format!("http://{}", self.address(region))
    }

    /// Returns a client of a region for a user.
    pub(crate) fn client(&self, region: usize, user: &str) -> Client {
        self.client_with(region, user, "")
    }

    pub(crate) fn service(&self, region: usize) -> Client {
        self.client_with(region, "service", "service")
    }

    pub(crate) fn admin(&self, region: usize) -> Client {
        self.client_with(region, "ops", "admin")
    }

    /// Returns a client of a region for an admin of another tenant.
    pub(crate) fn admin_of(&self, region: usize, tenant: &str) -> Client {
        let ttl = Duration::from_secs(3_600);
        let request = TokenRequest {
            tenant: tenant.to_owned(),
            user: "ops".to_owned(),
            scopes: "admin".to_owned(),
            ttl,
        };
        Client::new(&self.url(region), mint(&self.settings[region], &request).unwrap())
    }

    fn client_with(&self, region: usize, user: &str, scopes: &str) -> Client {
        self.client_for(region, user, scopes, Duration::from_secs(3_600))
    }

    /// Returns a client whose token is valid for `ttl`.
    pub(crate) fn client_for(&self, region: usize, user: &str, scopes: &str, ttl: Duration) -> Client {
        let request =
            TokenRequest { tenant: TENANT.to_owned(), user: user.to_owned(), scopes: scopes.to_owned(), ttl };
        Client::new(&self.url(region), mint(&self.settings[region], &request).unwrap())
    }

    /// Signs a token of region `from` for region `to`: for a client with the address `client`, or for the region
    /// itself.
    pub(crate) async fn region_token(&self, from: usize, to: usize, client: Option<&str>) -> String {
        let ledger = Ledger::open_read_only(self.ledger(from)).await.unwrap();
        let OwnRegion { deployment, .. } = ledger.own_region().await.unwrap().expect("a region");
        ledger.close().await;
        self.signed(&deployment.to_string(), (from, to), client, 0)
    }

    /// Signs such a token by a clock that is `ahead` seconds ahead of the receiver's.
    pub(crate) fn region_token_ahead(&self, ahead: i64, from: usize, to: usize) -> String {
        let deployment = "00000000-0000-4000-8000-000000000000";
        self.signed(deployment, (from, to), Some("192.0.2.1"), ahead)
    }

    /// Signs a token of another deployment with the key of region `from`, for the deployment itself.
    pub(crate) fn region_token_as(&self, deployment: &str, from: usize, to: usize) -> String {
        self.signed(deployment, (from, to), None, 0)
    }

    fn signed(
        &self,
        deployment: &str,
        (from, to): (usize, usize),
        client: Option<&str>,
        ahead: i64,
    ) -> String {
        let key = std::fs::read(self.key_file(NAMES[from])).unwrap();
        let name = |region: usize| format!("seatkeeper-region-{}", region + 1);
        let expires = wall_clock::now().timestamp() + ahead + 60;
        let mut claims =
            json!({ "iss": name(from), "aud": name(to), "exp": expires, "deployment": deployment });
        if let Some(client) = client {
            claims["client"] = json!(client);
        }
        let header =
            Header { typ: Some("seatkeeper-region+jwt".to_owned()), ..Header::new(Algorithm::EdDSA) };
        jsonwebtoken::encode(&header, &claims, &EncodingKey::from_ed_pem(&key).unwrap()).unwrap()
    }

    /// Sends a user's request with the token of a region.
    pub(crate) async fn send_with(
        &self,
        region: usize,
        user: &str,
        region_token: &str,
        method: Method,
        path: &str,
        body: Value,
    ) -> Answer {
        let client = self.client(region, user);
        let request =
            client.http.request(method, format!("{}{path}", client.url())).bearer_auth(&client.token);
        let request = request.header("Seatkeeper-Region-Token", region_token).json(&body);
        Answer::read(request.send().await.unwrap()).await.unwrap()
    }

    /// Creates a license by a region, and returns its key.
    pub(crate) async fn license(&self, region: usize, seats: u32) -> Value {
        let license = self.admin(region).post("/api/v1/admin/licenses", json!({ "max_seats": seats })).await;
        license.expect(201)["license_key"].clone()
    }

    /// Subscribes a user by a region to a plan of two screens that refuses the third.
    pub(crate) async fn subscribe(&self, region: usize, user: &str) {
        let subscription = json!({ "user": user, "plan": "pair" });
        self.admin(region).post("/api/v1/admin/subscriptions", subscription).await.expect(201);
    }

    /// Creates the plan `pair` in every region.
    pub(crate) async fn create_plan(&self) {
        for region in 0..3 {
            let plan = json!({ "name": "pair", "device_limit": 2, "price_cents": 0, "when_full": "deny" });
            self.admin(region).post("/api/v1/admin/plans", plan).await.expect(201);
        }
    }

    /// Stops every region, and proves each audit log.
    pub(crate) async fn close(self) {
        for (region, name) in NAMES.iter().enumerate() {
            let runs = self.servers[region].lock().unwrap().is_some();
            if runs {
                self.stop_region(region).await;
            }
            let settings = &self.settings[region];
            let data_dir = settings.ledger.data_dir.to_str().unwrap();
            let url = self.stores[region].as_ref().map(Stores::ledger_url);
            let variables: Vec<_> =
                url.map(|url| ("SEATKEEPER_LEDGER_URL".to_owned(), url)).into_iter().collect();
            let output = run_with(&variables, &["audit", "verify", "--data-dir", data_dir]);
            assert!(output.status.success(), "{name}: {}{}", output.stdout, output.stderr);
        }
        let ledgers = (0..3).map(|region| match &self.stores[region] {
            Some(stores) => format!("{}={}", region + 1, stores.ledger_url()),
            None => format!("{}={}", region + 1, self.settings[region].ledger.data_dir.display()),
        });
        let ledgers: Vec<_> = ledgers.collect();
        let args: Vec<_> =
            ["audit", "verify", "--regions"].into_iter().chain(ledgers.iter().map(String::as_str)).collect();
        let output = run_with(&[], &args);
        assert!(output.status.success(), "{}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains("No two regions admitted at once."), "{}", output.stdout);
    }

    /// Returns the location of a region's ledger.
    pub(crate) fn ledger(&self, region: usize) -> Location {
        self.settings[region].ledger.location().unwrap()
    }

    /// Replaces the private key of a region. Returns the text of the new public key, which is not yet in its file.
    pub(crate) fn replace_private_key(&self, name: &str) -> String {
        let public = self.dir.path().join(format!("{name}.pub.pem"));
        let old = std::fs::read_to_string(&public).unwrap();
        write_key_pair(self.dir.path(), name);
        let new = std::fs::read_to_string(&public).unwrap();
        std::fs::write(&public, old).unwrap();
        new
    }

    /// Writes the public keys of a region.
    pub(crate) fn write_public_keys(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(format!("{name}.pub.pem")), text).unwrap();
    }

    pub(crate) fn key_file(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.pem"))
    }
}

/// Returns the region number in the id of a session.
pub(crate) fn region_of(session_id: &Value) -> u8 {
    let id: SessionId = session_id.as_str().expect("a session id").parse().unwrap();
    id.region().number()
}

/// Puts a proxy between a region and its PostgreSQL. A region without PostgreSQL is left alone.
pub(crate) fn lead_ledger_through(proxy: &Proxy, settings: &mut Settings) {
    let Some(url) = &settings.ledger.url else { return };
    let (user, rest) = url.reveal().split_once('@').unwrap();
    let (address, database) = rest.split_once('/').unwrap();
    proxy.redirect(address.parse().unwrap());
    settings.ledger.url = Some(Secret::new(format!("{user}@{}/{database}", proxy.address())));
}

/// Returns a request for a screen.
pub(crate) fn screen(device: &str) -> Value {
    json!({ "device_id": device, "device_type": "tv" })
}

fn settings_of(dir: &Path, region: usize, links: &[Option<Proxy>], stores: Option<&Stores>) -> Settings {
    let mut settings = Settings::default();
    settings.server.listen = "127.0.0.1:0".parse().unwrap();
    settings.ledger.data_dir = dir.join(format!("data-{}", NAMES[region]));
    settings.auth.key_file = Some(dir.join("tokens.pem"));
    settings.auth.license_token_key_file = Some(dir.join("licenses.pem"));
    settings.limits = unlimited();
    settings.region.number = region as u8 + 1;
    settings.region.name = NAMES[region].to_owned();
    settings.region.anchor = Some(1);
    settings.region.key_file = Some(dir.join(format!("{}.pem", NAMES[region])));
    settings.region.forward_timeout_milliseconds = 2_000;
    for (other, link) in links.iter().enumerate() {
        let Some(link) = link else { continue };
        settings.region.peers.push(PeerSettings {
            number: other as u8 + 1,
            name: NAMES[other].to_owned(),
            url: format!("http://{}", link.address()),
            public_key_file: dir.join(format!("{}.pub.pem", NAMES[other])),
        });
    }
    if let Some(Stores { redis, database, .. }) = stores {
        settings.registry.url = RegistryUrl::new(redis.url());
        settings.ledger.url = Some(Secret::new(database.url()));
    }
    settings
}

/// Returns the directory of the backup of `data`.
fn restored(data: &Path) -> PathBuf {
    data.with_file_name(format!("{}-restored", data.file_name().unwrap().to_str().unwrap()))
}

fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

fn unlimited() -> LimitsSettings {
    LimitsSettings {
        licenses_acquires_per_minute: 0,
        licenses_heartbeats_per_minute: 0,
        devices_acquires_per_minute: 0,
        devices_heartbeats_per_minute: 0,
        capacities_acquires_per_minute: 0,
        service_acquires_per_minute: 0,
        service_heartbeats_per_minute: 0,
        license_tokens_per_address_per_minute: 0,
        license_tokens_per_key_per_minute: 0,
        releases_per_address_per_minute: 0,
        ..LimitsSettings::default()
    }
}

/// Writes a private key to `NAME.pem` and its public key to `NAME.pub.pem`.
pub(crate) fn write_key_pair(dir: &Path, name: &str) {
    let private = dir.join(format!("{name}.pem"));
    write_ed25519_key(&private);
    let der = pem::parse(std::fs::read(&private).unwrap()).unwrap();
    let pair = Ed25519KeyPair::from_pkcs8(der.contents()).unwrap();
    // The fixed beginning of an Ed25519 public key (RFC 8410).
    let mut public = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    public.extend_from_slice(pair.public_key().as_ref());
    let text = pem::encode(&pem::Pem::new("PUBLIC KEY", public));
    std::fs::write(dir.join(format!("{name}.pub.pem")), text).unwrap();
}
