//! `seatkeeper repair nodes`: forgets nodes that died without a farewell. Without `--apply` nothing changes.

use std::process::ExitCode;

use clap::Args;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::nodes::KnownNode;

use crate::args::LedgerArgs;
use crate::commands::Error;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct NodesArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Forget the nodes; without it, only list them
    #[arg(long)]
    apply: bool,
}

pub(super) async fn run(args: &NodesArgs) -> Result<ExitCode, Error> {
    let (ledger, _) = super::open(&args.ledger).await?;
    let repaired = repair(&ledger, args.apply).await;
    ledger.close().await;
    repaired
}

async fn repair(ledger: &Ledger, apply: bool) -> Result<ExitCode, Error> {
    let silent: Vec<_> = ledger.nodes().await?.into_iter().filter(|node| !node.is_live()).collect();
    if silent.is_empty() {
        output::line("Every node on record is live. There is no node to forget.")?;
        return Ok(ExitCode::SUCCESS);
    }
    for KnownNode { row, seen_ago, .. } in &silent {
        let seconds = seen_ago.as_millis() / 1_000;
        output::line(format_args!("{} ({}), last seen {seconds} s ago", row.name, row.id))?;
    }
    if !apply {
        output::line(
            "Nothing was changed. Ask again with --apply to forget these nodes, once you know that their \
             processes have ended.",
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    let forgotten = ledger.forget_nodes(&silent).await?;
    output::line(format_args!("{forgotten} nodes were forgotten. The live nodes take over."))?;
    Ok(ExitCode::SUCCESS)
}
