//! Storms in rounds over three regions with a Redis and a PostgreSQL each, as far apart as continents, while networks are
//! cut, homes move and regions restart. `SEATKEEPER_STORM_ROUNDS` sets the number of rounds.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use rand::RngExt as _;
use rand::rngs::StdRng;
use seatkeeper_server::HeartbeatForwarding;
use seatkeeper_testbed::proxy::Network;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::moves::{CLOSED_MAX, relocate};
use crate::storm::{LIMIT, Observed, Storm, greatest};
use crate::world::{AP, EU, NAMES, US, World, screen};

/// The default number of rounds: each weather once.
const ROUNDS: u64 = 4;

/// The TTL of the sessions that are held from the first round to the last.
const TTL_SECONDS: u64 = 20;

/// The time between two heartbeats of a held session.
const INTERVAL: Duration = Duration::from_secs(4);

/// The troubles of a round.
#[derive(Clone, Copy, Debug)]
enum Weather {
    Calm,
    Cuts,
    Moves,
    /// A region restarts again and again. Its own clients stay at home.
    Restarts(usize),
}

impl Weather {
    fn of_round(round: u64) -> Self {
        match round % 4 {
            0 => Self::Calm,
            1 => Self::Cuts,
            2 => Self::Moves,
            _ => Self::Restarts([EU, US, AP][(round / 4 % 3) as usize]),
        }
    }

    /// Returns the regions with clients.
    fn regions(self) -> &'static [usize] {
        match self {
            Self::Restarts(EU) => &[US, AP],
            Self::Restarts(US) => &[EU, AP],
            Self::Restarts(_) => &[EU, US],
            Self::Calm | Self::Cuts | Self::Moves => &[EU, US, AP],
        }
    }

    async fn blow(self, world: &World, name: &str, dice: &mut StdRng, moves: &Mutex<Vec<Duration>>) {
        let pause = |dice: &mut StdRng| tokio::time::sleep(Duration::from_millis(dice.random_range(50..300)));
        match self {
            Self::Calm => pause(dice).await,
            Self::Cuts => {
                let networks =
                    [Network::Cut, Network::Silent, Network::SwallowsAnswers(0.5), Network::RequestsWait];
                let network = networks[dice.random_range(0..networks.len())];
                world.set_around(dice.random_range(0..3), network);
                pause(dice).await;
                world.set_far_apart();
                pause(dice).await;
            }
            Self::Moves => {
                let user = format!("{name}user-{}", dice.random_range(0..3));
                // The home is not known here: each region is asked until the home is moving, or is out of reach.
                let first = dice.random_range(0..3);
                for from in (first..first + 3).map(|region| region % 3) {
                    let to = (from + dice.random_range(1..3)) % 3;
                    let began = Instant::now();
                    let answer = relocate(world, from, &user, to).await;
                    assert!(matches!(answer.status, 200 | 202 | 409 | 503), "{:#}", answer.body);
                    if answer.status == 200 {
                        moves.lock().unwrap().push(began.elapsed());
                    }
                    if answer.status != 409 {
                        break;
                    }
                }
                pause(dice).await;
            }
            Self::Restarts(region) => {
                world.stop_region(region).await;
                pause(dice).await;
                world.start_region(region).await;
                pause(dice).await;
            }
        }
    }
}

/// A device that holds its screen from the first round to the last.
struct Holder {
    user: String,
    session: Value,
}

impl Holder {
    async fn start(world: &World, home: usize) -> Self {
        let user = format!("holder-{home}");
        let held = world.client(home, &user).post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
        Self { user, session: held["session_id"].clone() }
    }

    /// Heartbeats by any of the regions until `stop`.
    async fn hold(&self, world: &World, regions: &[usize], stop: &CancellationToken) {
        let beat = json!({ "session_id": self.session });
        for turn in 0.. {
            let client = world.client(regions[turn % regions.len()], &self.user);
            let confirmed = Instant::now();
            let pause = loop {
                let answer = client.post("/api/v1/devices/sessions/heartbeat", beat.clone()).await;
                match answer.status {
                    204 => break INTERVAL,
                    503 if confirmed.elapsed() > INTERVAL => break Duration::ZERO,
                    503 => tokio::time::sleep(Duration::from_millis(200)).await,
                    status => panic!("a heartbeat of {} got {status}: {:#}", self.user, answer.body),
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }
}

fn check(weather: Weather, observed: &Observed) {
    assert_eq!(observed.holds.len(), 4, "{weather:?}: a pool was never used");
    for (pool, holds) in &observed.holds {
        assert!(greatest(holds) <= LIMIT, "{pool}: {} holders", greatest(holds));
    }
    assert!(observed.denied > 0, "{weather:?}: no pool was ever full");
    assert_eq!(observed.lost, 0, "{weather:?}: a session ended before its holder gave it back");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn storms_in_rounds_never_exceed_a_limit_and_end_no_session() {
    let rounds = std::env::var("SEATKEEPER_STORM_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap());
    let world = World::start_with([true; 3], |settings| {
        settings.devices.ttl_seconds = TTL_SECONDS;
        if settings.region.name == NAMES[US] {
            settings.region.heartbeats = HeartbeatForwarding::Batched;
        }
    })
    .await;
    let moves = Mutex::default();
    world.create_plan().await;
    let holders =
        [Holder::start(&world, EU).await, Holder::start(&world, US).await, Holder::start(&world, AP).await];
    let [mut holds, mut denied, mut unavailable] = [0; 3];
    for round in 0..rounds {
        let (weather, name) = (Weather::of_round(round), format!("round-{round}-"));
        world.set_far_apart();
        let stop = CancellationToken::new();
        let regions = weather.regions();
        let storm = Storm { world: &world, name: name.clone(), regions, seed: rand::random() };
        let storm = async {
            let observed = storm.run(async |dice| weather.blow(&world, &name, dice, &moves).await).await;
            stop.cancel();
            observed
        };
        let [first, second, third] = holders.each_ref().map(|holder| holder.hold(&world, regions, &stop));
        let (observed, ..) = tokio::join!(storm, first, second, third);
        check(weather, &observed);
        holds += observed.holds.values().map(Vec::len).sum::<usize>();
        denied += observed.denied;
        unavailable += observed.unavailable;
    }
    println!("{rounds} rounds: {holds} holds, {denied} denials, {unavailable} answers of 503");
    assert!(rounds < 2 || unavailable > 0, "no cut was felt");
    let moves = moves.into_inner().unwrap();
    let longest = moves.iter().max().copied().unwrap_or_default();
    println!("{} moves, the longest in {longest:?}", moves.len());
    assert!(rounds < 3 || !moves.is_empty(), "no home moved");
    assert!(longest < CLOSED_MAX, "a move took {longest:?}");
    for Holder { user, session } in &holders {
        let path = format!("/api/v1/devices/sessions/{}", session.as_str().unwrap());
        world.client(AP, user).delete(&path).await.expect(204);
    }
    world.close().await;
}
