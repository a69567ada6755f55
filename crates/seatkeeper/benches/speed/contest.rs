//! The server against a bare one and against a naive one, round by round.

use std::collections::BTreeMap;

use seatkeeper_load::{Bounds, FixedRequest, Operation, Plan, Report, Scenario, Target as Server};

use crate::args::Effort;
use crate::bare;
use crate::child::Child;
use crate::error::Error;
use crate::product::{Product, directory};
use crate::verdict::{Line, Target, median};

/// Connections of the load.
const CONCURRENCY: usize = 64;

/// Seats of the license that is always full.
const SEATS_FEW: u32 = 10;

/// Who is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Bare,
    Heartbeats,
    Denied,
    Cycle,
    NaiveCycle,
}

const SIDES: [Side; 5] = [Side::Bare, Side::Heartbeats, Side::Denied, Side::Cycle, Side::NaiveCycle];

/// What each side did in one round.
type Round = BTreeMap<Side, Report>;

pub(crate) async fn run(effort: Effort) -> Result<Vec<Line>, Error> {
    let product = Product::start()?;
    let data = directory()?;
    let database = data.path().join("naive.db");
    let mut bare = Child::in_role(&["bare"])?;
    let mut naive = Child::in_role(&["naive", &database.to_string_lossy()])?;
    let plans = plans(effort, &product, &bare.says("listening on ")?, &naive.says("listening on ")?).await?;

    let mut rounds = Vec::new();
    // One more than is wanted: the first warms everything up.
    for round in 0..=effort.rounds {
        eprintln!("servers: round {round} of {}", effort.rounds);
        rounds.push(play(&plans, round % 2 == 1).await?);
    }
    Ok(lines(&rounds[1..]))
}

async fn plans(
    effort: Effort,
    product: &Product,
    bare: &str,
    naive: &str,
) -> Result<BTreeMap<Side, Plan>, Error> {
    let plan = |target: Server, license: &str, scenario| Plan {
        target,
        license_keys: vec![license.to_owned()],
        concurrency: CONCURRENCY,
        bounds: Bounds { duration: effort.measured, turns: None },
        scenario,
    };
    let asking = Scenario::Fixed(FixedRequest {
        method: http::Method::POST,
        path: bare::PATH.to_owned(),
        body: bare::BODY.to_owned(),
        status_expected: 200,
    });
    let server = product.target()?;
    let roomy = product.license(CONCURRENCY as u32).await?;
    let full = product.license(SEATS_FEW).await?;
    let heartbeats = Scenario::Heartbeats { sessions_per_connection: 1 };
    let cycle = Scenario::Cycle { heartbeats: 0 };
    Ok(BTreeMap::from([
        // The token makes its requests as long as the others.
        (Side::Bare, plan(product.with_our_token(bare)?, "", asking)),
        (Side::Heartbeats, plan(server.clone(), &roomy, heartbeats)),
        (Side::Denied, plan(server.clone(), &full, Scenario::Denied)),
        (Side::Cycle, plan(server, &roomy, cycle.clone())),
        (Side::NaiveCycle, plan(product.with_our_token(naive)?, "naive", cycle)),
    ]))
}

/// Lets each side play once, in one order or the other: what drifts harms all alike.
async fn play(plans: &BTreeMap<Side, Plan>, backwards: bool) -> Result<Round, Error> {
    let mut order = SIDES;
    if backwards {
        order.reverse();
    }
    let mut round = Round::new();
    for side in order {
        let report = seatkeeper_load::run(plans[&side].clone(), |_| ()).await?;
        if report.errors_total() > 0 || report.violations.count > 0 {
            return Err(Error::Worthless {
                why: format!("{side:?}: {:?} {:?}", report.errors, report.violations),
            });
        }
        round.insert(side, report);
    }
    Ok(round)
}

fn lines(rounds: &[Round]) -> Vec<Line> {
    let rate = |side| move |round: &Round| round[&side].requests_per_second;
    let p99 = |side, operation| {
        move |round: &Round| round[&side].operation(operation).map_or(f64::NAN, |o| o.p99_ms)
    };
    let line = |what, target, ours: &dyn Fn(&Round) -> f64, theirs: &dyn Fn(&Round) -> f64, unit| {
        let ratios: Vec<f64> = rounds.iter().map(|round| ours(round) / theirs(round)).collect();
        let middle = |of: &dyn Fn(&Round) -> f64| median(&rounds.iter().map(of).collect::<Vec<_>>());
        Line::new(what, target, &ratios, format!("{:.1} against {:.1} {unit}", middle(ours), middle(theirs)))
    };
    let bare = rate(Side::Bare);
    vec![
        line("heartbeats / bare", Target::AtLeast(0.75), &rate(Side::Heartbeats), &bare, "requests/s"),
        line("denied acquires / bare", Target::AtLeast(0.65), &rate(Side::Denied), &bare, "requests/s"),
        line(
            "acquire + release / naive",
            Target::AtLeast(5.0),
            &rate(Side::Cycle),
            &rate(Side::NaiveCycle),
            "requests/s",
        ),
        line(
            "p99 of a heartbeat / bare",
            Target::Below(3.0),
            &p99(Side::Heartbeats, Operation::Heartbeat),
            &p99(Side::Bare, Operation::Fixed),
            "ms",
        ),
    ]
}
