//! The billed time of every session equals its live time: no window is billed twice, no window is missed, and
//! the total is rounded once.
//!
//! Ninety days pass on a manual clock. Meanwhile the server is stopped or killed and restarted, and the sink
//! fails in every possible way.

mod lives;
mod office;

use std::collections::{BTreeMap, HashMap};

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Span};

use crate::harness::sink::{Do, Record, Sink, Taken};
use crate::invariants::support::dice::Dice;
use crate::invariants::support::knobs;
use lives::Lives;
use office::{Office, TERM};

const DAYS: u64 = 90;
const SESSIONS: u64 = 10_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_sink_has_is_the_exact_total_of_each_session_rounded_once() {
    let (steps, seed) = (knobs::usage_steps(), knobs::seed());
    let sink = Sink::open(fickle(seed)).await;
    let mut office = Office::open(&sink.url).await;
    let mut lives = Lives::new(seed);
    let mut dice = Dice::new(seed, 0);
    let mut taken = Vec::new();
    for step in 0..steps {
        lives.act(&office, (SESSIONS * (step + 1)).div_ceil(steps)).await;
        let mean = Span::from_secs(DAYS * 24 * 3_600 / steps).as_millis();
        office.pass(Span::from_millis(dice.below(2 * mean)));
        match dice.below(8) {
            0 => office.restart(dice.below(2) == 0).await,
            1 => {}
            _ => office.run("usage_emission").await,
        }
        office.run("usage_delivery").await;
        taken.extend(sink.take());
        if step % 20 == 19 {
            println!("step {step}: {} sessions, {} batches taken", lives.all.len(), taken.len());
        }
    }
    office.pass(Span::from_secs(3_600));
    office.run("usage_emission").await;
    let emitted = office.now();
    sink.follow(|_| Do::Take(200));
    while office.undelivered().await {
        office.pass(Span::from_secs(600));
        office.run("usage_delivery").await;
    }
    taken.extend(sink.take());
    office.reconciled().await;
    office.close().await;
    check(&lives, &taken, emitted);
}

/// Returns the plan of a sink that recognises duplicates, but fails in every other way.
fn fickle(seed: u64) -> impl FnMut(&str) -> Do + Send {
    let (mut dice, mut has) = (Dice::new(seed, 1), std::collections::HashSet::new());
    move |key| {
        let what = match dice.below(100) {
            0..50 => Do::Take(200),
            50..60 => Do::Take(500),
            60..70 => Do::Refuse(503),
            70..76 => Do::Refuse(429),
            76..86 => Do::TakeAndDrop,
            86..98 => Do::Drop,
            _ => Do::TakeAndHang,
        };
        let takes = !matches!(what, Do::Refuse(_) | Do::Drop);
        if takes && !has.insert(key.to_owned()) && dice.below(2) == 0 { Do::Refuse(409) } else { what }
    }
}

/// Checks the batches that the sink accepted, duplicates included.
fn check(lives: &Lives, taken: &[Taken], emitted: RegistryTime) {
    let mut records: HashMap<String, Record> = HashMap::new();
    let mut batches: BTreeMap<String, u64> = BTreeMap::new();
    for batch in taken {
        let all = batch.records();
        let sum = all.iter().map(Record::micros).sum();
        assert_eq!(*batches.entry(batch.key.clone()).or_insert(sum), sum, "two batches of one name");
        for record in all {
            let first = records.entry(record.record_id.clone()).or_insert_with(|| record.clone());
            assert_eq!(format!("{first:?}"), format!("{record:?}"), "two records of one name");
        }
    }
    let mut billed: HashMap<String, u64> = HashMap::new();
    let mut windows: BTreeMap<DateTime<Utc>, DateTime<Utc>> = BTreeMap::new();
    for record in records.values() {
        let session = lives.session_of(record);
        *billed.entry(session).or_default() += record.micros();
        let (starts, ends) = (time(&record.window_start_utc), time(&record.window_end_utc));
        assert_eq!(*windows.entry(starts).or_insert(ends), ends, "two windows that start at {starts}");
    }
    // The last window may end after the emission that the test ran last.
    let last = windows.values().max().expect("a window");
    let end = RegistryTime::from_millis(last.timestamp_millis() as u64);
    assert!(end >= emitted);
    let mut whole = 0;
    for life in &lives.all {
        let (held, exact) = life.total(end);
        assert_eq!(billed.get(&life.session).copied().unwrap_or_default(), exact, "{life:?} held {held} ms");
        if held == TERM.as_millis() {
            assert_eq!(exact, u64::from(life.tier) * 1_000_000);
            whole += 1;
        }
    }
    let ends: Vec<_> = windows.values().collect();
    let starts: Vec<_> = windows.keys().skip(1).collect();
    assert_eq!(starts[..], ends[..ends.len() - 1], "windows are contiguous");
    assert_eq!(batches.values().sum::<u64>(), billed.values().sum::<u64>(), "by batch and by record");
    println!(
        "{} sessions, {whole} of them for 30 days; {} windows, {} records in {} batches, taken {} times",
        lives.all.len(),
        windows.len(),
        records.len(),
        batches.len(),
        taken.len()
    );
    assert!(whole > 0, "no session lasted 30 days");
}

fn time(text: &str) -> DateTime<Utc> {
    text.parse().expect("a time")
}
