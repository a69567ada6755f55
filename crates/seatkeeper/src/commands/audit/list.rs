//! `seatkeeper audit list`: prints the audit records of a tenant, the newest first.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use uuid::Uuid;

use crate::admin::{self, AUDIT};
use crate::args::ServerArgs;
use crate::commands::Error;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only this action: admitted, ended, denied, admitted_alone, ended_alone, license_created,
    /// license_updated, plan_created, plan_updated, subscription_created, subscription_updated
    #[arg(long)]
    action: Option<String>,
    /// Only records of this license
    #[arg(long, value_name = "LICENSE_ID")]
    license: Option<Uuid>,
    /// Only records of this session
    #[arg(long, value_name = "SESSION_ID")]
    session: Option<Uuid>,
    /// Only records from this time on: 2030-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only records before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// The most records to print
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

/// An audit record, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Record {
    at: String,
    action: String,
    pool: String,
    seq: u64,
    holder: Option<String>,
    instance_id: Option<String>,
    reason: Option<String>,
    count: u64,
    live: Option<u64>,
    limit: u64,
    actor: String,
    actor_tenant: Option<String>,
}

pub(crate) async fn run(args: &ListArgs) -> Result<ExitCode, Error> {
    let api = admin::connect(&args.server)?;
    let filters = [
        ("action", args.action.clone()),
        ("pool", args.license.map(|id| id.to_string())),
        ("session", args.session.map(|id| id.to_string())),
        ("from", args.from.clone()),
        ("to", args.to.clone()),
    ];
    let listed = api.list(AUDIT, &filters, args.limit).await?;
    output::listed(listed, args.server.json, |items| {
        let records: Vec<Record> = api.read(AUDIT, items)?;
        let header = ["AT", "ACTION", "POOL", "NO.", "HOLDER", "REASON", "IN USE", "ACTOR"];
        Ok::<_, Error>(output::table(header, records.into_iter().map(row))?)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(record: Record) -> [String; 8] {
    let action =
        if record.count == 1 { record.action } else { format!("{} × {}", record.action, record.count) };
    let holder = match (record.holder, record.instance_id) {
        (Some(machine), Some(instance)) => Some(format!("{machine} / {instance}")),
        (holder, _) => holder,
    };
    let actor = match record.actor_tenant {
        Some(tenant) => format!("{} of {tenant}", record.actor),
        None => record.actor,
    };
    [
        record.at,
        action,
        record.pool,
        record.seq.to_string(),
        output::cell(holder),
        output::cell(record.reason),
        record.live.map_or(format!("of {}", record.limit), |live| format!("{live} of {}", record.limit)),
        actor,
    ]
}
