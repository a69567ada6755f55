//! A thousand workers are killed at random points: the receiver gets each window and each record exactly
//! once.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use seatkeeper_core::{EndReason, RegistryTime, SessionId, Span, Usage, Window};
use seatkeeper_ledger::jobs::{Fence, JobName};
use seatkeeper_ledger::usage::{DueBatch, Settlement, UsageRecord};
use seatkeeper_ledger::{Error, Ledger};
use uuid::Uuid;

use super::meter::{MINUTE, Meter, tenant};

const KILLS: u64 = 1_000;
const DAY: Span = Span::from_secs(24 * 3_600);

/// Work dropped after a number of polls, at the `await` reached by then.
struct Mortal<'a, T> {
    work: Pin<Box<dyn Future<Output = T> + 'a>>,
    steps: u64,
}

impl<T> Future for Mortal<'_, T> {
    type Output = Option<T>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<T>> {
        if self.steps == 0 {
            return Poll::Ready(None);
        }
        self.steps -= 1;
        self.work.as_mut().poll(context).map(Some)
    }
}

/// Returns the output of the work, or `None` if the work was dropped first.
async fn mortal<'a, T>(steps: u64, work: impl Future<Output = T> + 'a) -> Option<T> {
    Mortal { work: Box::pin(work), steps }.await
}

/// A receiver that detects repetitions by id.
#[derive(Default)]
struct Receiver {
    records: HashMap<Uuid, (Window, UsageRecord)>,
    batches: HashMap<Uuid, Usage>,
    repeated: u64,
}

impl Receiver {
    fn take(&mut self, batch: &DueBatch) {
        let sum = batch.records.iter().map(|record| record.usage).sum();
        if let Some(known) = self.batches.insert(batch.id, sum) {
            assert_eq!(known, sum, "two batches of one name");
            self.repeated += 1;
        }
        for record in &batch.records {
            let told = (batch.window, record.clone());
            let known = self.records.entry(record.id).or_insert_with(|| told.clone());
            assert_eq!(*known, told, "two records of one name");
        }
    }
}

/// Delivers and settles all due batches.
async fn deliver(
    ledger: &Ledger,
    receiver: &mut Receiver,
    now: RegistryTime,
    fence: &Fence,
) -> Result<(), Error> {
    loop {
        let due = ledger.due_usage(now, None, 4).await?;
        if due.is_empty() {
            return Ok(());
        }
        for batch in due {
            receiver.take(&batch);
            let delivered = Settlement::Delivered { status: 200, at: now };
            ledger.settle_usage(batch.id, delivered, fence).await?;
        }
    }
}

/// A deterministic random sequence with a printed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Starts and ends sessions of random users.
async fn live_on(meter: &mut Meter, live: &mut Vec<SessionId>, dice: &mut Dice, users: &mut u128) {
    if live.len() < 12 || dice.below(2) == 0 {
        *users += 1;
        let tier = 1 + dice.below(3) as u8;
        live.push(meter.hold_of(&tenant(u128::from(dice.below(3))), *users, tier).await);
    }
    if live.len() > 24 {
        let gone = live.swap_remove(dice.below(live.len() as u64) as usize);
        meter.end(gone, EndReason::Released).await;
    }
    // An occasional pause of days, which leads to a window per day.
    let pause = if dice.below(20) == 0 { DAY } else { MINUTE };
    meter.pass(Span::from_millis(1 + dice.below(4 * pause.as_millis())));
}

#[tokio::test]
async fn a_thousand_workers_that_die_bill_nothing_twice_and_leave_nothing_out() {
    let mut meter = Meter::open().await;
    meter.batch_records = 3;
    let mut dice = Dice(0x1eade4);
    println!("seed {:#x}", dice.0);
    let (mut live, mut users, mut kills, mut finished) = (Vec::new(), 0, 0, 0);
    let mut receiver = Receiver::default();
    while kills < KILLS {
        live_on(&mut meter, &mut live, &mut dice, &mut users).await;
        let (steps, until) = (dice.below(90), meter.now);
        let fence = meter.take(JobName::UsageEmission).await;
        match mortal(steps, meter.emit_by(until, &fence)).await {
            Some(emitted) => {
                emitted.unwrap();
                meter.ledger.complete_job(&fence, meter.now).await.unwrap();
                finished += 1;
            }
            None => kills += 1,
        }
        let steps = dice.below(90);
        let fence = meter.take(JobName::UsageDelivery).await;
        match mortal(steps, deliver(&meter.ledger, &mut receiver, meter.now, &fence)).await {
            Some(delivered) => {
                delivered.unwrap();
                meter.ledger.complete_job(&fence, meter.now).await.unwrap();
                finished += 1;
            }
            None => kills += 1,
        }
    }
    let end = meter.now;
    meter.emit().await;
    for batch in meter.deliver().await {
        receiver.take(&batch);
    }
    println!("{kills} died, {finished} did not; {} batches came again", receiver.repeated);
    assert!(finished > 0 && receiver.repeated > 0);
    check(&meter, &receiver, end);
}

fn check(meter: &Meter, receiver: &Receiver, end: RegistryTime) {
    let (mut billed, mut windows) = (HashMap::<_, Usage>::new(), BTreeMap::new());
    for (window, record) in receiver.records.values() {
        let sum = billed.entry(record.session).or_default();
        *sum = *sum + record.usage;
        assert_eq!(*windows.entry(window.starts()).or_insert(window.ends()), window.ends());
    }
    for (id, (_, life)) in &meter.lives {
        assert_eq!(billed.get(id).copied().unwrap_or_default(), life.used_by(end), "{life:?}");
    }
    let (starts, ends): (Vec<_>, Vec<_>) = windows.into_iter().unzip();
    assert_eq!(starts[1..], ends[..ends.len() - 1], "windows are contiguous");
    assert_eq!(ends.last(), Some(&end));
    let by_batch: Usage = receiver.batches.values().copied().sum();
    assert_eq!(by_batch, billed.values().copied().sum(), "by batch and by record");
}
