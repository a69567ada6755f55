//! Many programs with many seats.

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
    let after_outage = spread(&stage, &machines, down);
    assert!(after_outage >= stage.interval() / 2, "the first tries are spread over {after_outage:?} alone");
    // Retries have full jitter over a quarter of an interval.
    let after_return = spread(&stage, &machines, up);
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

/// Returns the time between the earliest and the latest of the first heartbeats of all machines at `since` or later.
fn spread(stage: &Stage, machines: &[String], since: Instant) -> Duration {
    let exchanges = stage.proxy.exchanges();
    let first = |machine: &String| {
        let is_first = |exchange: &&Exchange| {
            exchange.kind == Kind::Heartbeat
                && exchange.machine.as_deref() == Some(machine)
                && exchange.begun >= since
        };
        exchanges.iter().find(is_first).expect("a heartbeat of each seat").begun
    };
    let first: Vec<_> = machines.iter().map(first).collect();
    *first.iter().max().expect("seats") - *first.iter().min().expect("seats")
}
