//! A steady storm: clients take, keep and give back seats, screens and capacities through all nodes, while a test breaks
//! a store or the network. After a 503 or a time-out a client sends the same request again.

mod caller;
mod calm;
mod capacities;
mod deeds;
mod devices;
mod licenses;
mod pulse;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;

use super::support::{Nodes, answered};
use crate::house::{Client, Doors};
use crate::support::books::{Books, proof_of};
use crate::support::capacity::{self, Capacity};
use crate::support::dice::Dice;
use crate::support::knobs;
use crate::support::scene::{License, text};
use caller::{Caller, Storm};
use calm::{Calm, Record, fill_background};
use capacities::{User, Work};
use deeds::Deeds;
use devices::{Device, Screens};
use licenses::{Machine, Pool};
use pulse::Pulse;

pub(crate) use pulse::Gaps;

/// Seats of the licenses. Twice as many machines want them.
const SEATS: [u32; 4] = [1, 2, 3, 5];

/// Limits of the subscribers. Twice as many devices want their screens.
const SCREENS: [u32; 2] = [1, 3];

/// Users, each with a capacity of its own.
const USERS: u64 = 4;

/// Seats of a license in the background.
const SESSIONS_EACH: u32 = 100;

/// How long a request may take before its client gives it up: a node may be frozen.
const PATIENCE: Duration = Duration::from_secs(5);

/// The deadline for admissions after a fault: a busy machine takes minutes for a fallback and the way back.
const STANDSTILL_MAX: Duration = Duration::from_secs(240);

/// How machines go about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) ttl_seconds: u64,
    /// Each machine speaks to one node alone: then it may be cut off for longer than its session lasts. Else each request
    /// goes to the next node, and a session ends only as its client gives it back. A pinned storm has neither devices nor
    /// capacities.
    pub(crate) pinned: bool,
    pub(crate) seed: u64,
}

/// The kinds of pools, in the order of [`Steady::gaps`].
pub(crate) const KINDS: [&str; 3] = ["licenses", "devices", "capacities"];

/// Permits for tests with storms. Each test has nodes and servers of its own, and two cores are busy with four storms.
static STORMS: Semaphore = Semaphore::const_new(4);

/// Storms of this process, for names that no other storm has.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Waits for the permit to let storms rage, which lasts for as long as it lives.
pub(crate) async fn storm_permit() -> SemaphorePermit<'static> {
    STORMS.acquire().await.expect("nobody closes it")
}

/// A storm that rages.
pub(crate) struct Steady {
    manner: Manner,
    storm: Arc<Storm>,
    pools: Pools,
    pulses: [Arc<Pulse>; 3],
    clients: JoinSet<Deeds>,
    background: Vec<License>,
}

/// The pools that clients want seats of.
#[derive(Default)]
struct Pools {
    licenses: Vec<Arc<Pool>>,
    devices: Vec<Arc<Screens>>,
    capacities: Vec<Arc<Work>>,
}

/// Makes the clients of a storm.
struct Callers {
    storm: Arc<Storm>,
    manner: Manner,
    http: reqwest::Client,
    doors: Doors,
    number: u64,
}

impl Callers {
    /// The next client of this kind, by this token.
    fn next(&mut self, pulse: &Arc<Pulse>, token: &str, stays: bool) -> Caller {
        self.number += 1;
        let doors = if self.manner.pinned { one_of(&self.doors, self.number) } else { self.doors.clone() };
        Caller {
            storm: Arc::clone(&self.storm),
            pulse: Arc::clone(pulse),
            client: Client::with(self.http.clone(), doors, token.to_owned()),
            dice: Dice::new(self.manner.seed, self.number),
            stays,
        }
    }
}

impl Steady {
    /// Begins.
    pub(crate) async fn begin(nodes: &Nodes, manner: Manner) -> Self {
        let storm = Arc::new(Storm::new());
        let mut steady = Self {
            manner,
            storm: Arc::clone(&storm),
            pools: Pools::default(),
            pulses: Default::default(),
            clients: JoinSet::new(),
            background: Vec::new(),
        };
        let mut callers = Callers { storm, manner, http: patient(), doors: nodes.doors(), number: 0 };
        if !manner.pinned {
            let (admin, client) = (nodes.houses[0].admin(), nodes.houses[0].client("crowd"));
            steady.background = fill_background(&admin, &client, knobs::fault_sessions()).await;
            steady.begin_devices(nodes, &mut callers).await;
            steady.begin_capacities(nodes, &mut callers);
        }
        steady.begin_licenses(nodes, &mut callers).await;
        steady
    }

    async fn begin_licenses(&mut self, nodes: &Nodes, callers: &mut Callers) {
        let (admin, token) = (nodes.houses[0].admin(), nodes.houses[0].token("crowd"));
        let crowds = SEATS.map(|seats| (seats, 2 * seats, false));
        let stays = (!self.manner.pinned).then_some((2, 2, true));
        for (seats, machines, stays) in crowds.into_iter().chain(stays) {
            let license = License::make(&admin, seats, Some(self.manner.ttl_seconds)).await;
            let pool = Arc::new(Pool::new(license));
            for _ in 0..machines {
                let caller = callers.next(&self.pulses[0], &token, stays);
                let name = format!("machine-{}", callers.number).into();
                self.clients.spawn(Machine { name, pool: Arc::clone(&pool), caller }.play());
            }
            self.pools.licenses.push(pool);
        }
    }

    async fn begin_devices(&mut self, nodes: &Nodes, callers: &mut Callers) {
        let crowds = SCREENS.map(|limit| (limit, 2 * limit, false));
        for (limit, devices, stays) in crowds.into_iter().chain([(1, 1, true)]) {
            let user = format!("viewer-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            let screens = Arc::new(Screens::make(&nodes.houses[0], &user, limit).await);
            for _ in 0..devices {
                let caller = callers.next(&self.pulses[1], &screens.client.token, stays);
                let name = format!("device-{}", callers.number).into();
                let screens = Arc::clone(&screens);
                self.clients.spawn(Device { name, screens, caller, last_unanswered: None }.play());
            }
            self.pools.devices.push(screens);
        }
    }

    fn begin_capacities(&mut self, nodes: &Nodes, callers: &mut Callers) {
        let token = capacity::client(&nodes.houses[0]).token;
        for user in 0..=USERS {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let capacity = Capacity::drawn(&mut Dice::new(!self.manner.seed, number));
            let work = Arc::new(Work::new(capacity));
            let caller = callers.next(&self.pulses[2], &token, user == USERS);
            self.clients.spawn(User { work: Arc::clone(&work), caller }.play());
            self.pools.capacities.push(work);
        }
    }

    /// Waits for so many more admissions to licenses.
    pub(crate) async fn goes_on(&mut self, admissions: u64) {
        let wanted = self.pulses[0].counts()[0] + admissions;
        self.reaches([[wanted, 0], [0; 2], [0; 2]]).await;
    }

    /// Waits for so many more admissions and heartbeats of each kind.
    pub(crate) async fn all_kinds_go_on(&mut self, each: u64) {
        let wanted = self.pulses.each_ref().map(|pulse| pulse.counts().map(|count| count + each));
        self.reaches(wanted).await;
    }

    async fn reaches(&mut self, wanted: [[u64; 2]; 3]) {
        let started = Instant::now();
        loop {
            let counts = self.pulses.each_ref().map(|pulse| pulse.counts());
            if counts.iter().flatten().zip(wanted.iter().flatten()).all(|(count, wanted)| count >= wanted) {
                return;
            }
            let waited = started.elapsed();
            assert!(waited < STANDSTILL_MAX, "a kind is not served: {KINDS:?} {counts:?}, not {wanted:?}");
            if let Some(broken_off) = self.clients.try_join_next() {
                panic!("a client broke off: {:?}", broken_off.map(drop));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Returns for each kind the longest times between two instants without a served admission and heartbeat.
    pub(crate) fn gaps(&self, from: Instant, to: Instant) -> [Gaps; 3] {
        self.pulses.each_ref().map(|pulse| pulse.gaps(from, to))
    }

    /// Stops holding the nodes to their answers until now: the ledger has lost confirmed records.
    pub(crate) fn forgets(&self) {
        self.storm.forgets();
        self.pools.licenses.iter().for_each(|pool| pool.forget());
        self.pools.devices.iter().for_each(|screens| screens.forget());
        self.pools.capacities.iter().for_each(|work| work.forget());
    }

    /// Fails the test if a client saw a promise broken so far.
    pub(crate) fn kept_its_promises(&self) {
        self.pools.licenses.iter().for_each(|pool| pool.kept_its_promises());
        self.pools.devices.iter().for_each(|screens| screens.kept_their_promises());
        self.pools.capacities.iter().for_each(|work| work.kept_its_promises());
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
        let seats = Books::of(&closed.ledger).await;
        let capacities = Books::of_tenant(&closed.ledger, capacity::TENANT).await;
        let record = Record { seats, capacities };
        calm.iter().for_each(|calm| calm.is_on_record(&record));
    }

    /// Waits until every client has stopped.
    async fn calmed(mut self, nodes: &Nodes) -> Calm {
        self.storm.calm_down();
        let clients = std::mem::take(&mut self.clients);
        let deeds = tokio::time::timeout(STANDSTILL_MAX, clients.join_all()).await;
        let deeds = deeds.expect("every client is answered in the end");
        // A session that was given back and forgotten lives until its time is over.
        let ghosts =
            self.storm.forgotten().map_or(Duration::ZERO, |_| Duration::from_secs(self.manner.ttl_seconds));
        self.kept_its_promises();
        for pool in &self.pools.licenses {
            every_seat_is_there(nodes, &pool.license, ghosts).await;
        }
        for screens in &self.pools.devices {
            every_screen_is_there(screens).await;
        }
        let Self { manner, storm, pools, background, .. } = self;
        Calm { storm, may_expire: manner.pinned, pools, deeds, background }
    }
}

fn patient() -> reqwest::Client {
    reqwest::Client::builder().timeout(PATIENCE).build().expect("a client")
}

fn one_of(doors: &Doors, number: u64) -> Doors {
    let all = doors.all();
    Doors::new([all[usize::try_from(number).expect("a few") % all.len()].clone()])
}

/// Takes all seats, fails to take one more, and gives all back. Forgotten sessions may hold seats for as long as `ghosts`.
async fn every_seat_is_there(nodes: &Nodes, license: &License, ghosts: Duration) {
    let (client, started) = (nodes.houses[0].client("crowd"), Instant::now());
    let mut sessions = Vec::new();
    for number in 0..license.seats {
        let machine = format!("last-{number}");
        let answer = loop {
            let answer = answered(async || client.acquire(&license.key, &machine).await).await;
            if answer.status != 403 || started.elapsed() > 2 * ghosts {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
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

/// Takes all screens of a subscriber after giving all up, fails to take another, and gives all up.
async fn every_screen_is_there(screens: &Screens) {
    let client = &screens.client;
    let claim = async |device: String| {
        let ask = serde_json::json!({ "device_id": device, "device_type": "tv" });
        answered(async || client.post(devices::PATH, ask.clone()).await).await
    };
    let give_up = async || answered(async || client.delete(devices::PATH).await).await.expect(204);
    give_up().await;
    for number in 0..screens.limit {
        claim(format!("last-{number}")).await.expect(201);
    }
    claim("one-too-many".to_owned()).await.expect(403);
    give_up().await;
}
