//! The latency of well-behaved clients beside hostile clients, against their latency alone.

pub(crate) mod attack;

use std::time::Duration;

use clap::ValueEnum as _;
use seatkeeper_load::{Bounds, Plan, Scenario};

use crate::effort::Effort;
use crate::error::Error;
use crate::faultless::answered;
use crate::product::Product;
use crate::verdict::{Bound, Line, median};
use attack::Attack;

/// Connections of the well-behaved clients.
const CONCURRENCY: usize = 16;

/// Time that an attack runs before the measurement starts.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// The most that the 99th percentile may grow, as a factor.
const TARGET: Bound = Bound::Below(2.0);

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    let product = Product::start()?;
    let others = Plan {
        target: product.target()?,
        license_keys: vec![product.license(CONCURRENCY as u32).await?],
        concurrency: CONCURRENCY,
        bounds: Bounds { duration: effort.measured, turns: None },
        scenario: Scenario::Heartbeats { sessions_per_connection: 1 },
    };
    let mut lines = Vec::new();
    for attack in Attack::value_variants() {
        lines.push(beside(*attack, effort, &product, &others).await?);
    }
    Ok(lines)
}

async fn beside(attack: Attack, effort: Effort, product: &Product, others: &Plan) -> Result<Line, Error> {
    let (mut calm, mut attacked) = (Vec::new(), Vec::new());
    // The extra round at the start warms up and does not count.
    for round in 0..=effort.rounds {
        eprintln!("hostile: {}, round {round} of {}", attack.what(), effort.rounds);
        let without = p99_millis(others).await?;
        let with = {
            let mut attackers = product.attacked_by(attack)?;
            attackers.says(attack::BEGUN)?;
            tokio::time::sleep(UNDER_WAY).await;
            p99_millis(others).await?
        };
        if round > 0 {
            calm.push(without);
            attacked.push(with);
        }
    }
    let ratios: Vec<f64> = attacked.iter().zip(&calm).map(|(with, without)| with / without).collect();
    let behind = format!("{:.2} against {:.2} ms", median(&attacked), median(&calm));
    Ok(Line::new(format!("p99 of a heartbeat beside {} / without", attack.what()), TARGET, &ratios, behind))
}

async fn p99_millis(others: &Plan) -> Result<f64, Error> {
    let report = answered(others).await?;
    Ok(report.operations.values().map(|operation| operation.p99_ms).fold(f64::NAN, f64::max))
}
