//! Many programs with many seats.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::LONG;
use seatkeeper_sdk_conformance::exchange::{Exchange, Kind};
use seatkeeper_sdk_conformance::stage::{Access, Cast, Stage, Terms};
use tokio::time::sleep;

use crate::{any_moment, stage};

/// The number of programs, each with one client.
const PROGRAMS: usize = 4;
/// The number of seats of a program.
const SEATS: usize = 50;

pub(crate) async fn two_hundred_seats_outlive_a_restart(cast: Cast) {
    let terms = Terms { seats: (PROGRAMS * SEATS) as u32, ttl: Duration::from_secs(30) };
    let mut stage = stage(cast, terms).await;
    let machines: Vec<_> = (0..PROGRAMS * SEATS).map(|place| format!("m-{place:03}")).collect();
    let mut drivers = Vec::new();
    for _ in 0..PROGRAMS {
        drivers.push(stage.driver(Access::Token, true).await);
    }
    let holders = || drivers.iter().zip(machines.chunks(SEATS));
    let request = |machine: &String| stage.request(machine, None);
    let acquires: Vec<_> = holders()
        .flat_map(|(driver, machines)| machines.iter().map(move |machine| (driver, machine)))
        .map(|(driver, machine)| (driver, driver.send("acquire", request(machine))))
        .collect();
    for (driver, acquire) in acquires {
        let answer = driver.answer(acquire, LONG).await;
        assert!(answer.get("error").is_none(), "{answer}");
    }
    any_moment(&mut stage).await;
    let down = Instant::now();
    stage.server.kill().await;
    sleep(stage.terms.ttl / 8).await;
    stage.server.restart().await;
    let up = Instant::now();
    // A busy host may start the server so late that seats end by their deadline: `Stage::finish` judges those losses.
    let is_short = up - down < stage.terms.ttl - stage.interval() * 2;
    for (driver, machines) in drivers.iter().zip(machines.chunks(SEATS)) {
        for machine in machines {
            driver.is_in(machine, "active", up + stage.interval(), LONG).await;
        }
        let lost = driver.transcript().told.iter().filter(|told| told.kind == "lost").count();
        assert!(lost == 0 || !is_short, "{lost} losses by an outage of {:?}: {}", up - down, driver.story());
    }
    // The broken streams of all seats at once wake no heartbeats.
    let after_outage = spread(&stage, &machines, down).await;
    assert!(after_outage >= stage.interval() / 2, "the first tries are spread over {after_outage:?} alone");
    // Retries have full jitter over a quarter of an interval.
    let after_return = spread(&stage, &machines, up).await;
    assert!(
        after_return >= stage.interval() / 8,
        "the tries after the return are spread over {after_return:?} alone"
    );
    for driver in drivers {
        stage.close(driver).await;
    }
    let audit = stage.server.audit().await;
    for machine in &machines {
        assert_eq!(audit.admissions(machine), 1, "{machine}");
    }
    stage.finish().await;
}

/// Waits until each machine has sent a heartbeat at `since` or later, and returns the time between the earliest and the latest of
/// the first ones. A seat may be active without a heartbeat since then.
async fn spread(stage: &Stage, machines: &[String], since: Instant) -> Duration {
    let end = Instant::now() + LONG;
    loop {
        let firsts = first_heartbeats(&stage.proxy.exchanges(), since);
        if let (Some(first), Some(last)) = (firsts.values().min(), firsts.values().max())
            && firsts.len() == machines.len()
        {
            return *last - *first;
        }
        assert!(Instant::now() < end, "{} of {} seats send heartbeats", firsts.len(), machines.len());
        sleep(Duration::from_millis(100)).await;
    }
}

/// Returns the time of the first heartbeat of each machine at `since` or later.
fn first_heartbeats(exchanges: &[Exchange], since: Instant) -> HashMap<Arc<str>, Instant> {
    let mut firsts = HashMap::new();
    for exchange in exchanges {
        if let (Kind::Heartbeat, Some(machine)) = (exchange.kind, &exchange.machine)
            && exchange.begun >= since
        {
            firsts.entry(machine.clone()).or_insert(exchange.begun);
        }
    }
    firsts
}
