//! Takes and releases the seats of a run. A run holds a seat of every license or of none.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use seatkeeper_client::{Client, ClientBuilder, Finish, LicenseKey, MaskedKey, Seat};
use seatkeeper_server::auth::{TokenRequest, mint};
use uuid::Uuid;

use super::args::RunArgs;
use super::error::RunError;
use super::signals::Signals;
use super::story::{Story, masked};
use crate::settings;

/// The user in a token signed by the key in the data directory.
const TOKEN_USER: &str = "seatkeeper-run";
/// The lifetime of a signed token. A rejected token is signed anew.
const TOKEN_TTL: Duration = Duration::from_secs(3600);
/// The user is told of a wait longer than this.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// A seat, and the license's key for messages. `Debug` shows the end of the key alone.
pub(super) struct HeldSeat {
    pub license: String,
    pub seat: Seat,
    pub waited: Duration,
}

impl fmt::Debug for HeldSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { license, seat, waited } = self;
        f.debug_struct("HeldSeat")
            .field("license", &MaskedKey(license))
            .field("seat", seat)
            .field("waited", waited)
            .finish()
    }
}

/// The licenses of a run with their clients. A license token is good for one license, so each license has a client of its
/// own with `--license-token`; otherwise all licenses share one client.
///
/// Every run takes licenses in sorted order, so two runs cannot deadlock.
pub(super) struct Clients(BTreeMap<String, Client>);

impl Clients {
    /// Builds the clients. Without a token, the key in the data directory signs one.
    pub(super) fn new(args: &RunArgs) -> Result<Self, RunError> {
        let licenses = args.licenses.iter().cloned();
        if args.license_token {
            let client = |license: String| {
                let key = LicenseKey::new(license.as_str()).tenant(&args.tenant);
                Ok((license, builder(args)?.license_key(key).build().map_err(RunError::Client)?))
            };
            return licenses.map(client).collect::<Result<_, _>>().map(Self);
        }
        let client = with_token(builder(args)?, args)?.build().map_err(RunError::Client)?;
        Ok(Self(licenses.map(|license| (license, client.clone())).collect()))
    }
}

fn builder(args: &RunArgs) -> Result<ClientBuilder, RunError> {
    let builder = Client::builder(args.server.as_str());
    let Some(path) = &args.ca_file else { return Ok(builder) };
    let pem = std::fs::read(path).map_err(|source| RunError::CaFile { path: path.clone(), source })?;
    Ok(builder.certificates(pem))
}

/// Sets the token of the arguments, or else a token signed by the key in the data directory.
fn with_token(builder: ClientBuilder, args: &RunArgs) -> Result<ClientBuilder, RunError> {
    if let Some(token) = &args.token {
        return Ok(builder.token(token));
    }
    if let Some(path) = &args.token_file {
        return Ok(builder.token_file(path));
    }
    let settings = settings::load(&args.data.sources())?;
    let request = TokenRequest {
        tenant: args.tenant.clone(),
        user: TOKEN_USER.to_owned(),
        scopes: String::new(),
        ttl: TOKEN_TTL,
    };
    Ok(builder.token_source(move || {
        let token = mint(&settings, &request);
        async move { token.map_err(|error| seatkeeper_client::TokenError::Source(error.to_string())) }
    }))
}

/// Takes a seat of each license. After a refusal or a signal, the seats taken so far are released.
pub(super) async fn acquire(
    clients: &Clients,
    args: &RunArgs,
    signals: &mut Signals,
    story: Story,
) -> Result<Vec<HeldSeat>, RunError> {
    let instance = Uuid::new_v4().to_string();
    let mut seats = Vec::new();
    for (license, client) in &clients.0 {
        match acquire_one(client, args, &instance, license, signals, story).await {
            Ok(seat) => seats.push(seat),
            Err(error) => {
                release(seats, story).await;
                return Err(error);
            }
        }
    }
    Ok(seats)
}

async fn acquire_one(
    client: &Client,
    args: &RunArgs,
    instance: &str,
    license: &str,
    signals: &mut Signals,
    story: Story,
) -> Result<HeldSeat, RunError> {
    let began = Instant::now();
    let machine = args.machine.clone().unwrap_or_else(|| machine_of_run(instance));
    let request = client
        .license(license)
        .machine(machine)
        .instance(instance)
        .user_agent(concat!("seatkeeper-run/", env!("CARGO_PKG_VERSION")))
        .wait(args.wait);
    let acquire = request.acquire();
    tokio::pin!(acquire);
    let mut told = false;
    let acquired = loop {
        tokio::select! {
            acquired = &mut acquire => break acquired,
            signal = signals.next_end() => return Err(RunError::Interrupted { signal }),
            () = tokio::time::sleep(TELL_AFTER), if !told => {
                told = true;
                story.tell(format_args!("waiting for a seat of {}", masked(license)));
            }
        }
    };
    let seat = acquired.map_err(|source| RunError::NoSeat { license: masked(license), source })?;
    match seat.seats() {
        Some((used, total)) => story.tell(format_args!("seat {used} of {total} of {}", masked(license))),
        None => story.tell(format_args!("a seat of {}", masked(license))),
    }
    Ok(HeldSeat { license: license.to_owned(), seat, waited: began.elapsed() })
}

/// Returns a machine name unique to this run, so that two runs on one host never share a seat.
fn machine_of_run(instance: &str) -> String {
    /// The limit leaves room for the instance within the 255 characters of a machine's name.
    const HOST_MAX: usize = 200;
    let system = rustix::system::uname();
    let host = system.nodename().to_string_lossy();
    let host: String = host.chars().filter(char::is_ascii_graphic).take(HOST_MAX).collect();
    format!("{host}/{instance}")
}

/// Releases the seats concurrently.
pub(super) async fn release(seats: Vec<HeldSeat>, story: Story) {
    let releases: Vec<_> =
        seats.into_iter().map(|held| (held.license, tokio::spawn(held.seat.release()))).collect();
    for (license, release) in releases {
        match release.await {
            Ok(Ok(Finish::GivenBack)) => {}
            Ok(Ok(Finish::Unconfirmed) | Err(_)) | Err(_) => story.tell(format_args!(
                "the server did not confirm the release of {}; the seat is free after the license's TTL",
                masked(&license)
            )),
        }
    }
}

/// Ends an acquire left behind by a signal or by a silent server: the seat of the acquire would stay until the TTL.
pub(super) async fn close(clients: Clients, story: Story) {
    let closes: Vec<_> =
        clients.0.into_values().map(|client| tokio::spawn(async move { client.close().await })).collect();
    let mut given_back = true;
    for close in closes {
        given_back &= matches!(close.await, Ok(Ok(Finish::GivenBack)));
    }
    if !given_back {
        story.tell(
            "the server did not confirm that no seat of this run is left; a seat is free after its license's TTL",
        );
    }
}
