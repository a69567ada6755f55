//! The time of an acquire on a license of many seats against a license of few, both with two free seats.

use std::time::{Duration, Instant};

use seatkeeper_load::{Bounds, Operation, Plan, Scenario};

use crate::crowd::{Crowd, License};
use crate::effort::Effort;
use crate::error::Error;
use crate::product::Product;
use crate::verdict::{Bound, Line, median};

const SEATS_FEW: u32 = 10;

const SEATS_FREE: u32 = 2;

/// Connections that fill the large license.
const FILLERS: usize = 64;

const AT_MOST_TWICE: Bound = Bound::AtMost(2.0);

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    Ok(vec![in_process(effort).await?, over_http(effort).await?])
}

async fn in_process(effort: Effort) -> Result<Line, Error> {
    eprintln!("pool size: in process");
    let crowd = Crowd::new();
    let few = nearly_full(&crowd, SEATS_FEW).await?;
    let many = nearly_full(&crowd, effort.seats_many).await?;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let small = acquires(&crowd, &few, effort.acquires).await?;
        let large = acquires(&crowd, &many, effort.acquires).await?;
        rounds.push((small, large));
    }
    Ok(line("in process", effort.seats_many, &rounds))
}

async fn nearly_full(crowd: &Crowd, seats: u32) -> Result<License, Error> {
    let license = crowd.license(seats).await?;
    for number in SEATS_FREE..seats {
        crowd.acquire(&license, u64::from(number)).await?;
    }
    Ok(license)
}

/// Returns the mean time of an acquire, in microseconds. Each acquire is followed by a release outside the
/// measured time.
async fn acquires(crowd: &Crowd, license: &License, count: u64) -> Result<f64, Error> {
    let mut taken = Duration::ZERO;
    for number in 0..count {
        let began = Instant::now();
        let session = crowd.acquire(license, u64::MAX - number).await?;
        taken += began.elapsed();
        crowd.release(session).await?;
    }
    Ok(taken.as_secs_f64() * 1e6 / count as f64)
}

async fn over_http(effort: Effort) -> Result<Line, Error> {
    eprintln!("pool size: over HTTP");
    let product = Product::start()?;
    let few = product.license(SEATS_FEW).await?;
    let many = product.license(effort.seats_many).await?;
    product.fill(&few, SEATS_FEW - SEATS_FREE, FILLERS).await?;
    product.fill(&many, effort.seats_many - SEATS_FREE, FILLERS).await?;
    let mut rounds = Vec::new();
    for _ in 0..effort.rounds {
        let small = cycles(&product, &few, effort).await?;
        let large = cycles(&product, &many, effort).await?;
        rounds.push((small, large));
    }
    Ok(line("over HTTP", effort.seats_many, &rounds))
}

/// Returns the median time of an acquire by one client, in microseconds.
async fn cycles(product: &Product, license: &str, effort: Effort) -> Result<f64, Error> {
    let plan = Plan {
        target: product.target()?,
        license_keys: vec![license.to_owned()],
        concurrency: 1,
        bounds: Bounds { duration: effort.measured, turns: Some(effort.acquires) },
        scenario: Scenario::Cycle { heartbeats: 0 },
    };
    let report = seatkeeper_load::run(plan, |_| ()).await?;
    let acquires = report.operation(Operation::Acquire).filter(|_| report.violations.count == 0);
    let acquires = acquires.ok_or_else(|| Error::Worthless { why: format!("{report:?}") })?;
    Ok(acquires.p50_ms * 1_000.0)
}

fn line(place: &str, seats_many: u32, rounds: &[(f64, f64)]) -> Line {
    let ratios: Vec<f64> = rounds.iter().map(|(small, large)| large / small).collect();
    let (small, large): (Vec<f64>, Vec<f64>) = rounds.iter().copied().unzip();
    let behind = format!("{:.1} against {:.1} µs", median(&large), median(&small));
    Line::new(
        format!("acquire of {seats_many} seats / of {SEATS_FEW}, {place}"),
        AT_MOST_TWICE,
        &ratios,
        behind,
    )
}
