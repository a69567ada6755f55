//! `seatkeeper plan …`: manages plans through the admin API.

use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum};
use seatkeeper_ledger::plans::PlanName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Error;
use super::entry::{self, Entry};
use crate::admin::{self, PLANS};
use crate::args::{CreationArgs, ServerArgs};
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// List plans
    List(ListArgs),
    /// Create a plan
    Create(CreateArgs),
    /// Show a plan
    Show(OneArgs),
    /// Change a plan from each subscriber's next admission on; values not given stay as they are
    Update(UpdateArgs),
    /// Take no new subscriptions to a plan; subscribers keep it
    Retire(OneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only plans of this status
    #[arg(long, value_parser = ["active", "retired"])]
    status: Option<String>,
    /// The most plans to print
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct CreateArgs {
    /// The name: a-z, 0-9, _ and -
    #[arg(value_name = "PLAN")]
    name: PlanName,
    /// The number of devices of a subscriber that may watch at once
    #[arg(long, value_name = "DEVICES")]
    #[serde(rename = "device_limit")]
    devices: u32,
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
    /// The plan
    #[arg(value_name = "PLAN")]
    #[serde(skip)]
    name: PlanName,
    /// The number of devices of a subscriber that may watch at once; a lower number ends no session
    #[arg(long, value_name = "DEVICES")]
    #[serde(rename = "device_limit")]
    devices: Option<u32>,
    #[command(flatten)]
    #[serde(flatten)]
    terms: TermsArgs,
    /// Offer the plan, or retire it
    #[arg(long, value_parser = ["active", "retired"])]
    status: Option<String>,
    /// Remove the plan's own TTL: the server's TTL then applies
    #[arg(long, conflicts_with = "ttl_seconds")]
    #[serde(skip)]
    unset_ttl: bool,
    /// Change this version alone: another change since then makes the command fail
    #[arg(long, value_name = "VERSION")]
    #[serde(skip)]
    if_version: Option<u64>,
    #[command(flatten)]
    #[serde(skip)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// The plan
    #[arg(value_name = "PLAN")]
    name: PlanName,
    #[command(flatten)]
    server: ServerArgs,
}

/// Optional terms of a plan, besides its devices.
#[derive(Debug, Args, Serialize)]
struct TermsArgs {
    /// The price, in cents
    #[arg(long, value_name = "CENTS")]
    price_cents: Option<u32>,
    /// The treatment of a device above the limit
    #[arg(long)]
    when_full: Option<WhenFull>,
    /// The life of a session after its last heartbeat, in seconds [default: the server's]
    #[arg(long, value_name = "SECONDS")]
    ttl_seconds: Option<u64>,
    /// The most devices that watch together on one screen, 0 to 8; 0 allows no groups
    #[arg(long, value_name = "MEMBERS", value_parser = clap::value_parser!(u32).range(0..=8))]
    group_members_max: Option<u32>,
    /// The users whose devices may join a group
    #[arg(long)]
    group_scope: Option<GroupScope>,
    /// End the membership of a device that watches other content than the host
    #[arg(long, value_name = "BOOL")]
    group_same_content: Option<bool>,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum GroupScope {
    /// The devices of the host's user alone
    #[value(name = "same_user")]
    SameUser,
    /// The devices of every user of the tenant
    #[value(name = "any_user")]
    AnyUser,
}

#[derive(Clone, Copy, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum WhenFull {
    /// End the stalest session
    Evict,
    /// Deny the device
    Deny,
}

/// A plan, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Plan {
    name: String,
    device_limit: u64,
    price_cents: u64,
    when_full: String,
    ttl_seconds: Option<u64>,
    group_members_max: u64,
    group_scope: String,
    group_same_content: bool,
    status: String,
    version: u64,
    created_at: String,
    updated_at: String,
}

pub(crate) async fn run(command: PlanCommand) -> Result<ExitCode, Error> {
    match command {
        PlanCommand::List(args) => list(&args).await?,
        PlanCommand::Create(args) => entry::create::<Plan>(&args.server, &args.creation, &args).await?,
        PlanCommand::Show(args) => entry::show::<Plan>(&args.server, &args.name.to_string()).await?,
        PlanCommand::Update(args) => update(&args).await?,
        PlanCommand::Retire(args) => entry::end::<Plan>(&args.server, &args.name.to_string()).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(args: &ListArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let listed = api.list(PLANS, &[("status", args.status.clone())], args.limit).await?;
    output::listed(listed, args.server.json, |items| {
        let plans: Vec<Plan> = api.read(PLANS, items)?;
        let header = ["PLAN", "DEVICES", "WHEN FULL", "TTL", "CENTS", "STATUS"];
        Ok(output::table(header, plans.into_iter().map(row))?)
    })
}

fn row(plan: Plan) -> [String; 6] {
    [
        plan.name,
        plan.device_limit.to_string(),
        plan.when_full,
        output::cell(plan.ttl_seconds),
        plan.price_cents.to_string(),
        plan.status,
    ]
}

async fn update(args: &UpdateArgs) -> Result<(), Error> {
    let mut change = entry::given(args);
    if args.unset_ttl {
        change["ttl_seconds"] = Value::Null;
    }
    entry::update::<Plan>(&args.server, &args.name.to_string(), change, args.if_version).await
}

impl Entry for Plan {
    const PATH: &'static str = PLANS;

    fn pairs(self) -> Vec<(&'static str, String)> {
        vec![
            ("plan", self.name),
            ("devices", self.device_limit.to_string()),
            ("when full", self.when_full),
            ("ttl seconds", output::cell(self.ttl_seconds)),
            ("group members", self.group_members_max.to_string()),
            ("group scope", self.group_scope),
            ("group same content", self.group_same_content.to_string()),
            ("price in cents", self.price_cents.to_string()),
            ("status", self.status),
            ("version", self.version.to_string()),
            ("created", self.created_at),
            ("updated", self.updated_at),
        ]
    }
}
