//! A steady storm: machines that take, keep and give back seats through all nodes, while a test breaks what is
//! beneath. Whoever is told 503, or nothing at all, asks for the same again.

mod holder;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use seatkeeper_load::Stopwatch;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;

use super::support::{Nodes, answered};
use crate::house::{Client, Doors};
use crate::support::books::{Books, proof_of};
use crate::support::dice::Dice;
use crate::support::scene::{License, text};
use holder::{Deeds, Holder, Pool};

/// Seats of the licenses. Twice as many machines want them.
const SEATS: [u32; 4] = [1, 2, 3, 5];

/// How long a request may take before its client gives it up: a node may be frozen.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long the storm may go without an admission, whatever was broken.
const STANDSTILL_MAX: Duration = Duration::from_secs(90);

/// How machines go about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) ttl_seconds: u64,
    /// Each speaks to one node alone: then it may be cut off for longer than its session lasts. Else all of them go to
    /// the next node by each request, and nobody may lose a seat but by giving it back.
    pub(crate) pinned: bool,
    pub(crate) seed: u64,
}

/// As many tests with storms as rage at the same time: each has nodes and servers of its own, and more of them would measure
/// the machine.
static STORMS: Semaphore = Semaphore::const_new(2);

/// The right to let storms rage, for as long as it lives.
pub(crate) async fn storm_permit() -> SemaphorePermit<'static> {
    STORMS.acquire().await.expect("nobody closes it")
}

/// A storm that rages.
pub(crate) struct Steady {
    manner: Manner,
    pools: Vec<Arc<Pool>>,
    machines: JoinSet<Deeds>,
    over: Arc<AtomicBool>,
    admissions: Arc<AtomicU64>,
}

impl Steady {
    /// Begins.
    pub(crate) async fn begin(nodes: &Nodes, manner: Manner) -> Self {
        let (over, admissions) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (stopwatch, http) = (Stopwatch::start(), patient());
        let mut steady = Self { manner, pools: Vec::new(), machines: JoinSet::new(), over, admissions };
        let (admin, all, token) = (nodes.houses[0].admin(), nodes.doors(), nodes.houses[0].token("crowd"));
        let mut number = 0;
        for seats in SEATS {
            let license = License::make(&admin, seats, Some(manner.ttl_seconds)).await;
            let pool = Arc::new(Pool::new(license, stopwatch));
            for _ in 0..2 * seats {
                let doors = if manner.pinned { one_of(&all, number) } else { all.clone() };
                let holder = Holder {
                    name: format!("machine-{number}").into(),
                    pool: Arc::clone(&pool),
                    client: Client::with(http.clone(), doors, token.clone()),
                    dice: Dice::new(manner.seed, number as u64),
                    over: Arc::clone(&steady.over),
                    admissions: Arc::clone(&steady.admissions),
                };
                steady.machines.spawn(holder.play());
                number += 1;
            }
            steady.pools.push(pool);
        }
        steady
    }

    /// Waits for so many more admissions.
    pub(crate) async fn goes_on(&mut self, admissions: u64) {
        let wanted = self.admissions.load(Ordering::Relaxed) + admissions;
        let started = Instant::now();
        while self.admissions.load(Ordering::Relaxed) < wanted {
            assert!(started.elapsed() < STANDSTILL_MAX, "nobody is admitted: {:?}", self.admissions);
            if let Some(broken_off) = self.machines.try_join_next() {
                panic!("a machine broke off: {:?}", broken_off.map(drop));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Ends, and holds all that was answered against the record: nothing that anybody saw was above the limit, nothing
    /// that was answered is lost, and nobody was sent away.
    pub(crate) async fn end(self, nodes: Nodes) {
        self.end_beside(nodes, Vec::new()).await;
    }

    /// Ends together with other storms over the same nodes.
    pub(crate) async fn end_beside(self, nodes: Nodes, others: Vec<Self>) {
        let mut calm = Vec::new();
        for steady in [self].into_iter().chain(others) {
            calm.push(steady.calmed(&nodes).await);
        }
        let closed = tokio::task::block_in_place(|| nodes.close());
        println!("{:?}", proof_of(&closed.ledger).await);
        let books = Books::of(&closed.ledger).await;
        calm.iter().for_each(|calm| calm.is_on_record(&books));
    }

    /// Waits until every machine has stopped.
    async fn calmed(self, nodes: &Nodes) -> Calm {
        self.over.store(true, Ordering::Relaxed);
        let deeds = tokio::time::timeout(STANDSTILL_MAX, self.machines.join_all()).await;
        let deeds = deeds.expect("every machine is answered in the end");
        for pool in &self.pools {
            pool.kept_its_promises();
            every_seat_is_there(nodes, &pool.license).await;
        }
        Calm { manner: self.manner, pools: self.pools, deeds }
    }
}

/// A storm that is over, and what its machines were answered.
struct Calm {
    manner: Manner,
    pools: Vec<Arc<Pool>>,
    deeds: Vec<Deeds>,
}

impl Calm {
    /// Fails the test unless the record tells the same as the machines.
    fn is_on_record(&self, books: &Books) {
        for pool in &self.pools {
            let (most, seats) = (books.most_at_once(&pool.license.id), i64::from(pool.license.seats));
            assert!(most <= seats, "{most} sessions at one instant on {seats} seats");
        }
        let told: usize = self.deeds.iter().map(|deeds| deeds.are_on_record(books)).sum();
        println!("{told} answered admissions are on record");
        if !self.manner.pinned {
            let licenses: BTreeSet<_> = self.pools.iter().map(|pool| pool.license.id.as_str()).collect();
            let sent_away: Vec<_> = books
                .stories()
                .filter(|(_, story)| licenses.contains(story.pool.as_str()))
                .filter(|(_, story)| story.reason() != Some("released"))
                .collect();
            assert!(sent_away.is_empty(), "ended without being given back: {sent_away:?}");
        }
    }
}

fn patient() -> reqwest::Client {
    reqwest::Client::builder().timeout(PATIENCE).build().expect("a client")
}

fn one_of(doors: &Doors, number: usize) -> Doors {
    Doors::new([doors.all()[number % doors.all().len()].clone()])
}

/// All seats can be taken, one more can not, and all are given back.
async fn every_seat_is_there(nodes: &Nodes, license: &License) {
    let client = nodes.houses[0].client("crowd");
    let mut sessions = Vec::new();
    for number in 0..license.seats {
        let machine = format!("last-{number}");
        let answer = answered(async || client.acquire(&license.key, &machine).await).await;
        // Asked again after a 503, it may find the seat that it took.
        assert!([200, 201].contains(&answer.status), "{:#}", answer.body);
        sessions.push(text(&answer.body["session_id"]));
    }
    answered(async || client.acquire(&license.key, "one-too-many").await).await.expect(403);
    for session in sessions {
        let given_back = answered(async || client.release(&session.clone().into()).await).await;
        assert!([204, 404].contains(&given_back.status), "{:#}", given_back.body);
    }
}
