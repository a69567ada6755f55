//! A steady storm: clients take, keep and release seats, screens and capacities through all nodes, while a
//! test breaks a store or the network. After a 503 or a timeout a client retries the same request at the next
//! node. Some clients keep a session from begin to end, with heartbeats on time. A new kind of pool gets a
//! file with its client, and a `begin_…` function.

mod caller;
mod calm;
mod capacities;
mod deeds;
mod devices;
mod every_seat;
mod latecomers;
mod licenses;
mod pulse;
mod requests;

use std::iter;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::JoinSet;

use super::support::{Nodes, SERVED_WAIT_MAX};
use crate::harness::{Client, Doors};
use crate::support::books::{Books, proof_of};
use crate::support::capacity::{self, Capacity};
use crate::support::dice::Dice;
use crate::support::knobs;
use crate::support::scene::License;
use caller::{AGAIN, Caller, Habit, Storm};
use calm::{Calm, Record, fill_background};
use capacities::{User, Work};
use deeds::Deeds;
use devices::{Device, Screens};
use every_seat::{every_screen_is_there, every_seat_is_there};
use licenses::{Machine, Pool, make_license};
use pulse::Pulse;

pub(crate) use latecomers::{LateSessions, Latecomers};
pub(crate) use pulse::{Gap, Gaps};

/// The seats of each license. Twice as many machines compete for the seats.
const SEATS: [u32; 4] = [1, 2, 3, 5];

/// The limit of each subscriber. Twice as many devices compete for the screens.
const SCREENS: [u32; 2] = [1, 3];

/// The number of users, each with a separate capacity.
const USERS: usize = 4;

/// The number of licenses whose machines heartbeat on time, and of such subscribers.
const POOLS_ON_TIME: usize = 4;

/// The seats, or screens, of a pool whose clients heartbeat on time. Each has a client.
const CLIENTS_ON_TIME: u32 = 2;

/// The number of seats of a license in the background.
const SESSIONS_EACH: u32 = 100;

/// Timeout of a client's request: a node may be frozen.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time limit for admissions after a fault.
const STANDSTILL_MAX: Duration = SERVED_WAIT_MAX;

/// The behaviour of a storm's machines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) ttl_seconds: u64,
    /// Each machine uses only one node, and may be cut off for longer than its session lasts. Otherwise each
    /// request goes to the next node, and a session ends only by its client's release. A pinned storm has
    /// neither devices nor capacities.
    pub(crate) pinned: bool,
    pub(crate) seed: u64,
}

/// The kinds of pools, in the order of [`Steady::gaps`].
pub(crate) const KINDS: [&str; 3] = ["licenses", "devices", "capacities"];

/// Permits for tests with storms. Each test has its own nodes and servers.
static STORMS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(knobs::storms_at_once()));

/// The number of storms in this process, for unique names.
static NUMBER: AtomicU64 = AtomicU64::new(0);

/// Waits for a permit to run storms. The permit lasts until it is dropped.
pub(crate) async fn storm_permit() -> SemaphorePermit<'static> {
    STORMS.acquire().await.expect("nobody closes it")
}

/// A running storm.
pub(crate) struct Steady {
    manner: Manner,
    storm: Arc<Storm>,
    pools: Pools,
    pulses: [Arc<Pulse>; 3],
    clients: JoinSet<Deeds>,
    background: Vec<License>,
    late: Vec<LateSessions>,
}

/// The pools used by the clients.
#[derive(Default)]
struct Pools {
    licenses: Vec<Arc<Pool>>,
    devices: Vec<Arc<Screens>>,
    capacities: Vec<Arc<Work>>,
}

/// A factory for the clients of a storm.
struct Callers {
    storm: Arc<Storm>,
    manner: Manner,
    http: reqwest::Client,
    doors: Doors,
    number: u64,
}

impl Callers {
    /// Returns the next client. `pulse` belongs to the client's kind of pool.
    fn next(&mut self, pulse: &Arc<Pulse>, token: &str, habit: Habit) -> Caller {
        self.number += 1;
        let doors = if self.manner.pinned {
            one_of(&self.doors, self.number)
        } else {
            in_turn(&self.doors, self.number)
        };
        Caller {
            storm: Arc::clone(&self.storm),
            pulse: Arc::clone(pulse),
            client: Client::with(self.http.clone(), doors, token.to_owned()),
            dice: Dice::new(self.manner.seed, self.number),
            habit,
        }
    }
}

impl Steady {
    /// Starts a storm.
    pub(crate) async fn begin(nodes: &Nodes, manner: Manner) -> Self {
        let storm = Arc::new(Storm::new());
        let mut steady = Self {
            manner,
            storm: Arc::clone(&storm),
            pools: Pools::default(),
            pulses: Default::default(),
            clients: JoinSet::new(),
            background: Vec::new(),
            late: Vec::new(),
        };
        let mut callers = Callers { storm, manner, http: patient(), doors: nodes.doors(), number: 0 };
        if !manner.pinned {
            let (admin, client) = (nodes.harnesses[0].admin(), nodes.harnesses[0].client("crowd"));
            steady.background = fill_background(&admin, &client, knobs::fault_sessions()).await;
            steady.begin_devices(nodes, &mut callers).await;
            steady.begin_capacities(nodes, &mut callers);
        }
        steady.begin_licenses(nodes, &mut callers).await;
        steady
    }

    async fn begin_licenses(&mut self, nodes: &Nodes, callers: &mut Callers) {
        let (admin, token) = (nodes.harnesses[0].admin(), nodes.harnesses[0].token("crowd"));
        let crowds = SEATS.map(|seats| (seats, 2 * seats, Habit::ComesAndGoes));
        let (stay, on_time) = ((2, 2, Habit::Stays), (CLIENTS_ON_TIME, CLIENTS_ON_TIME, Habit::IsOnTime));
        let stays = iter::once(stay).chain(iter::repeat_n(on_time, POOLS_ON_TIME));
        let stays = stays.filter(|_| !self.manner.pinned);
        for (seats, machines, habit) in crowds.into_iter().chain(stays) {
            let license = make_license(&admin, seats, self.manner.ttl_seconds).await;
            let pool = Arc::new(Pool::new(license));
            for _ in 0..machines {
                let caller = callers.next(&self.pulses[0], &token, habit);
                let name = format!("machine-{}", callers.number).into();
                self.clients.spawn(Machine { name, pool: Arc::clone(&pool), caller }.play());
            }
            self.pools.licenses.push(pool);
        }
    }

    async fn begin_devices(&mut self, nodes: &Nodes, callers: &mut Callers) {
        let crowds = SCREENS.map(|limit| (limit, 2 * limit, Habit::ComesAndGoes));
        let (stay, on_time) = ((1, 1, Habit::Stays), (CLIENTS_ON_TIME, CLIENTS_ON_TIME, Habit::IsOnTime));
        let stays = iter::once(stay).chain(iter::repeat_n(on_time, POOLS_ON_TIME));
        for (limit, devices, habit) in crowds.into_iter().chain(stays) {
            let user = format!("viewer-{}", NUMBER.fetch_add(1, Ordering::Relaxed));
            let screens = Arc::new(Screens::make(nodes, &user, limit).await);
            for _ in 0..devices {
                let caller = callers.next(&self.pulses[1], &screens.client.token, habit);
                let name = format!("device-{}", callers.number).into();
                let screens = Arc::clone(&screens);
                self.clients.spawn(Device { name, screens, caller, last_unanswered: None }.play());
            }
            self.pools.devices.push(screens);
        }
    }

    fn begin_capacities(&mut self, nodes: &Nodes, callers: &mut Callers) {
        let token = capacity::client(&nodes.harnesses[0]).token;
        let stays = iter::once(Habit::Stays)
            .chain(iter::repeat_n(Habit::IsOnTime, POOLS_ON_TIME * CLIENTS_ON_TIME as usize));
        for habit in iter::repeat_n(Habit::ComesAndGoes, USERS).chain(stays) {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let capacity = Capacity::drawn(&mut Dice::new(!self.manner.seed, number));
            let work = Arc::new(Work::new(capacity));
            let caller = callers.next(&self.pulses[2], &token, habit);
            self.clients.spawn(User { work: Arc::clone(&work), caller }.play());
            self.pools.capacities.push(work);
        }
    }

    /// Waits for this many more admissions to licenses.
    pub(crate) async fn goes_on(&mut self, admissions: u64) {
        let wanted = self.pulses[0].counts()[0] + admissions;
        self.reaches([[wanted, 0], [0; 2], [0; 2]]).await;
    }

    /// Waits for `each` more admissions and heartbeats of every kind.
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

    /// Returns for each kind the longest time between two served admissions, and between two served
    /// heartbeats.
    pub(crate) fn gaps(&self, from: Instant, to: Instant) -> [Gaps; 3] {
        self.pulses.each_ref().map(|pulse| pulse.gaps(from, to))
    }

    /// Returns for each kind the longest wait of a single request between `from` and `to`. Requests that were sent by `to` have
    /// been answered when this returns.
    pub(crate) async fn longest_waits(&self, from: Instant, to: Instant) -> [Duration; 3] {
        let is_any_waiting = || self.pulses.iter().any(|pulse| pulse.requests.is_any_waiting(to));
        let asked = Instant::now();
        while is_any_waiting() {
            assert!(asked.elapsed() < STANDSTILL_MAX, "a request is not answered");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.pulses.each_ref().map(|pulse| pulse.requests.longest_wait(from, Instant::now()))
    }

    /// Forgets the answers so far. The ledger has lost confirmed records, which voids the promises about
    /// earlier answers.
    pub(crate) fn forgets(&self) {
        self.storm.forgets();
        self.pools.licenses.iter().for_each(|pool| pool.forget());
        self.pools.devices.iter().for_each(|screens| screens.forget());
        self.pools.capacities.iter().for_each(|work| work.forget());
    }

    /// Returns `true` if the ledger may have lost confirmed records so far.
    pub(crate) fn may_have_forgotten(&self) -> bool {
        self.storm.forgotten().is_some()
    }

    /// Compares these sessions with the record when the storm ends: each must be live.
    pub(crate) fn keeps(&mut self, late: Vec<LateSessions>) {
        self.late.extend(late);
    }

    /// Fails the test if a client has seen a broken promise so far.
    pub(crate) fn kept_its_promises(&self) {
        self.pools.licenses.iter().for_each(|pool| pool.kept_its_promises());
        self.pools.devices.iter().for_each(|screens| screens.kept_their_promises());
        self.pools.capacities.iter().for_each(|work| work.kept_its_promises());
    }

    /// Ends the storm, and compares every answer with the record. No pool was above its limit, no answer is
    /// lost, and no session ended without its client's release.
    pub(crate) async fn end(self, nodes: Nodes) {
        self.end_beside(nodes, Vec::new()).await;
    }

    /// Ends the storm together with other storms over the same nodes.
    pub(crate) async fn end_beside(self, nodes: Nodes, others: Vec<Self>) {
        let mut calm = Vec::new();
        for steady in [self].into_iter().chain(others) {
            calm.push(steady.calmed(&nodes).await);
        }
        let closed = tokio::task::block_in_place(|| nodes.close());
        println!("{:?}", proof_of(&closed.ledger).await);
        let seats = Books::read(&closed.ledger).await;
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
        // A session released and then forgotten by the ledger lives until its TTL is over.
        let ghosts =
            self.storm.forgotten().map_or(Duration::ZERO, |_| Duration::from_secs(self.manner.ttl_seconds));
        self.kept_its_promises();
        for pool in &self.pools.licenses {
            every_seat_is_there(nodes, &pool.license, ghosts).await;
        }
        for screens in &self.pools.devices {
            every_screen_is_there(screens).await;
        }
        let Self { manner, storm, pools, background, late, .. } = self;
        Calm { storm, may_expire: manner.pinned, pools, deeds, background, late }
    }
}

fn patient() -> reqwest::Client {
    reqwest::Client::builder().timeout(PATIENCE).build().expect("a client")
}

fn one_of(doors: &Doors, number: u64) -> Doors {
    let all = doors.all();
    Doors::new([all[usize::try_from(number).expect("a few") % all.len()].clone()])
}

/// Returns all nodes, rotated by `number`. A client sends its requests to the nodes in this order, so a retry goes
/// to the next node.
fn in_turn(doors: &Doors, number: u64) -> Doors {
    let all = doors.all();
    let first = usize::try_from(number).expect("a few") % all.len();
    Doors::new(all[first..].iter().chain(&all[..first]).cloned())
}
