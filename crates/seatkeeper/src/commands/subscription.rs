//! `seatkeeper subscription …`: subscriptions through the admin API.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Error;
use crate::admin::{self, SUBSCRIPTIONS};
use crate::api_client::ApiClient;
use crate::args::ServerArgs;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum SubscriptionCommand {
    /// List subscriptions
    List(ListArgs),
    /// Give a user a plan
    Create(CreateArgs),
    /// Show one subscription
    Show(OneArgs),
    /// Change one, from its user's next admission on; what is not said stays as it is
    Update(UpdateArgs),
    /// End it for good; nobody's session ends with it
    Cancel(OneArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only those of this user
    #[arg(long)]
    user: Option<String>,
    /// Only those to this plan
    #[arg(long)]
    plan: Option<String>,
    /// Only those of this status
    #[arg(long, value_parser = ["active", "cancelled", "expired"])]
    status: Option<String>,
    /// At most so many
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CreateArgs {
    /// Who will have it: the user that tokens name
    #[arg(long)]
    user: String,
    /// The plan
    #[arg(long)]
    plan: String,
    #[command(flatten)]
    dates: DatesArgs,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Which subscription
    #[arg(value_name = "SUBSCRIPTION_ID")]
    id: Uuid,
    /// Another plan
    #[arg(long)]
    plan: Option<String>,
    #[command(flatten)]
    dates: DatesArgs,
    /// Take its end away: then it goes on for ever
    #[arg(long, conflicts_with = "ends_at")]
    unset_end: bool,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OneArgs {
    /// Which subscription
    #[arg(value_name = "SUBSCRIPTION_ID")]
    id: Uuid,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
struct DatesArgs {
    /// From when on it counts: 2030-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    starts_at: Option<String>,
    /// Until when
    #[arg(long, value_name = "TIME")]
    ends_at: Option<String>,
}

/// What the API is asked to set; what is absent is left as it is.
#[derive(Debug, Serialize)]
struct Change {
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    starts_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<String>,
}

impl DatesArgs {
    fn change(self, user: Option<String>, plan: Option<String>) -> Value {
        let Self { starts_at, ends_at } = self;
        json!(Change { user, plan, starts_at, ends_at })
    }
}

/// A subscription, as far as tables show it.
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
        SubscriptionCommand::Create(args) => create(args).await?,
        SubscriptionCommand::Show(args) => show(&args).await?,
        SubscriptionCommand::Update(args) => update(args).await?,
        SubscriptionCommand::Cancel(args) => cancel(&args).await?,
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

async fn create(args: CreateArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let answer = api.post(SUBSCRIPTIONS, args.dates.change(Some(args.user), Some(args.plan))).await?;
    print(&api, answer, args.server.json)
}

async fn show(args: &OneArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let answer = api.get(&path_of(args.id)).await?;
    print(&api, answer, args.server.json)
}

async fn update(args: UpdateArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let mut change = args.dates.change(None, args.plan);
    if args.unset_end {
        change["ends_at"] = Value::Null;
    }
    let answer = api.patch(&path_of(args.id), Some(change)).await?;
    print(&api, answer, args.server.json)
}

async fn cancel(args: &OneArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    api.delete(&path_of(args.id), &[]).await?;
    let answer = api.get(&path_of(args.id)).await?;
    print(&api, answer, args.server.json)
}

fn path_of(id: Uuid) -> String {
    format!("{SUBSCRIPTIONS}/{id}")
}

fn print(api: &ApiClient, answer: Value, as_json: bool) -> Result<(), Error> {
    if as_json {
        return Ok(output::json(&answer)?);
    }
    let subscription: Subscription = api.read(SUBSCRIPTIONS, answer)?;
    let pairs = [
        ("subscription id", subscription.subscription_id),
        ("user", subscription.user),
        ("plan", subscription.plan),
        ("status", subscription.status),
        ("starts", subscription.starts_at),
        ("ends", output::cell(subscription.ends_at)),
        ("version", subscription.version.to_string()),
        ("created", subscription.created_at),
        ("updated", subscription.updated_at),
    ];
    Ok(output::pairs(pairs)?)
}
