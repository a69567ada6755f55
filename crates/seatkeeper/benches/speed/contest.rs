//! The embedded server against a bare and a naive server, in rounds. A new comparison is a `Side` and a line
//! of `lines`.

use std::collections::BTreeMap;
use std::time::Duration;

use seatkeeper_load::{Bounds, FixedRequest, Plan, Report, Scenario, Target};

use crate::bare;
use crate::child::Child;
use crate::effort::Effort;
use crate::error::Error;
use crate::process::cpu_time;
use crate::product::{Product, directory};
use crate::verdict::{Bound, Line, median};

/// Connections of the load.
const CONCURRENCY: usize = 64;

/// Seats of the license that is always full.
const SEATS_FEW: u32 = 10;

/// Subscribers of the eviction load: their devices evict one another.
const SUBSCRIBERS: usize = 4 * CONCURRENCY;

/// The most seconds that the ledger may take to commit a full journal.
const SECONDS_BEHIND: Bound = Bound::AtMost(5.0);

/// A load on one of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Bare,
    Heartbeats,
    Denied,
    Evictions,
    Cycle,
    NaiveCycle,
}

const SIDES: [Side; 6] =
    [Side::Bare, Side::Heartbeats, Side::Denied, Side::Evictions, Side::Cycle, Side::NaiveCycle];

/// The plan of a load, and the process id of the server.
struct Part {
    plan: Plan,
    server: u32,
}

/// The result of a side in one round.
struct Done {
    report: Report,
    /// CPU time of the server per request.
    cpu_micros: f64,
    /// Time from the last response to the ledger's last commit.
    behind: Duration,
}

type Parts = BTreeMap<Side, Part>;

type Round = BTreeMap<Side, Done>;

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    let product = Product::start()?;
    let data = directory()?;
    let database = data.path().join("naive.db");
    let mut bare = Child::in_role(&["bare"])?;
    let mut naive = Child::in_role(&["naive", &database.to_string_lossy()])?;
    let parts = parts(effort, &product, &mut bare, &mut naive).await?;

    let mut rounds = Vec::new();
    // The extra round at the start warms up and does not count.
    for round in 0..=effort.rounds {
        eprintln!("servers: round {round} of {}", effort.rounds);
        rounds.push(play(&parts, &product, round % 2 == 1).await?);
    }
    let mut lines = lines(&rounds[1..]);
    eprintln!("servers: {} s of evictions", effort.sustained.as_secs());
    let bare = rate_of(Side::Bare, &rounds[1..]);
    lines.push(sustained(effort, &parts[&Side::Evictions], &product, bare).await?);
    Ok(lines)
}

/// Measures how far the ledger falls behind admissions that do not wait for a commit. The load lasts longer
/// than the journal can absorb. `bare` is the rate of the bare server, in requests per second.
async fn sustained(effort: Effort, part: &Part, product: &Product, bare: f64) -> Result<Line, Error> {
    let bounds = Bounds { duration: effort.sustained, turns: None };
    let part = Part { plan: Plan { bounds, ..part.plan.clone() }, server: part.server };
    let Done { report, behind, .. } = measured(Side::Evictions, &part, product).await?;
    let what = format!("seconds behind after {} s of evictions", effort.sustained.as_secs());
    let recorded = report.requests as f64 / (report.elapsed_seconds + behind.as_secs_f64());
    let answered = report.requests_per_second;
    let of_bare = answered / bare;
    let rates =
        format!("{answered:.1} requests/s answered, {of_bare:.2} of bare; {recorded:.1} put on record");
    Ok(Line::new(what, SECONDS_BEHIND, &[behind.as_secs_f64()], rates))
}

async fn parts(
    effort: Effort,
    product: &Product,
    bare: &mut Child,
    naive: &mut Child,
) -> Result<Parts, Error> {
    let roomy = product.license(CONCURRENCY as u32).await?;
    let full = product.license(SEATS_FEW).await?;
    let ours = product.target()?;
    // With our token, a request to the bare or the naive server is as long as a request to ours.
    let bares = product.with_our_token(&bare.says("listening on ")?)?;
    let naives = product.with_our_token(&naive.says("listening on ")?)?;

    let part = |server, target: &Target, license: &str, scenario| Part {
        server,
        plan: Plan {
            target: target.clone(),
            license_keys: vec![license.to_owned()],
            concurrency: CONCURRENCY,
            bounds: Bounds { duration: effort.measured, turns: None },
            scenario,
        },
    };
    let heartbeats = Scenario::Heartbeats { sessions_per_connection: 1 };
    let cycle = Scenario::Cycle { heartbeats: 0 };
    let evictions = Scenario::Evictions { subscribers: product.subscribers(SUBSCRIBERS).await? };
    Ok(BTreeMap::from([
        (Side::Bare, part(bare.pid(), &bares, "", asking())),
        (Side::Heartbeats, part(product.pid(), &ours, &roomy, heartbeats)),
        (Side::Denied, part(product.pid(), &ours, &full, Scenario::Denied)),
        (Side::Evictions, part(product.pid(), &ours, "", evictions)),
        (Side::Cycle, part(product.pid(), &ours, &roomy, cycle.clone())),
        (Side::NaiveCycle, part(naive.pid(), &naives, "naive", cycle)),
    ]))
}

fn asking() -> Scenario {
    Scenario::Fixed(FixedRequest {
        method: http::Method::POST,
        path: bare::PATH.to_owned(),
        body: bare::BODY.to_owned(),
        status_expected: 200,
    })
}

/// Runs every side once. Alternating the order from round to round spreads drift over all sides.
async fn play(parts: &Parts, product: &Product, backwards: bool) -> Result<Round, Error> {
    let mut order = SIDES;
    if backwards {
        order.reverse();
    }
    let mut round = Round::new();
    for side in order {
        round.insert(side, measured(side, &parts[&side], product).await?);
    }
    Ok(round)
}

async fn measured(side: Side, part: &Part, product: &Product) -> Result<Done, Error> {
    let before = cpu_time(part.server)?;
    let report = seatkeeper_load::run(part.plan.clone(), |_| ()).await?;
    // Events that were answered before their commit must be committed before the next measurement.
    let behind = product.caught_up().await?;
    let cpu = cpu_time(part.server)?.saturating_sub(before);
    if report.errors_total() > 0 || report.violations.count > 0 {
        let why = format!("{side:?}: {:?} {:?}", report.errors, report.violations);
        return Err(Error::Worthless { why });
    }
    let cpu_micros = cpu.as_secs_f64() * 1e6 / report.requests as f64;
    Ok(Done { report, cpu_micros, behind })
}

/// Returns a line for each target. `ours` and `theirs` are the two sides of a ratio.
fn lines(rounds: &[Round]) -> Vec<Line> {
    let rates = |what, target, ours, theirs| {
        compared(rounds, what, target, [ours, theirs], "requests/s", |done| done.report.requests_per_second)
    };
    let p99 = |done: &Done| {
        let operations = done.report.operations.values();
        operations.map(|operation| operation.p99_ms).next().unwrap_or(f64::NAN)
    };
    let p99_sides = [Side::Heartbeats, Side::Bare];
    vec![
        rates("heartbeats / bare", Bound::AtLeast(0.8), Side::Heartbeats, Side::Bare),
        rates("denied acquires / bare", Bound::AtLeast(0.65), Side::Denied, Side::Bare),
        rates("admissions with eviction / bare", Bound::AtLeast(0.6), Side::Evictions, Side::Bare),
        rates("acquire + release / naive", Bound::AtLeast(5.0), Side::Cycle, Side::NaiveCycle),
        compared(rounds, "p99 of a heartbeat / bare", Bound::Below(3.0), p99_sides, "ms", p99),
    ]
}

fn rate_of(side: Side, rounds: &[Round]) -> f64 {
    median(&rounds.iter().map(|round| round[&side].report.requests_per_second).collect::<Vec<_>>())
}

fn compared(
    rounds: &[Round],
    what: &str,
    target: Bound,
    [ours, theirs]: [Side; 2],
    unit: &str,
    measure: impl Fn(&Done) -> f64,
) -> Line {
    let middle = |side, of: &dyn Fn(&Done) -> f64| {
        median(&rounds.iter().map(|round| of(&round[&side])).collect::<Vec<_>>())
    };
    let cpu: &dyn Fn(&Done) -> f64 = &|done| done.cpu_micros;
    let late = middle(ours, &|done| done.behind.as_secs_f64());
    let late =
        if late > 0.0 { format!("; on record {late:.1} s after the last answer") } else { String::new() };
    let behind = format!(
        "{:.1} against {:.1} {unit}; server CPU {:.1} against {:.1} µs a request{late}",
        middle(ours, &measure),
        middle(theirs, &measure),
        middle(ours, cpu),
        middle(theirs, cpu),
    );
    let ratios: Vec<f64> =
        rounds.iter().map(|round| measure(&round[&ours]) / measure(&round[&theirs])).collect();
    Line::new(what, target, &ratios, behind)
}
