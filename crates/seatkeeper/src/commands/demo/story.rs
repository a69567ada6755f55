//! The story of the demo: a full license, a crash, a dead server, and the proof.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use seatkeeper_server::Settings;
use seatkeeper_server::auth::{TokenRequest, mint};
use serde_json::json;
use tempfile::TempDir;

use super::capacity::{Analyst, Taken};
use super::child::ChildServer;
use super::error::{DemoError, StoryResult};
use super::license_api::{LicenseApi, Seat};
use super::screens;
use crate::admin::{LICENSES, License};
use crate::api_client::ApiClient;
use crate::commands::audit;
use crate::output::line;

/// The TTL, short so that the crashed machine's seat is soon free.
const TTL: Duration = Duration::from_secs(2);

/// The interval of the machines' heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_millis(250);

/// Timeout for the seat of a crashed machine to become free: many times the usual delay.
const SEAT_BACK_TIMEOUT: Duration = Duration::from_secs(20);

/// The tenant. A tenant with capacities is a UUID.
const TENANT: &str = "d3300000-0000-4000-8000-000000000000";

/// The user in the tokens.
const NARRATOR: &str = "narrator";

/// Tells the story, from an empty directory to the proof.
pub(super) async fn tell() -> StoryResult<ExitCode> {
    line("Seatkeeper in ten steps, on a server of its own.")?;
    let dir = tempfile::Builder::new().prefix("seatkeeper-demo-").tempdir().map_err(DemoError::Directory)?;
    let server = start(&dir).await?;
    let license_api = license(&dir, &server).await?;
    let seats = fill(&license_api).await?;
    deny_the_fourth(&license_api).await?;
    let (survivors, taken) = crash_of_one(&license_api, seats).await?;
    let live = [survivors, vec![taken]].concat();
    let (server, license_api) = kill_and_start_again(&dir, server, license_api, &live).await?;
    go_home(&license_api, &live).await?;
    take_a_capacity(&license_api.api).await?;
    lose_a_screen(&license_api.api).await?;
    server.stop().await?;
    line("   the server was asked to stop (SIGTERM), and has")?;
    prove(&dir).await
}

fn step(number: u32, title: &str) -> std::io::Result<()> {
    line(format_args!("\n{number}. {title}"))
}

async fn start(dir: &TempDir) -> StoryResult<ChildServer> {
    step(1, "A server starts in an empty directory. It needs nothing else")?;
    let server = ChildServer::start(dir.path()).await?;
    line(format_args!("   $ seatkeeper serve --listen 127.0.0.1:0 --data-dir {}", dir.path().display()))?;
    line(format_args!("   listening on {}", server.url()))?;
    Ok(server)
}

async fn license(dir: &TempDir, server: &ChildServer) -> StoryResult<LicenseApi> {
    step(2, "A license of 3 seats, whose holders must be heard of every 2 seconds")?;
    let api = client(dir, server)?;
    let ask = json!({ "max_seats": 3, "ttl_seconds": TTL.as_secs(), "license_key": "DEMO-3" });
    let license: License = api.read(LICENSES, api.create(LICENSES, ask).await?)?;
    line(format_args!("   license {} has the key {}", license.license_id, license.license_key))?;
    Ok(LicenseApi { api, license_key: license.license_key })
}

/// Returns a client with a token signed by the key in the server's directory.
fn client(dir: &TempDir, server: &ChildServer) -> StoryResult<ApiClient> {
    let mut settings = Settings::default();
    settings.ledger.data_dir = dir.path().to_owned();
    let request = TokenRequest {
        tenant: TENANT.to_owned(),
        user: NARRATOR.to_owned(),
        scopes: "admin".to_owned(),
        ttl: Duration::from_secs(600),
    };
    Ok(ApiClient::new(server.url(), mint(&settings, &request)?, None)?)
}

async fn fill(license_api: &LicenseApi) -> StoryResult<Vec<Seat>> {
    step(3, "Three machines take the three seats")?;
    let mut seats = Vec::new();
    for machine in ["lathe", "press", "robot"] {
        seats.push(take(license_api, machine).await?);
    }
    Ok(seats)
}

async fn take(license_api: &LicenseApi, machine: &str) -> StoryResult<Seat> {
    match license_api.acquire(machine).await? {
        Ok(seat) => {
            let Seat { status, seats_used, seats_total, .. } = &seat;
            line(format_args!("   {machine:<6} {status}: {seats_used} of {seats_total} seats in use"))?;
            Ok(seat)
        }
        Err(problem) => Err(DemoError::Unexpected(format!("{machine} got no seat: {problem}"))),
    }
}

async fn deny_the_fourth(license_api: &LicenseApi) -> StoryResult<()> {
    step(4, "A fourth machine asks")?;
    match license_api.acquire("welder").await? {
        Ok(_) => Err(DemoError::Unexpected("a fourth machine got one of three seats".to_owned())),
        Err(problem) => Ok(line(format_args!("   welder denied: {}", problem.title))?),
    }
}

/// Lets the robot fall silent while the welder keeps asking. Returns the seats of the remaining machines, and
/// the welder's seat.
async fn crash_of_one(license_api: &LicenseApi, mut seats: Vec<Seat>) -> StoryResult<(Vec<Seat>, Seat)> {
    step(5, "The robot crashes: no release, no more heartbeats. The others go on, the welder keeps asking")?;
    seats.pop();
    let crashed = Instant::now();
    while crashed.elapsed() < SEAT_BACK_TIMEOUT {
        for seat in &seats {
            license_api.heartbeat(&seat.session_id).await?;
        }
        if let Ok(seat) = license_api.acquire("welder").await? {
            let seconds = crashed.elapsed().as_secs_f64();
            line(format_args!(
                "   welder {} the robot's seat after {seconds:.1} s, once its TTL was over",
                seat.status
            ))?;
            return Ok((seats, seat));
        }
        tokio::time::sleep(HEARTBEAT_INTERVAL).await;
    }
    Err(DemoError::Unexpected("the seat of a crashed machine did not come back".to_owned()))
}

async fn kill_and_start_again(
    dir: &TempDir,
    server: ChildServer,
    license_api: LicenseApi,
    live: &[Seat],
) -> StoryResult<(ChildServer, LicenseApi)> {
    step(6, "The server is killed with kill -9, and started again")?;
    server.kill().await?;
    let server = ChildServer::start(dir.path()).await?;
    line(format_args!("   listening on {}", server.url()))?;
    let license_api = LicenseApi { api: client(dir, &server)?, ..license_api };
    for seat in live {
        license_api.heartbeat(&seat.session_id).await?;
    }
    line(format_args!(
        "   nothing is lost: all {} sessions are alive, and their heartbeats are taken",
        live.len()
    ))?;
    if license_api.acquire("robot").await?.is_ok() {
        return Err(DemoError::Unexpected("a restart gave away a fourth seat".to_owned()));
    }
    line("   and nothing is given away: the robot, back from its crash, finds the license full")?;
    Ok((server, license_api))
}

async fn go_home(license_api: &LicenseApi, live: &[Seat]) -> StoryResult<()> {
    step(7, "Everybody goes home")?;
    for seat in live {
        license_api.release(&seat.session_id).await?;
    }
    Ok(line(format_args!("   {} seats were given back", live.len()))?)
}

async fn take_a_capacity(api: &ApiClient) -> StoryResult<()> {
    step(
        8,
        "Other businesses, the same engine. An analyst takes a capacity, for 30 days without heartbeats",
    )?;
    let analyst = Analyst::new(TENANT);
    for (tier, status) in [(1, "created"), (1, "existing"), (3, "upgraded"), (2, "existing")] {
        let taken = analyst.take(api, tier).await?;
        if taken.status != status {
            return Err(DemoError::Unexpected(format!("a capacity of tier {tier} was {}", taken.status)));
        }
        let Taken { session_kind, session_end_utc, .. } = taken;
        line(format_args!(
            "   tier {tier}  {status:<8}  tier {session_kind} stands until {session_end_utc}"
        ))?;
    }
    Ok(line("   one session at every instant: an upgrade ends the old one and starts the new in one step")?)
}

async fn lose_a_screen(api: &ApiClient) -> StoryResult<()> {
    step(9, "A subscriber's plan has two screens. A third device takes one, and who loses it hears at once")?;
    screens::tell(api, NARRATOR).await
}

async fn prove(dir: &TempDir) -> StoryResult<ExitCode> {
    step(10, "The proof, from the audit log alone")?;
    line("   $ seatkeeper audit verify")?;
    let verdict = audit::verify::verify(dir.path(), |_| ()).await?;
    audit::verify::print(&verdict)?;
    Ok(audit::verify::exit_code(&verdict))
}
