//! `seatkeeper audit verify --regions`: the proof of each region's limits, and that no two regions admitted to one pool at
//! once.

use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

use seatkeeper_core::Region;
use seatkeeper_ledger::verify::{
    HomeTrails, KnownDeployments, RegionBreach, RegionProof, ToldTerms, Verdict, check_deployments,
};
use seatkeeper_ledger::{Ledger, Location};

use super::verify;
use crate::commands::{EXIT_FAILED, Error};
use crate::output;

/// Pause before the regions are read again after a breach: longer than the steps of a move.
const READ_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The most readings, if each finds another breach.
const READINGS_MAX: u32 = 5;

/// The ledger of a region.
#[derive(Clone, Debug)]
pub(super) struct RegionLedger {
    region: Region,
    ledger: Location,
}

/// Parses `NUMBER=DIR` or `NUMBER=postgres://…`. No message repeats the text: a URL may contain a password.
pub(super) fn ledger(text: &str) -> Result<RegionLedger, String> {
    let (number, place) = text.split_once('=').ok_or("want NUMBER=LEDGER")?;
    let region = number.parse().ok().filter(|number| *number > 0).map(Region::new);
    let region = region.ok_or("want a number of a region, 1 to 255, before the `=`")?;
    let ledger = if place.starts_with("postgres") {
        Location::Postgres(place.parse().map_err(|_| "want a URL of PostgreSQL after the `=`")?)
    } else {
        Location::Directory(place.strip_prefix("sqlite:").unwrap_or(place).into())
    };
    Ok(RegionLedger { region, ledger })
}

pub(super) async fn run(regions: &[RegionLedger]) -> Result<ExitCode, Error> {
    let numbers: BTreeSet<u8> = regions.iter().map(|ledger| ledger.region.number()).collect();
    if numbers.len() < regions.len() {
        return Err(Error::RegionNamedTwice);
    }
    for RegionLedger { region, ledger } in regions {
        let verdict = verify::verify(ledger.clone(), |_| {}).await?;
        output::line(format_args!("Region {region}"))?;
        verify::print(&verdict)?;
        if matches!(verdict, Verdict::Broken(_)) {
            return Ok(ExitCode::from(EXIT_FAILED));
        }
    }
    match settled(READ_AGAIN_AFTER, async || join(regions).await).await? {
        Ok((RegionProof { regions, moves, admissions }, alone)) => {
            output::line(format_args!(
                "All {regions} regions together: {moves} moves of homes join, and each of {admissions} admissions was in \
                 the home of its moment. No two regions admitted at once."
            ))?;
            if alone > 0 {
                output::line(format_args!(
                    "Beside the limit of the home: {alone} admissions by nodes alone, recorded as made while the home \
                     was unreachable, each by a limit that a region has granted, or by the limit 1."
                ))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(breach) => {
            output::line(format_args!("BROKEN: the audit logs of the regions do not join: {breach}."))?;
            Ok(ExitCode::from(EXIT_FAILED))
        }
    }
}

/// Returns the proof, or a breach that two readings in a row find. The regions are read one after another beside running
/// servers, so a home that moves in between looks like a breach once.
async fn settled<T, B: PartialEq>(
    pause: Duration,
    join: impl AsyncFn() -> Result<Result<T, B>, Error>,
) -> Result<Result<T, B>, Error> {
    let mut before = None;
    for _ in 1..READINGS_MAX {
        match join().await? {
            Err(breach) if before.as_ref() != Some(&breach) => before = Some(breach),
            joined => return Ok(joined),
        }
        tokio::time::sleep(pause).await;
    }
    join().await
}

/// Joins the logs of all regions. Returns the proof, and the number of admissions in place of unreachable homes.
async fn join(regions: &[RegionLedger]) -> Result<Result<(RegionProof, u64), RegionBreach>, Error> {
    let mut ledgers = Vec::new();
    let mut moves = Vec::new();
    let mut adopted = Vec::new();
    let mut deployments = Vec::new();
    let mut told = Vec::new();
    for RegionLedger { region, ledger } in regions {
        let ledger = Ledger::open_read_only(ledger.clone()).await?;
        if let Some(own) = ledger.own_region().await? {
            if own.region != *region {
                return Err(Error::OtherRegionsLedger { named: *region, recorded: own.region });
            }
            deployments.push(KnownDeployments { own, peers: ledger.peer_deployments().await? });
        }
        moves.push((*region, ledger.home_moves().await?));
        adopted.extend(ledger.adoptions().await?.iter().map(|known| (known.lost, known.successor)));
        told.extend(ledger.told_terms().await?);
        ledgers.push((*region, ledger));
    }
    if let Err(breach) = check_deployments(&deployments) {
        return Ok(Err(breach));
    }
    let alone = told.iter().map(|terms| terms.admissions).sum();
    let mut trails = match HomeTrails::join(&moves, &adopted) {
        Ok(trails) => trails,
        Err(breach) => return Ok(Err(breach)),
    };
    for (region, ledger) in ledgers {
        let checked = ledger.check_admissions(region, &mut trails).await?;
        told = not_granted(&ledger, told).await?;
        ledger.close().await;
        if let Err(breach) = checked {
            return Ok(Err(breach));
        }
    }
    match told.first() {
        // The restored ledger of a lost region may lack the newest terms.
        Some(terms) if adopted.is_empty() => Ok(Err(terms.breach())),
        Some(_) | None => Ok(Ok((trails.finish(), alone))),
    }
}

/// Returns the terms that the region of `ledger` has not granted.
async fn not_granted(ledger: &Ledger, told: Vec<ToldTerms>) -> Result<Vec<ToldTerms>, Error> {
    let mut rest = Vec::new();
    for terms in told {
        if !ledger.grants(&terms).await? {
            rest.push(terms);
        }
    }
    Ok(rest)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Returns the outcome of one reading for each breach, and of further readings without a breach.
    async fn outcome(breaches: &[u32]) -> Result<(), u32> {
        let readings = RefCell::new(breaches.iter());
        let join = async || Ok(readings.borrow_mut().next().map_or(Ok(()), |breach| Err(*breach)));
        settled(Duration::ZERO, join).await.expect("the regions answer")
    }

    #[tokio::test]
    async fn a_breach_counts_if_two_readings_find_it() {
        assert_eq!(outcome(&[]).await, Ok(()));
        assert_eq!(outcome(&[1]).await, Ok(()));
        assert_eq!(outcome(&[1, 2]).await, Ok(()));
        assert_eq!(outcome(&[1, 1]).await, Err(1));
        assert_eq!(outcome(&[1, 2, 2]).await, Err(2));
        assert_eq!(outcome(&[1, 2, 3, 4, 5]).await, Err(5), "no reading without a breach");
    }
}
