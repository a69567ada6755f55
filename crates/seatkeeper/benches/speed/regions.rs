//! A home region beside a server without regions, and the price of a request that another region forwards.
//!
//! All servers are on this machine. For admissions, proxies make every answer of the home late by the time between two
//! continents, to the client and to the other region alike: the price of a foreign admission is what the region adds.

mod batches;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use seatkeeper_load::{Bounds, Operation, Plan, Report, Scenario, Target};
use seatkeeper_testbed::proxy::{Network, Proxy};
use tempfile::TempDir;
use uuid::Uuid;

use crate::effort::Effort;
use crate::error::Error;
use crate::faultless::answered;
use crate::process::cpu_time;
use crate::product::{Product, directory};
use crate::renewal::renewal;
use crate::turns::{self, TURNS};
use crate::verdict::{Bound, Line, median};

/// Connections of the loads that are compared by their rate.
const CONCURRENCY: usize = 64;

/// Connections of the loads that renew seats from another region: a batch of 50 ms has a heartbeat of each.
const AWAY_CONCURRENCY: usize = 640;

/// All connections renew one screen, faster than a client may.
const UNLIMITED: &str = "[limits]\ndevices_heartbeats_per_minute = 0\nservice_heartbeats_per_minute = 0\n";

/// The lowest ratio at which the traffic of a home counts as no slower than without regions.
const AS_FAST: Bound = Bound::AtLeast(0.97);

/// A batched heartbeat must cost the home less than a forwarded heartbeat.
const LESS: Bound = Bound::Below(1.0);

/// The round trip between two continents.
const FAR: Duration = Duration::from_millis(80);

/// An address at which no server listens.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// The most milliseconds that a foreign admission may take beyond the same round trip to the home.
const MILLISECONDS_ADDED: Bound = Bound::AtMost(2.0);

/// The servers: without regions, the home, a region that forwards, and a region that batches heartbeats.
struct Servers {
    plain: Product,
    home: Product,
    forwarding: Product,
    batching: Product,
    /// The way of a client to the home, and of the region that forwards.
    ways: [Proxy; 2],
    /// The way of the home to the region that forwards.
    _to_us: Proxy,
    // Dropped after the servers.
    _files: TempDir,
}

/// The figures of one round.
struct Round {
    /// Heartbeats of seats and of screens, and acquires with releases, per second: without regions, and at home.
    heartbeats: [f64; 2],
    screens: [f64; 2],
    cycles: [f64; 2],
    /// Microseconds of the home's CPU for a heartbeat of a region that forwards, and of a region that batches.
    foreign_heartbeat_cpu: [f64; 2],
    /// Median latency of an admission, in milliseconds: at the home far away, and by the region that forwards.
    admission_ms: [f64; 2],
}

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    let servers = Servers::start().await?;
    let license = servers.home.license(2 * CONCURRENCY as u32).await?;
    let away_license = servers.home.license(2 * AWAY_CONCURRENCY as u32).await?;
    let plain_license = servers.plain.license(2 * CONCURRENCY as u32).await?;
    let screens = [servers.plain.screen().await?, servers.home.screen().await?];
    let mut rounds = Vec::new();
    // The first round warms up and is not counted.
    for round in 0..=effort.rounds {
        eprintln!("regions: round {round} of {}", effort.rounds);
        rounds.push(
            play(effort, &servers, [&plain_license, &license, &away_license], &screens, round % 2 == 1)
                .await?,
        );
    }
    let mut lines = lines(&rounds[1..]);
    lines.insert(2, after_a_move(effort, &servers.home, &screens).await?);
    let crowded = servers.home.license(batches::SEATS).await?;
    lines.push(batches::run(effort, &servers.batching, &crowded).await?);
    Ok(lines)
}

/// Plays every load once on both of its sides. The sides swap places from round to round.
async fn play(
    effort: Effort,
    servers: &Servers,
    [plain_license, license, away_license]: [&str; 3],
    screens: &[(Target, Uuid); 2],
    backwards: bool,
) -> Result<Round, Error> {
    let Servers { plain, home, forwarding, batching, ways, .. } = servers;
    let heartbeats = Scenario::Heartbeats { sessions_per_connection: 1 };
    let cycle = Scenario::Cycle { heartbeats: 0 };
    let rate = |report: &Report, _| report.requests_per_second;
    let cpu_micros = |report: &Report, cpu: Duration| cpu.as_secs_f64() * 1e6 / report.requests as f64;
    let latency = |report: &Report, _| {
        report.operations.get(&Operation::Acquire).map_or(f64::NAN, |acquires| acquires.p50_ms)
    };
    let at_home = [(plain.target()?, plain_license), (home.target()?, license)];
    let away = [(forwarding.target()?, away_license), (batching.target()?, away_license)];
    let afar = home.with_our_token(&format!("http://{}", ways[0].address()))?;
    let both = [(afar, license), (forwarding.target()?, license)];
    let home_pid = home.pid();
    let loads = |sides: &[(Target, &'_ str); 2], scenario: Scenario, concurrency| {
        let sides = sides.clone().map(|(target, license)| (target, license.to_owned(), scenario.clone()));
        Loads { effort, sides, concurrency, home_pid, backwards }
    };
    let renewals = screens.clone().map(|(target, screen)| (target, String::new(), renewal(screen)));
    let renewals = Loads { effort, sides: renewals, concurrency: CONCURRENCY, home_pid, backwards };
    let admissions = async || {
        ways.iter().for_each(|way| way.set(Network::AnswersLate(FAR)));
        let played = loads(&both, cycle.clone(), 1).play(latency).await;
        ways.iter().for_each(|way| way.set(Network::Well));
        played
    };
    Ok(Round {
        heartbeats: loads(&at_home, heartbeats.clone(), CONCURRENCY).play(rate).await?,
        screens: renewals.play(rate).await?,
        cycles: loads(&at_home, cycle.clone(), CONCURRENCY).play(rate).await?,
        foreign_heartbeat_cpu: loads(&away, heartbeats, AWAY_CONCURRENCY).play(cpu_micros).await?,
        admission_ms: admissions().await?,
    })
}

/// Moves the home of a subscriber away, and renews the screen of another: the home of each device is looked up from now on.
async fn after_a_move(effort: Effort, home: &Product, screens: &[(Target, Uuid); 2]) -> Result<Line, Error> {
    home.move_away("mover", "us").await?;
    let mut rates = Vec::new();
    for round in 0..=effort.rounds {
        eprintln!("regions after a move: round {round} of {}", effort.rounds);
        let sides = screens.clone().map(|(target, screen)| (target, String::new(), renewal(screen)));
        let (home_pid, backwards) = (home.pid(), round % 2 == 1);
        let loads = Loads { effort, sides, concurrency: CONCURRENCY, home_pid, backwards };
        rates.push(loads.play(|report, _| report.requests_per_second).await?);
    }
    Ok(beside("heartbeats of a screen at home, after a move / without regions", &rates[1..]))
}

/// One load on two servers, each with a license and a scenario.
struct Loads {
    effort: Effort,
    sides: [(Target, String, Scenario); 2],
    concurrency: usize,
    home_pid: u32,
    backwards: bool,
}

impl Loads {
    /// Returns the mean figure of each side, from the report and the CPU time of the home.
    async fn play(&self, figure: impl Fn(&Report, Duration) -> f64) -> Result<[f64; 2], Error> {
        let mut figures = [0.0; 2];
        for number in turns::sides(TURNS, self.backwards) {
            let (target, license, scenario) = &self.sides[number];
            let plan = Plan {
                target: target.clone(),
                license_keys: vec![license.clone()],
                concurrency: self.concurrency,
                bounds: Bounds { duration: self.effort.measured / TURNS, turns: None },
                scenario: scenario.clone(),
            };
            let before = cpu_time(self.home_pid)?;
            let report = answered(&plan).await?;
            let cpu = cpu_time(self.home_pid)?.saturating_sub(before);
            figures[number] += figure(&report, cpu) / f64::from(TURNS);
        }
        Ok(figures)
    }
}

/// Returns the line of the rates without regions and at home.
fn beside(what: &str, rates: &[[f64; 2]]) -> Line {
    let ratios: Vec<f64> = rates.iter().map(|[plain, home]| home / plain).collect();
    let [plain, home] = [0, 1].map(|side| median(&rates.iter().map(|rates| rates[side]).collect::<Vec<_>>()));
    Line::new(what, AS_FAST, &ratios, format!("{home:.0} against {plain:.0} a second"))
}

fn lines(rounds: &[Round]) -> Vec<Line> {
    let middle = |figure: &dyn Fn(&Round) -> f64| median(&rounds.iter().map(figure).collect::<Vec<_>>());
    let beside = |what: &str, rates: fn(&Round) -> [f64; 2]| {
        beside(what, &rounds.iter().map(rates).collect::<Vec<_>>())
    };
    let added: Vec<f64> = rounds.iter().map(|round| round.admission_ms[1] - round.admission_ms[0]).collect();
    let admissions = format!(
        "{:.2} ms from another region, {:.2} ms from the home as far away",
        middle(&|round| round.admission_ms[1]),
        middle(&|round| round.admission_ms[0]),
    );
    let cpu = |side: usize| middle(&|round| round.foreign_heartbeat_cpu[side]);
    let batched: Vec<f64> =
        rounds.iter().map(|round| round.foreign_heartbeat_cpu[1] / round.foreign_heartbeat_cpu[0]).collect();
    let batched_cpu = format!("{:.1} against {:.1} µs a heartbeat", cpu(1), cpu(0));
    vec![
        beside("heartbeats at home / without regions", |round| round.heartbeats),
        beside("heartbeats of a screen at home / without regions", |round| round.screens),
        beside("acquire + release at home / without regions", |round| round.cycles),
        Line::new("the home's CPU for a batched heartbeat / a forwarded", LESS, &batched, batched_cpu),
        Line::new(
            "ms that a foreign admission adds to a round trip of 80 ms",
            MILLISECONDS_ADDED,
            &added,
            admissions,
        ),
    ]
}

impl Servers {
    async fn start() -> Result<Self, Error> {
        let files = directory()?;
        let path = |name: &str| files.path().join(name);
        for name in ["tokens", "license-tokens", "eu", "us", "ap"] {
            write_key_pair(files.path(), name)?;
        }
        let peer = |number, name, url: &str| {
            let key = path(&format!("{name}.pub.pem"));
            format!(
                "[[region.peers]]\nnumber = {number}\nname = {name:?}\nurl = {url:?}\npublic_key_file = {key:?}\n"
            )
        };
        let start = |file: &str, region: String| {
            let auth = format!(
                "[auth]\nkey_file = {:?}\nlicense_token_key_file = {:?}\n",
                path("tokens.pem"),
                path("license-tokens.pem")
            );
            let config: PathBuf = path(file);
            fs::write(&config, UNLIMITED.to_owned() + &auth + &region)
                .map_err(Error::system("write a settings file"))?;
            Product::start_configured(&config)
        };
        let region = |number: u8, name: &str, heartbeats: &str, peer: String| {
            let key = path(&format!("{name}.pem"));
            format!(
                "[region]\nnumber = {number}\nname = {name:?}\nanchor = 1\nkey_file = {key:?}\nheartbeats = {heartbeats:?}\n{peer}"
            )
        };
        let plain = start("plain.toml", String::new())?;
        // The home starts before its peers have an address.
        let to_us = Proxy::start(NOWHERE, 0).await;
        let peers =
            peer(2, "us", &format!("http://{}", to_us.address())) + &peer(3, "ap", "http://127.0.0.1:1");
        let home = start("eu.toml", region(1, "eu", "forward", peers))?;
        let home_address = address_of(&home)?;
        let ways = [Proxy::start(home_address, 1).await, Proxy::start(home_address, 2).await];
        let way = format!("http://{}", ways[1].address());
        let forwarding = start("us.toml", region(2, "us", "forward", peer(1, "eu", &way)))?;
        to_us.redirect(address_of(&forwarding)?);
        let batching = start("ap.toml", region(3, "ap", "batched", peer(1, "eu", home.address())))?;
        // The home assigns nothing until a peer has accepted it.
        home.license(1).await?;
        Ok(Self { plain, home, forwarding, batching, ways, _to_us: to_us, _files: files })
    }
}

fn address_of(product: &Product) -> Result<SocketAddr, Error> {
    let address = product.address().trim_start_matches("http://");
    address.parse().map_err(|_| Error::Worthless { why: format!("{address} is no address") })
}

/// Writes a private key to `NAME.pem` and its public key to `NAME.pub.pem`.
fn write_key_pair(dir: &Path, name: &str) -> Result<(), Error> {
    let no_key = |_| Error::Worthless { why: "no key can be made".to_owned() };
    let pair = Ed25519KeyPair::generate().map_err(no_key)?;
    let private = pair.to_pkcs8v1().map_err(no_key)?;
    // The fixed beginning of an Ed25519 public key (RFC 8410).
    let mut public = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    public.extend_from_slice(pair.public_key().as_ref());
    for (file, tag, der) in [
        (format!("{name}.pem"), "PRIVATE KEY", private.as_ref()),
        (format!("{name}.pub.pem"), "PUBLIC KEY", public.as_slice()),
    ] {
        let text = pem::encode(&pem::Pem::new(tag, der));
        fs::write(dir.join(file), text).map_err(Error::system("write a key"))?;
    }
    Ok(())
}
