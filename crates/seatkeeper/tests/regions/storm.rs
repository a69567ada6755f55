//! Storms over all regions: no instant and no answer shows more holders than seats.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use seatkeeper_testbed::proxy::Network;
use serde_json::{Value, json};

use crate::harness::Client;
use crate::world::{AP, EU, US, World, region_of, screen};

/// The span of a storm.
const STORM: Duration = Duration::from_secs(6);

/// Clients of a pool in each region.
const CLIENTS: usize = 4;

/// The screens of the plan and the seats of the license.
pub(crate) const LIMIT: usize = 2;

/// The time from an answer with a seat to the request that gives the seat back.
pub(crate) struct Hold {
    from: Instant,
    to: Instant,
}

/// The observations of all clients.
#[derive(Default)]
pub(crate) struct Observed {
    /// The holds of each pool.
    pub(crate) holds: BTreeMap<String, Vec<Hold>>,
    /// The home of each pool, by the ids of its sessions.
    pub(crate) homes: BTreeMap<String, BTreeSet<u8>>,
    pub(crate) denied: usize,
    pub(crate) unavailable: usize,
    /// The longest time without an answer other than 503, for one client.
    pub(crate) closed: Duration,
    /// Number of sessions that ended before the client's release.
    pub(crate) lost: usize,
}

/// A client of a pool.
struct Player {
    client: Client,
    pool: String,
    name: String,
    license_key: Option<Value>,
    observed: Arc<Mutex<Observed>>,
    dice: StdRng,
}

impl Player {
    async fn play(mut self, until: Instant) {
        let mut answered = Instant::now();
        while Instant::now() < until {
            let answer = match &self.license_key {
                Some(key) => self.client.acquire(key, &self.name).await,
                None => self.client.post("/api/v1/devices/sessions", screen(&self.name)).await,
            };
            match answer.status {
                200 | 201 => {
                    self.note_closed(answered);
                    self.hold(&answer.body).await;
                }
                403 => {
                    self.note_closed(answered);
                    self.observed.lock().unwrap().denied += 1;
                }
                503 => {
                    self.observed.lock().unwrap().unavailable += 1;
                    tokio::time::sleep(Duration::from_millis(self.dice.random_range(0..40))).await;
                    continue;
                }
                status => panic!("{status}: {:#}", answer.body),
            }
            answered = Instant::now();
            tokio::time::sleep(Duration::from_millis(self.dice.random_range(0..40))).await;
        }
    }

    fn note_closed(&self, answered: Instant) {
        let mut observed = self.observed.lock().unwrap();
        observed.closed = observed.closed.max(answered.elapsed());
    }

    /// Holds a seat for a while, and gives the seat back until the server says that it is free.
    async fn hold(&mut self, answer: &Value) {
        let from = Instant::now();
        let used = answer.get("seats_used").or(answer.get("devices_in_use")).and_then(Value::as_u64).unwrap();
        assert!(used <= LIMIT as u64, "{answer}");
        let id = &answer["session_id"];
        tokio::time::sleep(Duration::from_millis(self.dice.random_range(0..120))).await;
        let to = Instant::now();
        {
            let mut observed = self.observed.lock().unwrap();
            observed.holds.entry(self.pool.clone()).or_default().push(Hold { from, to });
            observed.homes.entry(self.pool.clone()).or_default().insert(region_of(id));
        }
        let api = if self.license_key.is_some() { "licenses" } else { "devices" };
        let path = format!("/api/v1/{api}/sessions/{}", id.as_str().unwrap());
        let mut is_first = true;
        loop {
            match self.client.delete(&path).await.status {
                204 => return,
                404 if is_first => self.observed.lock().unwrap().lost += 1,
                404 => return,
                _ => is_first = false,
            }
            if is_first {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Returns the greatest number of holds at an instant.
pub(crate) fn greatest(holds: &[Hold]) -> usize {
    let held = |at: Instant| holds.iter().filter(|hold| hold.from <= at && at < hold.to).count();
    holds.iter().map(|hold| held(hold.from)).max().unwrap_or(0)
}

/// A storm: clients of some regions against three users and a license that no region has seen.
pub(crate) struct Storm<'a> {
    pub(crate) world: &'a World,
    /// Tells the users of the storm from those of other storms.
    pub(crate) name: String,
    /// The regions with clients.
    pub(crate) regions: &'a [usize],
    pub(crate) seed: u64,
}

impl Storm<'_> {
    /// Runs the storm while `weather` changes the networks or the regions. The plan `pair` must exist.
    pub(crate) async fn run(self, weather: impl AsyncFn(&mut StdRng)) -> Observed {
        println!("{}seed {}", self.name, self.seed);
        let key = self.world.license(self.regions[0], LIMIT as u32).await;
        let mut dice = StdRng::seed_from_u64(self.seed);
        for pool in 0..3 {
            self.world.subscribe(self.regions[0], &self.user(pool)).await;
        }
        let (observed, until) = (Arc::new(Mutex::new(Observed::default())), Instant::now() + STORM);
        let mut players = Vec::new();
        for region in self.regions {
            for number in 0..CLIENTS {
                for pool in 0..4 {
                    let user = self.user(pool);
                    let player = Player {
                        client: self.world.client(*region, &user),
                        pool: user,
                        name: format!("device-{region}-{number}"),
                        license_key: (pool == 3).then(|| key.clone()),
                        observed: Arc::clone(&observed),
                        dice: StdRng::seed_from_u64(dice.random()),
                    };
                    players.push(tokio::spawn(player.play(until)));
                }
            }
        }
        while Instant::now() < until {
            weather(&mut dice).await;
        }
        self.world.set_all(Network::Well);
        for player in players {
            player.await.unwrap();
        }
        Arc::into_inner(observed).expect("the only observer").into_inner().unwrap()
    }

    /// Returns the user of a pool. Pool 3 is the license.
    fn user(&self, pool: usize) -> String {
        format!("{}user-{pool}", self.name)
    }
}

/// Runs clients of every region against pools that no region has seen, while `weather` changes the networks.
pub(crate) async fn storm(world: &World, seed: u64, weather: impl AsyncFn(&mut StdRng)) -> Observed {
    world.create_plan().await;
    Storm { world, name: String::new(), regions: &[EU, US, AP], seed }.run(weather).await
}

fn check(observed: &Observed) {
    assert_eq!(observed.holds.len(), 4, "every pool was used");
    for (pool, holds) in &observed.holds {
        assert!(holds.len() > 20, "{pool}: {} holds", holds.len());
        assert!(greatest(holds) <= LIMIT, "{pool}: {} holders", greatest(holds));
        assert_eq!(observed.homes[pool].len(), 1, "{pool} was at home in {:?}", observed.homes[pool]);
    }
    assert!(observed.denied > 0, "no pool was ever full");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_over_slow_networks_never_exceeds_a_limit() {
    let world = World::start().await;
    world.set_all(Network::AnswersLate(Duration::from_millis(80)));
    let observed = storm(&world, rand::random(), async |_| tokio::time::sleep(STORM).await).await;
    check(&observed);
    assert_eq!(observed.unavailable, 0);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_with_cuts_never_exceeds_a_limit() {
    let world = World::start().await;
    let observed = storm(&world, rand::random(), async |dice| {
        let networks = [Network::Cut, Network::Silent, Network::SwallowsAnswers(0.5), Network::RequestsWait];
        let (region, network) = (dice.random_range(0..3), networks[dice.random_range(0..networks.len())]);
        world.set_around(region, network);
        tokio::time::sleep(Duration::from_millis(dice.random_range(50..300))).await;
        world.set_around(region, Network::Well);
        tokio::time::sleep(Duration::from_millis(dice.random_range(50..300))).await;
    })
    .await;
    check(&observed);
    assert!(observed.unavailable > 0, "no cut was felt");
    world.close().await;
}

/// Requests for one new subscriber in all regions at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_requests_in_all_regions_at_once_find_one_home() {
    let world = Arc::new(World::start().await);
    world.set_all(Network::AnswersLate(Duration::from_millis(20)));
    for round in 0..20 {
        let user = format!("new-{round}");
        let mut first = Vec::new();
        for region in [0, 1, 2, 2, 1, 0] {
            let client = world.client(region, &user);
            let device = json!({ "device_id": format!("d{region}"), "device_type": "tv" });
            first.push(tokio::spawn(async move { client.post("/api/v1/devices/sessions", device).await }));
        }
        let mut homes = BTreeSet::new();
        for answer in first {
            let answer = answer.await.unwrap();
            assert!(matches!(answer.status, 200 | 201), "{:#}", answer.body);
            assert_eq!(answer.body["devices_in_use"], 1);
            homes.insert(region_of(&answer.body["session_id"]));
        }
        assert_eq!(homes.len(), 1, "round {round}: {homes:?}");
    }
    Arc::into_inner(world).expect("the only owner").close().await;
}
