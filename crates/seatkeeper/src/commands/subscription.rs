//! `seatkeeper subscription …`: manages subscriptions through the admin API.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Error;
use super::entry::{self, Entry};
use crate::admin::{self, SUBSCRIPTIONS};
use crate::args::{CreationArgs, ServerArgs};
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum SubscriptionCommand {
    /// List subscriptions
    List(ListArgs),
    /// Subscribe a user to a plan
    Create(CreateArgs),
    /// Show a subscription
    Show(OneArgs),
    /// Change a subscription from its user's next admission on; values not given stay as they are
    Update(UpdateArgs),
    /// End a subscription for good; live sessions go on
    Cancel(OneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only subscriptions of this user
    #[arg(long)]
    user: Option<String>,
    /// Only subscriptions to this plan
    #[arg(long)]
    plan: Option<String>,
    /// Only subscriptions of this status
    #[arg(long, value_parser = ["active", "cancelled", "expired"])]
    status: Option<String>,
    /// The most subscriptions to print
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct CreateArgs {
    /// The subscriber, by the user name in tokens
    #[arg(long)]
    user: String,
    /// The plan
    #[arg(long)]
    plan: String,
    #[command(flatten)]
    #[serde(flatten)]
    dates: DatesArgs,
    #[command(flatten)]
    #[serde(skip)]
    creation: CreationArgs,
    #[command(flatten)]
    #[serde(skip)]
    server: ServerArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct UpdateArgs {
    /// The subscription
    #[arg(value_name = "SUBSCRIPTION_ID")]
    #[serde(skip)]
    id: Uuid,
    /// The new plan
    #[arg(long)]
    plan: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    dates: DatesArgs,
    /// Remove the end: the subscription then never ends
    #[arg(long, conflicts_with = "ends_at")]
    #[serde(skip)]
    unset_end: bool,
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
    /// The subscription
    #[arg(value_name = "SUBSCRIPTION_ID")]
    id: Uuid,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args, Serialize)]
struct DatesArgs {
    /// The start of the subscription: 2030-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    starts_at: Option<String>,
    /// The end of the subscription
    #[arg(long, value_name = "TIME")]
    ends_at: Option<String>,
}

/// A subscription, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Subscription {
    subscription_id: String,
    user: String,
    plan: String,
    status: String,
    starts_at: String,
    ends_at: Option<String>,
    version: u64,
    created_at: String,
    updated_at: String,
}

pub(crate) async fn run(command: SubscriptionCommand) -> Result<ExitCode, Error> {
    match command {
        SubscriptionCommand::List(args) => list(&args).await?,
        SubscriptionCommand::Create(args) => {
            entry::create::<Subscription>(&args.server, &args.creation, &args).await?
        }
        SubscriptionCommand::Show(args) => {
            entry::show::<Subscription>(&args.server, &args.id.to_string()).await?
        }
        SubscriptionCommand::Update(args) => update(&args).await?,
        SubscriptionCommand::Cancel(args) => {
            entry::end::<Subscription>(&args.server, &args.id.to_string()).await?
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(args: &ListArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let filter = [("user", args.user.clone()), ("plan", args.plan.clone()), ("status", args.status.clone())];
    let listed = api.list(SUBSCRIPTIONS, &filter, args.limit).await?;
    output::listed(listed, args.server.json, |items| {
        let subscriptions: Vec<Subscription> = api.read(SUBSCRIPTIONS, items)?;
        let header = ["SUBSCRIPTION ID", "USER", "PLAN", "STATUS", "STARTS", "ENDS"];
        Ok(output::table(header, subscriptions.into_iter().map(row))?)
    })
}

fn row(subscription: Subscription) -> [String; 6] {
    [
        subscription.subscription_id,
        subscription.user,
        subscription.plan,
        subscription.status,
        subscription.starts_at,
        output::cell(subscription.ends_at),
    ]
}

async fn update(args: &UpdateArgs) -> Result<(), Error> {
    let mut change = entry::given(args);
    if args.unset_end {
        change["ends_at"] = Value::Null;
    }
    entry::update::<Subscription>(&args.server, &args.id.to_string(), change, args.if_version).await
}

impl Entry for Subscription {
    const PATH: &'static str = SUBSCRIPTIONS;

    fn pairs(self) -> Vec<(&'static str, String)> {
        vec![
            ("subscription id", self.subscription_id),
            ("user", self.user),
            ("plan", self.plan),
            ("status", self.status),
            ("starts", self.starts_at),
            ("ends", output::cell(self.ends_at)),
            ("version", self.version.to_string()),
            ("created", self.created_at),
            ("updated", self.updated_at),
        ]
    }
}
