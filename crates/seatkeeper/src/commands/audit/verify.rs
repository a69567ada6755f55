//! `seatkeeper audit verify`: the proof of the limits, from the audit log alone.

use std::io;
use std::process::ExitCode;

use clap::Args;
use indicatif::ProgressBar;
use seatkeeper_ledger::clock_repair::ClockRepair;
use seatkeeper_ledger::verify::{Finding, LostTerms, Proof, Verdict};
use seatkeeper_ledger::{Error as LedgerError, Ledger, Location};
use serde_json::{Value, json};

use crate::args::LedgerArgs;
use crate::commands::{EXIT_FAILED, Error};
use crate::{output, settings};

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Prove the audit logs of several regions together: NUMBER=DIR or NUMBER=postgres://HOST/DATABASE for every region
    #[arg(long, num_args = 1.., value_name = "NUMBER=LEDGER", value_parser = super::regions::ledger, conflicts_with = "json")]
    regions: Vec<super::regions::RegionLedger>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(args: &VerifyArgs) -> Result<ExitCode, Error> {
    if !args.regions.is_empty() {
        return super::regions::run(&args.regions).await;
    }
    let ledger = settings::ledger(&args.ledger.sources())?;
    // The spinner goes to stderr, and only if that is a terminal.
    let spinner = ProgressBar::new_spinner();
    let verdict = verify(ledger.clone(), |proof| {
        spinner.set_message(format!("{} records of {} pools hold so far", proof.records, proof.pools));
        spinner.tick();
    })
    .await?;
    spinner.finish_and_clear();
    let repairs = clock_repairs(ledger).await?;
    if args.json {
        output::json(&as_json(&verdict, &repairs))?;
    } else {
        print(&verdict)?;
        print_repairs(&repairs)?;
    }
    Ok(exit_code(&verdict))
}

/// Replays the audit log of a ledger. Servers may write to the ledger meanwhile.
pub(crate) async fn verify(
    ledger: impl Into<Location>,
    progress: impl FnMut(&Proof) + Send,
) -> Result<Verdict, LedgerError> {
    let ledger = Ledger::open_read_only(ledger).await?;
    let verdict = ledger.verify(progress).await;
    ledger.close().await;
    verdict
}

async fn clock_repairs(ledger: Location) -> Result<Vec<ClockRepair>, LedgerError> {
    let ledger = Ledger::open_read_only(ledger).await?;
    let repairs = ledger.clock_repairs().await;
    ledger.close().await;
    repairs
}

/// Returns exit code 0 for a proof, 1 for a finding.
pub(crate) fn exit_code(verdict: &Verdict) -> ExitCode {
    match verdict {
        Verdict::Proven(_) => ExitCode::SUCCESS,
        Verdict::Broken(_) => ExitCode::from(EXIT_FAILED),
    }
}

/// Prints the verdict in sentences.
pub(crate) fn print(verdict: &Verdict) -> io::Result<()> {
    match verdict {
        Verdict::Proven(proof) => print_proof(proof),
        Verdict::Broken(finding) => print_finding(finding),
    }
}

fn print_proof(proof: &Proof) -> io::Result<()> {
    let Proof { pools, records, admissions, ends, denials, live, node_local, clock_repairs, lost_terms } =
        proof;
    output::line("Proven from the audit log alone, whose records are numbered without a gap:")?;
    output::line(format_args!("  records     {records:>9}  of pools: {pools}"))?;
    output::line(format_args!("  admissions  {admissions:>9}  none left its pool above its limit"))?;
    output::line(format_args!(
        "  ends        {ends:>9}  each the only one of its session; live still: {live}"
    ))?;
    output::line(format_args!("  denials     {denials:>9}  none as full while a seat was free"))?;
    if *node_local > 0 {
        output::line(format_args!(
            "  alone       {node_local:>9}  admitted by nodes that reached no registry or home, each within the limit by itself"
        ))?;
    }
    if *clock_repairs > 0 {
        output::line(format_args!(
            "  repairs     {clock_repairs:>9}  of registry time: time ran back at these, and nowhere else"
        ))?;
    }
    print_lost_terms(lost_terms)?;
    output::line("The table of sessions agrees with the log: holder, user, tier, begin and end.")
}

/// Prints the licenses and subscriptions that a promoted standby or a restored backup lacks.
fn print_lost_terms(lost_terms: &[LostTerms]) -> io::Result<()> {
    for LostTerms { pool, version, admissions } in lost_terms {
        output::line(format_args!(
            "  LOST: {} {} of tenant {}, version {version}, by which {admissions} admissions were decided. A standby was \
             promoted or a backup restored without it. Make the change again, or end the sessions.",
            pool.kind.as_str(),
            pool.name,
            pool.tenant,
        ))?;
    }
    Ok(())
}

fn lost_as_json(LostTerms { pool, version, admissions }: &LostTerms) -> Value {
    json!({
        "tenant_id": pool.tenant.to_string(),
        "pool_kind": pool.kind.as_str(),
        "pool_id": pool.name.to_string(),
        "version": version,
        "admissions": admissions,
    })
}

fn print_finding(finding: &Finding) -> io::Result<()> {
    output::line("BROKEN: the audit log does not prove itself. The first that is wrong:")?;
    output::line(finding)
}

/// Prints the actor, the time and the extent of each repair of registry time.
fn print_repairs(repairs: &[ClockRepair]) -> io::Result<()> {
    for ClockRepair { repaired_at, wrong_until, audit_head, actor, sessions } in repairs {
        output::line(format_args!(
            "Registry time was set back from {} to {} by {actor}, after audit record {audit_head}; {sessions} live \
             sessions got a full TTL.",
            output::date(*wrong_until),
            output::date(*repaired_at),
        ))?;
    }
    Ok(())
}

fn repair_as_json(repair: &ClockRepair) -> Value {
    json!({
        "repaired_at": output::date(repair.repaired_at),
        "wrong_until": output::date(repair.wrong_until),
        "audit_head": repair.audit_head,
        "actor": repair.actor,
        "sessions": repair.sessions,
    })
}

fn as_json(verdict: &Verdict, repairs: &[ClockRepair]) -> Value {
    match verdict {
        Verdict::Proven(proof) => json!({
            "proven": true,
            "pools": proof.pools,
            "records": proof.records,
            "admissions": proof.admissions,
            "ends": proof.ends,
            "denials": proof.denials,
            "live": proof.live,
            "alone": proof.node_local,
            "lost_terms": proof.lost_terms.iter().map(lost_as_json).collect::<Vec<_>>(),
            "clock_repairs": repairs.iter().map(repair_as_json).collect::<Vec<_>>(),
        }),
        Verdict::Broken(finding) => json!({ "proven": false, "finding": finding.to_string() }),
    }
}
