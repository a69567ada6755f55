//! A home region beside a server without regions, and the price of a request that another region forwards.
//!
//! All servers are on this machine, so a round trip between the regions takes next to no time: the price of a forwarded
//! request is what the two servers add to the round trip.

mod batches;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use http::Method;
use seatkeeper_load::{Bounds, FixedRequest, Operation, Plan, Report, Scenario};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use crate::effort::Effort;
use crate::error::Error;
use crate::faultless::answered;
use crate::process::cpu_time;
use crate::product::{Product, directory};
use crate::verdict::{Bound, Line, median};

/// Connections of the loads that are compared by their rate.
const CONCURRENCY: usize = 64;

/// All connections renew one screen, faster than a client may.
const UNLIMITED: &str = "[limits]\ndevices_heartbeats_per_minute = 0\nservice_heartbeats_per_minute = 0\n";

/// The lowest ratio at which the traffic of a home counts as no slower than without regions.
const AS_FAST: Bound = Bound::AtLeast(0.97);

/// A batched heartbeat must cost the home less than a forwarded heartbeat.
const LESS: Bound = Bound::Below(1.0);

/// Turns of a side in a round. Short turns spread the noise of the machine over both sides.
const TURNS: u32 = 4;

/// The most milliseconds that the two servers may add to the round trip of a foreign admission.
const MILLISECONDS_ADDED: Bound = Bound::AtMost(2.0);

/// The servers: without regions, the home, a region that forwards, and a region that batches heartbeats.
struct Servers {
    plain: Product,
    home: Product,
    forwarding: Product,
    batching: Product,
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
    /// Median latency of an admission, in milliseconds: at home, and by the region that forwards.
    admission_ms: [f64; 2],
}

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    let servers = Servers::start()?;
    let license = servers.home.license(2 * CONCURRENCY as u32).await?;
    let plain_license = servers.plain.license(2 * CONCURRENCY as u32).await?;
    let screens = [servers.plain.screen().await?, servers.home.screen().await?];
    let mut rounds = Vec::new();
    // The first round warms up and is not counted.
    for round in 0..=effort.rounds {
        eprintln!("regions: round {round} of {}", effort.rounds);
        rounds.push(play(effort, &servers, [&plain_license, &license], screens, round % 2 == 1).await?);
    }
    let mut lines = lines(&rounds[1..]);
    let crowded = servers.home.license(batches::SEATS).await?;
    lines.push(batches::run(effort, &servers.batching, &crowded).await?);
    Ok(lines)
}

/// Plays every load once on both of its sides. The sides swap places from round to round.
async fn play(
    effort: Effort,
    servers: &Servers,
    [plain_license, license]: [&str; 2],
    screens: [Uuid; 2],
    backwards: bool,
) -> Result<Round, Error> {
    let Servers { plain, home, forwarding, batching, .. } = servers;
    let heartbeats = Scenario::Heartbeats { sessions_per_connection: 1 };
    let cycle = Scenario::Cycle { heartbeats: 0 };
    let rate = |report: &Report, _| report.requests_per_second;
    let cpu_micros = |report: &Report, cpu: Duration| cpu.as_secs_f64() * 1e6 / report.requests as f64;
    let latency = |report: &Report, _| {
        report.operations.get(&Operation::Acquire).map_or(f64::NAN, |acquires| acquires.p50_ms)
    };
    let at_home = [(plain, plain_license), (home, license)];
    let away = [(forwarding, license), (batching, license)];
    let both = [(home, license), (forwarding, license)];
    let home_pid = home.pid();
    let loads = |sides: [(_, _); 2], scenario: Scenario, concurrency| {
        let sides = sides.map(|(product, license)| (product, license, scenario.clone()));
        Loads { effort, sides, concurrency, home_pid, backwards }
    };
    let renewals = [(plain, "", renewal(screens[0])), (home, "", renewal(screens[1]))];
    let renewals = Loads { effort, sides: renewals, concurrency: CONCURRENCY, home_pid, backwards };
    Ok(Round {
        heartbeats: loads(at_home, heartbeats.clone(), CONCURRENCY).play(rate).await?,
        screens: renewals.play(rate).await?,
        cycles: loads(at_home, cycle.clone(), CONCURRENCY).play(rate).await?,
        foreign_heartbeat_cpu: loads(away, heartbeats, CONCURRENCY).play(cpu_micros).await?,
        admission_ms: loads(both, cycle, 1).play(latency).await?,
    })
}

/// Returns the scenario that renews a screen.
fn renewal(screen: Uuid) -> Scenario {
    Scenario::Fixed(FixedRequest {
        method: Method::POST,
        path: "/api/v1/devices/sessions/heartbeat".to_owned(),
        body: json!({ "session_id": screen }).to_string(),
        status_expected: 204,
    })
}

/// One load on two servers, each with a license and a scenario.
struct Loads<'a> {
    effort: Effort,
    sides: [(&'a Product, &'a str, Scenario); 2],
    concurrency: usize,
    home_pid: u32,
    backwards: bool,
}

impl Loads<'_> {
    /// Returns the mean figure of each side, from the report and the CPU time of the home.
    async fn play(&self, figure: impl Fn(&Report, Duration) -> f64) -> Result<[f64; 2], Error> {
        let mut figures = [0.0; 2];
        for turn in 0..2 * TURNS {
            // The order 0, 1, 1, 0, 0, 1, 1, 0: a machine that becomes slower or faster counts for both sides alike.
            let number = usize::from((turn % 4 == 1 || turn % 4 == 2) != self.backwards);
            let (product, license, scenario) = &self.sides[number];
            let plan = Plan {
                target: product.target()?,
                license_keys: vec![(*license).to_owned()],
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

fn lines(rounds: &[Round]) -> Vec<Line> {
    let middle = |figure: &dyn Fn(&Round) -> f64| median(&rounds.iter().map(figure).collect::<Vec<_>>());
    let beside = |what: &str, rates: fn(&Round) -> [f64; 2]| {
        let ratios: Vec<f64> = rounds.iter().map(|round| rates(round)[1] / rates(round)[0]).collect();
        let (plain, home) = (middle(&|round| rates(round)[0]), middle(&|round| rates(round)[1]));
        Line::new(what, AS_FAST, &ratios, format!("{home:.0} against {plain:.0} a second"))
    };
    let added: Vec<f64> = rounds.iter().map(|round| round.admission_ms[1] - round.admission_ms[0]).collect();
    let admissions = format!(
        "{:.2} ms from another region, {:.2} ms at home",
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
            "ms that a foreign admission adds to the round trip",
            MILLISECONDS_ADDED,
            &added,
            admissions,
        ),
    ]
}

impl Servers {
    fn start() -> Result<Self, Error> {
        let files = directory()?;
        let path = |name: &str| files.path().join(name);
        for name in ["tokens", "license-tokens", "eu", "us"] {
            write_key_pair(files.path(), name)?;
        }
        // The home sends no request to the other regions, so their address need not exist.
        let nowhere = "http://127.0.0.1:1";
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
        let home = start("eu.toml", region(1, "eu", "forward", peer(2, "us", nowhere)))?;
        let eu = || peer(1, "eu", home.address());
        let forwarding = start("us.toml", region(2, "us", "forward", eu()))?;
        let batching = start("us-batched.toml", region(2, "us", "batched", eu()))?;
        Ok(Self { plain, home, forwarding, batching, _files: files })
    }
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
