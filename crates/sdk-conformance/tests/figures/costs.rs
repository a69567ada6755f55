//! Costs of many seats, and growth by many cycles.

use std::env;
use std::time::{Duration, Instant};

use seatkeeper_sdk_conformance::driver::{Driver, LONG};
use seatkeeper_sdk_conformance::language::Language;
use seatkeeper_sdk_conformance::stage::Stage;
use tokio::time::sleep;

use crate::{close, print, stage};

/// The number of seats.
const SEATS: usize = 1000;
/// The seats that are held before the price of a seat is measured. After a heartbeat of each, the driver's own threads and
/// pools have grown, and the connections of the acquires are closed.
const FIRST: usize = 500;
/// A client sends its first heartbeats after three tenths of an interval of 120 s.
const QUIET: Duration = Duration::from_secs(40);
/// The time over which processor time is measured: an interval, in which each seat sends a heartbeat.
const WINDOW: Duration = Duration::from_secs(120);
/// The time for the threads of a command to end after its answer.
const SETTLING: Duration = Duration::from_secs(1);
/// The longest time of all cycles.
const CYCLES_MAX: Duration = Duration::from_secs(3600);

/// The most growth by the cycles.
const GROWTH_KIB_MAX: f64 = 1024.0;

/// Acquires seats for `machines`, some at a time.
async fn acquire(stage: &Stage, driver: &Driver, machines: &[String]) {
    for machines in machines.chunks(20) {
        let acquires: Vec<_> =
            machines.iter().map(|machine| driver.send("acquire", stage.request(machine, None))).collect();
        for acquire in acquires {
            let answer = driver.answer(acquire, LONG).await;
            assert!(answer.get("error").is_none(), "{answer}");
        }
    }
}

async fn measure_seats(language: Language, event_streams: bool) {
    let mut stage = stage(language, SEATS as u32, 360).await;
    let driver = stage.quiet_driver(event_streams).await;
    let before = driver.usage();
    let machines: Vec<_> = (0..SEATS).map(|place| format!("m-{place:04}")).collect();
    acquire(&stage, &driver, &machines[..FIRST]).await;
    sleep(QUIET + WINDOW).await;
    let few = driver.memory_kib(language).await;
    acquire(&stage, &driver, &machines[FIRST..]).await;
    sleep(QUIET).await;
    let (begin, began) = (driver.usage(), Instant::now());
    sleep(WINDOW).await;
    let (end, took) = (driver.usage(), began.elapsed());
    let share = end.cpu.saturating_sub(begin.cpu).as_secs_f64() / took.as_secs_f64() * 100.0;
    let name =
        |what: &str| format!("1,000 seats, {}: {what}", if event_streams { "streams" } else { "no streams" });
    print(language, &name("share of a core"), share, 0.5, "%");
    print(language, &name("threads more"), end.threads as f64 - before.threads as f64, 2.0, "");
    let memory = (driver.memory_kib(language).await - few) / (SEATS - FIRST) as f64;
    print(language, &name("memory of a seat"), memory, 2.0, "KiB");
    close(stage, driver).await;
}

pub(crate) async fn cost_of_a_thousand_seats(language: Language) {
    measure_seats(language, true).await;
}

pub(crate) async fn cost_of_a_thousand_seats_without_streams(language: Language) {
    measure_seats(language, false).await;
}

/// Counts the growth from a tenth of the cycles on: caches and pools are full then.
pub(crate) async fn growth_by_cycles(language: Language) {
    let cycles =
        env::var("SEATKEEPER_FIGURES_CYCLES").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let mut stage = stage(language, 1, 60).await;
    let driver = stage.quiet_driver(true).await;
    let mut fields = stage.request("m-1", None);
    stage.add_access(&mut fields, true).await;
    fields["count"] = (cycles / 10).into();
    driver.call("cycles", fields.clone(), CYCLES_MAX).await;
    sleep(SETTLING).await;
    let (before, few) = (driver.usage(), driver.memory_kib(language).await);
    fields["count"] = (cycles - cycles / 10).into();
    driver.call("cycles", fields, CYCLES_MAX).await;
    sleep(SETTLING).await;
    let (after, many) = (driver.usage(), driver.memory_kib(language).await);
    let name = |what: &str| format!("{cycles} cycles: {what}");
    print(language, &name("files more"), after.files as f64 - before.files as f64, 0.0, "");
    print(language, &name("threads more"), after.threads as f64 - before.threads as f64, 0.0, "");
    let memory = many - few;
    print(language, &name("memory more"), memory, GROWTH_KIB_MAX, "KiB");
    close(stage, driver).await;
    assert!(after.files <= before.files && after.threads <= before.threads, "{before:?} {after:?}");
    assert!(memory <= GROWTH_KIB_MAX, "{memory} KiB");
}
