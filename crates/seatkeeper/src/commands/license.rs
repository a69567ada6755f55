//! `seatkeeper license …`: manages licenses through the admin API.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Error;
use super::entry::{self, Entry};
use crate::admin::{self, LICENSES, License};
use crate::args::{CreationArgs, ServerArgs};
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum LicenseCommand {
    /// Create a license
    Create(CreateArgs),
    /// List licenses
    List(ListArgs),
    /// Show a license
    Show(OneArgs),
    /// Change a license; values not given stay as they are
    Update(UpdateArgs),
    /// End the sessions of a license and admit nobody, until it is resumed
    Suspend(OneArgs),
    /// Admit again after a suspension
    Resume(OneArgs),
    /// End a license for good
    Revoke(OneArgs),
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct CreateArgs {
    /// The number of seats
    #[arg(long, value_name = "SEATS")]
    #[serde(rename = "max_seats")]
    seats: u32,
    /// The license key [default: a random key]
    #[arg(long, value_name = "KEY")]
    #[serde(rename = "license_key")]
    key: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    terms: TermsArgs,
    #[command(flatten)]
    #[serde(skip)]
    creation: CreationArgs,
    #[command(flatten)]
    #[serde(skip)]
    server: ServerArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct UpdateArgs {
    /// The license
    #[arg(value_name = "LICENSE_ID")]
    #[serde(skip)]
    id: Uuid,
    /// The number of seats; a lower number ends no session
    #[arg(long, value_name = "SEATS")]
    #[serde(rename = "max_seats")]
    seats: Option<u32>,
    #[command(flatten)]
    #[serde(flatten)]
    terms: TermsArgs,
    /// Remove a value: the license then never ends, has the server's TTL, or names no contact
    #[arg(long, value_name = "WHAT")]
    #[serde(skip)]
    unset: Vec<Unset>,
    /// Change this version alone: another change since then makes the command fail
    #[arg(long, value_name = "VERSION")]
    #[serde(skip)]
    if_version: Option<u64>,
    #[command(flatten)]
    #[serde(skip)]
    server: ServerArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Unset {
    ExpiresAt,
    TtlSeconds,
    Contact,
}

impl Unset {
    const fn field(self) -> &'static str {
        match self {
            Self::ExpiresAt => "expires_at",
            Self::TtlSeconds => "ttl_seconds",
            Self::Contact => "contact",
        }
    }
}

/// Optional terms of a license, besides its seats.
#[derive(Debug, Args, Serialize)]
struct TermsArgs {
    /// The end of the license: 2030-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// The unit that takes a seat
    #[arg(long)]
    count_per: Option<CountPer>,
    /// The clients let in: `token`, clients with a token of the issuer; `key`, any program with the license key
    #[arg(long)]
    clients: Option<Clients>,
    /// The life of a session after its last heartbeat, in seconds [default: the server's]
    #[arg(long, value_name = "SECONDS")]
    ttl_seconds: Option<u64>,
    /// The time a client goes on without a session while the server is unreachable, in seconds [default: 0]
    #[arg(long, value_name = "SECONDS")]
    grace_seconds: Option<u64>,
    /// The ends after which a client acquires again by itself: `expired-only`, an expiry; `never`, none
    #[arg(long)]
    reacquire: Option<Reacquire>,
    /// The contact for users after the license has expired
    #[arg(long)]
    contact: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum CountPer {
    Machine,
    User,
    Process,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Clients {
    Token,
    Key,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum Reacquire {
    ExpiredOnly,
    Never,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only licenses of this status
    #[arg(long, value_parser = ["active", "suspended", "revoked"])]
    status: Option<String>,
    /// The most licenses to print
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// The license
    #[arg(value_name = "LICENSE_ID")]
    id: Uuid,
    #[command(flatten)]
    server: ServerArgs,
}

pub(crate) async fn run(command: LicenseCommand) -> Result<ExitCode, Error> {
    match command {
        LicenseCommand::Create(args) => entry::create::<License>(&args.server, &args.creation, &args).await?,
        LicenseCommand::List(args) => list(&args).await?,
        LicenseCommand::Show(args) => entry::show::<License>(&args.server, &args.id.to_string()).await?,
        LicenseCommand::Update(args) => update(&args).await?,
        LicenseCommand::Suspend(args) => set_status(&args, "suspended").await?,
        LicenseCommand::Resume(args) => set_status(&args, "active").await?,
        LicenseCommand::Revoke(args) => entry::end::<License>(&args.server, &args.id.to_string()).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(args: &ListArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let listed = api.list(LICENSES, &[("status", args.status.clone())], args.limit).await?;
    output::listed(listed, args.server.json, |items| {
        let licenses: Vec<License> = api.read(LICENSES, items)?;
        let header = ["LICENSE ID", "KEY", "SEATS", "STATUS", "EXPIRES", "PER", "TTL"];
        Ok(output::table(header, licenses.into_iter().map(row))?)
    })
}

fn row(license: License) -> [String; 7] {
    [
        license.license_id,
        license.license_key,
        format!("{} of {}", output::cell(license.seats_used), license.max_seats),
        license.status,
        output::cell(license.expires_at),
        license.count_per,
        output::cell(license.ttl_seconds),
    ]
}

async fn update(args: &UpdateArgs) -> Result<(), Error> {
    let mut change = entry::given(args);
    for unset in &args.unset {
        change[unset.field()] = Value::Null;
    }
    entry::update::<License>(&args.server, &args.id.to_string(), change, args.if_version).await
}

async fn set_status(args: &OneArgs, status: &str) -> Result<(), Error> {
    entry::update::<License>(&args.server, &args.id.to_string(), json!({ "status": status }), None).await
}

impl Entry for License {
    const PATH: &'static str = LICENSES;

    fn pairs(self) -> Vec<(&'static str, String)> {
        vec![
            ("license id", self.license_id),
            ("key", self.license_key),
            ("seats", format!("{} of {} in use", output::cell(self.seats_used), self.max_seats)),
            ("status", self.status),
            ("expires", output::cell(self.expires_at)),
            ("counts per", self.count_per),
            ("clients", self.clients),
            ("ttl seconds", output::cell(self.ttl_seconds)),
            ("grace seconds", self.grace_seconds.to_string()),
            ("reacquire", self.reacquire),
            ("contact", output::cell(self.contact)),
            ("version", self.version.to_string()),
            ("created", self.created_at),
            ("updated", self.updated_at),
        ]
    }
}
