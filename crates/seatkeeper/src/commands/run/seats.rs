//! Takes and releases the seats of a run. A run holds a seat of every license or of none.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use seatkeeper_client::{Client, ClientBuilder, Finish, LicenseKey, MaskedKey, Seat, SeatRequest};
use seatkeeper_server::auth::{TokenRequest, mint};

use super::args::RunArgs;
use super::error::RunError;
use super::holder::RunHolder;
use super::share::Share;
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
    pub holder: RunHolder,
    pub client: Client,
    /// The presence among the runs with the same holder.
    share: Option<Share>,
}

impl fmt::Debug for HeldSeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { license, seat, holder, client: _, share } = self;
        f.debug_struct("HeldSeat")
            .field("license", &MaskedKey(license))
            .field("seat", seat)
            .field("holder", holder)
            .field("share", share)
            .finish_non_exhaustive()
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

    /// Returns each license's key with its client.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Client)> {
        self.0.iter().map(|(license, client)| (license.as_str(), client))
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
    story: &Story,
) -> Result<Vec<HeldSeat>, RunError> {
    let holder = RunHolder::new(args)?;
    let mut seats = Vec::new();
    for (license, client) in clients.iter() {
        match acquire_one(client, args, &holder, license, signals, story).await {
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
    holder: &RunHolder,
    license: &str,
    signals: &mut Signals,
    story: &Story,
) -> Result<HeldSeat, RunError> {
    let share = match holder.is_shared {
        true => Some(tokio::select! {
            share = Share::join(args, license, holder) => share.map_err(RunError::Share)?,
            signal = signals.next_end() => return Err(RunError::Interrupted { signal }),
        }),
        false => None,
    };
    let started = request(client, license, holder).wait(args.wait).start().await;
    let seat = started.map_err(|source| RunError::NoSeat { license: masked(license), source })?;
    let (license, holder, client) = (license.to_owned(), holder.clone(), client.clone());
    let held = HeldSeat { license, seat, holder, client, share };
    match wait_for_grant(&held, signals, story).await {
        Ok(()) => Ok(held),
        Err(error) => {
            // After an acquire in doubt the server may have a session of this run alone, or the session of all runs.
            release(vec![held], story).await;
            Err(error)
        }
    }
}

/// Waits for the grant of a seat, and tells the user of the wait and of the seat.
async fn wait_for_grant(held: &HeldSeat, signals: &mut Signals, story: &Story) -> Result<(), RunError> {
    let license = || masked(&held.license);
    let granted = held.seat.granted();
    tokio::pin!(granted);
    let mut told = false;
    let result = loop {
        tokio::select! {
            result = &mut granted => break result,
            signal = signals.next_end() => return Err(RunError::Interrupted { signal }),
            () = tokio::time::sleep(TELL_AFTER), if !told => {
                told = true;
                story.tell(format_args!("waiting for a seat of {}", license()));
            }
        }
    };
    result.map_err(|source| RunError::NoSeat { license: license(), source })?;
    match held.seat.seats() {
        Some((used, total)) => story.tell(format_args!("seat {used} of {total} of {}", license())),
        None => story.tell(format_args!("a seat of {}", license())),
    }
    Ok(())
}

/// Returns the request for a seat of a license.
pub(super) fn request(client: &Client, license: &str, holder: &RunHolder) -> SeatRequest {
    client
        .license(license)
        .machine(&holder.machine)
        .instance(&holder.instance)
        .user_agent(concat!("seatkeeper-run/", env!("CARGO_PKG_VERSION")))
}

/// Releases the seats concurrently, but for seats that other runs keep. An acquire without an answer counts as a seat: its
/// session would live until the TTL.
pub(super) async fn release(seats: Vec<HeldSeat>, story: &Story) {
    let mut releases = Vec::new();
    for HeldSeat { license, seat, share, .. } in seats {
        let last = match share.map(Share::leave) {
            Some(None) => {
                seat.leave();
                continue;
            }
            Some(Some(last)) => Some(last),
            None => None,
        };
        let release = async move {
            let finish = seat.release().await;
            // Runs that start now wait until the release has been answered.
            drop(last);
            finish
        };
        releases.push((license, tokio::spawn(release)));
    }
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
