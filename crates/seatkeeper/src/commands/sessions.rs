//! `seatkeeper sessions …`: finds and ends sessions of every kind of pool through the admin API.

mod pool;

use std::process::ExitCode;

use clap::{ArgGroup, Args, Subcommand};
use seatkeeper_core::SessionId;
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Error;
use crate::admin::{self, SESSIONS};
use crate::args::ServerArgs;
use crate::output;
use pool::PoolArgs;

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// Search sessions, live and ended
    List(ListArgs),
    /// End a session, or all sessions of a pool
    Revoke(RevokeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only sessions of this kind: license, subscriber, capacity, group
    #[arg(long, conflicts_with = "pool")]
    kind: Option<String>,
    #[command(flatten)]
    pool: PoolArgs,
    /// Only sessions of this holder: a machine, a user or a device's fingerprint
    #[arg(long)]
    holder: Option<String>,
    /// Only sessions of this user
    #[arg(long)]
    user: Option<String>,
    /// Only sessions from this address
    #[arg(long)]
    ip: Option<String>,
    /// Only live sessions
    #[arg(long, conflicts_with = "ended")]
    live: bool,
    /// Only ended sessions
    #[arg(long)]
    ended: bool,
    /// The most sessions to print
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["id", "license", "subscriber", "capacity", "group"])))]
pub(crate) struct RevokeArgs {
    /// The session
    #[arg(value_name = "SESSION_ID")]
    id: Option<Uuid>,
    #[command(flatten)]
    pool: PoolArgs,
    #[command(flatten)]
    server: ServerArgs,
}

/// A session, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Session {
    session_id: String,
    pool_kind: String,
    pool: String,
    /// The API calls the holder of a license's session `machine_id`.
    #[serde(alias = "machine_id")]
    holder: String,
    instance_id: Option<String>,
    user: String,
    user_tenant: Option<String>,
    tier: Option<u8>,
    device_type: Option<String>,
    device_name: Option<String>,
    started_at: String,
    last_heartbeat_at: String,
    ended_at: Option<String>,
    reason: Option<String>,
}

/// The answer to ending all sessions of a pool.
#[derive(Debug, Deserialize)]
struct Ended {
    ended: u64,
}

pub(crate) async fn run(command: SessionsCommand) -> Result<ExitCode, Error> {
    match command {
        SessionsCommand::List(args) => list(&args).await?,
        SessionsCommand::Revoke(RevokeArgs { id: Some(id), server, .. }) => revoke_one(id, &server).await?,
        SessionsCommand::Revoke(args) => revoke_all(&args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(args: &ListArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let live = match (args.live, args.ended) {
        (true, _) => Some("true".to_owned()),
        (false, true) => Some("false".to_owned()),
        (false, false) => None,
    };
    let filters = [
        ("pool_kind", args.pool.kind().map(Into::into).or_else(|| args.kind.clone())),
        ("pool", args.pool.name()),
        ("holder", args.holder.clone()),
        ("user", args.user.clone()),
        ("ip", args.ip.clone()),
        ("live", live),
    ];
    let listed = api.list(SESSIONS, &filters, args.limit).await?;
    output::listed(listed, args.server.json, |items| {
        let sessions: Vec<Session> = api.read(SESSIONS, items)?;
        let header = [
            "SESSION ID",
            "REGION",
            "KIND",
            "POOL",
            "HOLDER",
            "USER",
            "TIER OR DEVICE",
            "STARTED",
            "LAST HEARTBEAT",
            "ENDED",
            "REASON",
        ];
        Ok(output::table(header, sessions.into_iter().map(row))?)
    })
}

fn row(session: Session) -> [String; 11] {
    let holder = match session.instance_id {
        Some(instance) => format!("{} / {instance}", session.holder),
        None => session.holder,
    };
    let user = match session.user_tenant {
        Some(tenant) => format!("{} of {tenant}", session.user),
        None => session.user,
    };
    let region = output::cell(region_of(&session.session_id));
    // The name of a capacity's pool is the holder and the capacity. Only the capacity is shown.
    let pool = match session.pool.strip_prefix(&format!("{holder}/")) {
        Some(capacity) => capacity.to_owned(),
        None => session.pool,
    };
    let device = match (session.device_type, session.device_name) {
        (Some(kind), Some(name)) => Some(format!("{kind}: {name}")),
        (kind, _) => kind,
    };
    [
        session.session_id,
        region,
        session.pool_kind,
        pool,
        holder,
        user,
        output::cell(session.tier.map(|tier| format!("tier {tier}")).or(device)),
        session.started_at,
        session.last_heartbeat_at,
        output::cell(session.ended_at),
        output::cell(session.reason),
    ]
}

/// Returns the region in which a session began; `None` for a deployment without regions.
fn region_of(session_id: &str) -> Option<u8> {
    let id: SessionId = session_id.parse().ok()?;
    Some(id.region().number()).filter(|number| *number > 0)
}

async fn revoke_one(id: Uuid, server: &ServerArgs) -> Result<(), Error> {
    let api = admin::connect(server)?;
    api.delete(&format!("{SESSIONS}/{id}"), &[]).await?;
    print_ended(&json!({ "ended": 1 }), 1, server.json)
}

async fn revoke_all(args: &RevokeArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let answer = api.delete(SESSIONS, &args.pool.filter()).await?;
    let Ended { ended } = api.read(SESSIONS, answer.clone())?;
    print_ended(&answer, ended, args.server.json)
}

fn print_ended(answer: &Value, ended: u64, as_json: bool) -> Result<(), Error> {
    if as_json {
        return Ok(output::json(answer)?);
    }
    Ok(output::line(format_args!("{ended} ended"))?)
}
