//! Takes and releases the seats of a run. A run holds a seat of every license or of none.

use std::fmt;
use std::time::{Duration, Instant};

use seatkeeper_client::{Client, Finish, MaskedKey, Seat};
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

/// Returns the client. Without a token, the key in the data directory signs one.
pub(super) fn client(args: &RunArgs) -> Result<Client, RunError> {
    let mut builder = Client::builder(args.server.as_str());
    if let Some(path) = &args.ca_file {
        let pem = std::fs::read(path).map_err(|source| RunError::CaFile { path: path.clone(), source })?;
        builder = builder.certificates(pem);
    }
    builder = match (&args.token, &args.token_file) {
        (Some(token), _) => builder.token(token),
        (None, Some(path)) => builder.token_file(path),
        (None, None) => {
            let settings = settings::load(&args.data.sources())?;
            let request = TokenRequest {
                tenant: args.tenant.clone(),
                user: TOKEN_USER.to_owned(),
                scopes: String::new(),
                ttl: TOKEN_TTL,
            };
            builder.token_source(move || {
                let token = mint(&settings, &request);
                async move { token.map_err(|error| seatkeeper_client::TokenError::Source(error.to_string())) }
            })
        }
    };
    builder.build().map_err(RunError::Client)
}

/// Takes a seat of each license. After a refusal or a signal, the seats taken so far are released.
pub(super) async fn acquire(
    client: &Client,
    args: &RunArgs,
    signals: &mut Signals,
    story: Story,
) -> Result<Vec<HeldSeat>, RunError> {
    // Every run takes licenses in sorted order, so two runs cannot deadlock.
    let mut licenses = args.licenses.clone();
    licenses.sort();
    licenses.dedup();
    let instance = Uuid::new_v4().to_string();
    let mut seats = Vec::new();
    for license in licenses {
        match acquire_one(client, args, &instance, &license, signals, story).await {
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
pub(super) async fn close(client: &Client, story: Story) {
    match client.close().await {
        Ok(Finish::GivenBack) => {}
        Ok(Finish::Unconfirmed) | Err(_) => story.tell(
            "the server did not confirm that no seat of this run is left; a seat is free after its license's TTL",
        ),
    }
}
