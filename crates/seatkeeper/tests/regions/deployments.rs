//! Two deployments with the number and the key of one region, as after a copied settings file: the second is refused.

use std::time::{Duration, Instant};

use reqwest::Method;
use seatkeeper_core::Region;
use seatkeeper_server::auth::{TokenRequest, mint};
use seatkeeper_server::{Running, Settings, StartError, start};
use seatkeeper_testbed::proxy::Network;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::adoption::play;
use crate::harness::{Answer, Client, Output, run_with};
use crate::world::{AP, EU, NOWHERE, TENANT, US, World, region_of, screen};

/// A second deployment with the settings of a region, and a ledger of its own.
struct Second {
    settings: Settings,
    stop: CancellationToken,
    running: Running,
}

impl Second {
    async fn start(world: &World, region: usize) -> Result<Self, StartError> {
        let mut settings = world.settings[region].clone();
        settings.ledger.data_dir = settings.ledger.data_dir.with_file_name("data-second");
        let stop = CancellationToken::new();
        let running = start(settings.clone(), stop.clone()).await?;
        Ok(Self { settings, stop, running })
    }

    /// Starts a deployment that reaches no peer until its start is over.
    async fn start_cut_off(world: &World, region: usize) -> Self {
        cut_off(world, region);
        let second = Self::start(world, region).await.expect("a start without answers of peers");
        for peer in peers_of(region) {
            world.redirect(region, peer, world.address(peer));
        }
        second
    }

    fn client(&self, user: &str, scopes: &str) -> Client {
        let (tenant, ttl) = (TENANT.to_owned(), Duration::from_secs(3_600));
        let request = TokenRequest { tenant, user: user.to_owned(), scopes: scopes.to_owned(), ttl };
        Client::new(&format!("http://{}", self.running.addr), mint(&self.settings, &request).unwrap())
    }

    async fn play(&self, user: &str) -> Answer {
        self.client(user, "").post("/api/v1/devices/sessions", screen("tv")).await
    }

    async fn stop(self) {
        self.stop.cancel();
        self.running.finished().await;
    }
}

fn peers_of(region: usize) -> impl Iterator<Item = usize> {
    [EU, US, AP].into_iter().filter(move |peer| *peer != region)
}

fn cut_off(world: &World, region: usize) {
    for peer in peers_of(region) {
        world.redirect(region, peer, NOWHERE);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_deployment_with_the_number_of_a_region_does_not_start() {
    let world = World::start().await;
    for region in [EU, US, AP] {
        let own = world.settings[region].region.number;
        match Second::start(&world, region).await {
            Err(StartError::NumberTaken { own: named, .. }) => assert_eq!(named, Region::new(own)),
            Err(error) => panic!("region {own}: {error}"),
            Ok(_) => panic!("a second region {own} has started"),
        }
        std::fs::remove_dir_all(world.settings[region].ledger.data_dir.with_file_name("data-second"))
            .unwrap();
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_deployment_that_no_peer_refused_at_its_start_becomes_no_home() {
    let world = World::start().await;
    let second = Second::start_cut_off(&world, US).await;
    let refused = second.play("ann").await.expect(503);
    assert_eq!(refused["type"], "/problems/region-unavailable");
    let home = play(&world, US, "ann", "tv").await.expect(201);
    assert_eq!(region_of(&home["session_id"]), 2);
    second.play("ann").await.expect(503);
    let ledger = second.settings.ledger.data_dir.clone();
    second.stop().await;
    let of = |region: usize| format!("{}={}", region + 1, world.settings[region].ledger.data_dir.display());
    let proof = |ledgers: &[String]| {
        let ledgers = ledgers.iter().map(String::as_str);
        let args: Vec<_> = ["audit", "verify", "--regions"].into_iter().chain(ledgers).collect();
        run_with(&[], &args)
    };
    let of_second = format!("2={}", ledger.display());
    let broken = proof(&[of(EU), of_second.clone()]);
    assert!(broken.stdout.contains("BROKEN") && broken.stdout.contains("another deployment"), "{broken:?}");
    assert!(proof(&[of(EU), of(US), of_second]).stderr.contains("named twice"));
    assert!(proof(&[of(EU).replacen('1', "3", 1)]).stderr.contains("region 1's"));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_anchor_assigns_nothing_and_sells_nothing() {
    let world = World::start().await;
    play(&world, US, "ann", "tv").await.expect(201);
    cut_off(&world, EU);
    let second = Second::start(&world, EU).await.expect("a start without answers of peers");
    let take = async || {
        let [user, tenant, capacity] = [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()];
        let ask = json!({
            "userObjectId": user, "tenantObjectId": tenant, "capacityId": capacity, "sessionKind": 1
        });
        let capacity = second.client("service", "service").put("/api/v1/capacities/sessions", ask).await;
        let license = json!({ "max_seats": 1 });
        let license = second.client("ops", "admin").post("/api/v1/admin/licenses", license).await;
        [second.play("bob").await, capacity, license]
    };
    for answer in take().await {
        assert_eq!(answer.expect(503)["type"], "/problems/region-unavailable");
    }
    for peer in peers_of(EU) {
        world.redirect(EU, peer, world.address(peer));
    }
    for answer in take().await {
        assert_eq!(answer.expect(503)["type"], "/problems/region-settings-differ");
    }
    play(&world, EU, "bob", "tv").await.expect(201);
    second.stop().await;
    world.close().await;
}

/// A copy of the settings ran without peers first, so it needed no consent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_anchor_that_began_alone_admits_nobody_once_its_peers_answer() {
    let world = World::start().await;
    play(&world, EU, "ann", "tv").await.expect(201);
    let (mut settings, stop) = (world.settings[EU].clone(), CancellationToken::new());
    settings.ledger.data_dir = settings.ledger.data_dir.with_file_name("data-second");
    settings.region.peers.clear();
    let alone = start(settings, stop.clone()).await.expect("a region without peers");
    stop.cancel();
    alone.finished().await;
    let second = Second::start_cut_off(&world, EU).await;
    let began = Instant::now();
    loop {
        match second.play("bob").await {
            answer if answer.status == 503 => {
                assert_eq!(answer.body["type"], "/problems/region-settings-differ");
                break;
            }
            answer => assert!(matches!(answer.status, 200 | 201), "{answer:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(20), "the second anchor admits");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    second.stop().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_anchor_waits_for_the_consent_of_a_peer() {
    let world = World::start_alone(EU).await;
    let refused = play(&world, EU, "ann", "tv").await.expect(503);
    assert_eq!(refused["type"], "/problems/region-unavailable");
    world.start_region(US).await;
    play(&world, EU, "ann", "tv").await.expect(201);
    world.stop_region(US).await;
    world.stop_region(EU).await;
    world.start_region(EU).await;
    play(&world, EU, "bob", "tv").await.expect(201);
    world.start_region(US).await;
    world.start_region(AP).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_began_without_peers_needs_no_consent() {
    let mut world = World::start_alone(US).await;
    world.stop_region(US).await;
    let peers = std::mem::take(&mut world.settings[EU].region.peers);
    world.start_region(EU).await;
    world.stop_region(EU).await;
    world.settings[EU].region.peers = peers;
    world.start_region(EU).await;
    play(&world, EU, "ann", "tv").await.expect(201);
    world.start_region(US).await;
    world.start_region(AP).await;
    world.close().await;
}

/// Runs `repair region 2` on the ledger of a stopped region.
fn repair(world: &World, region: usize, apply: &[&str]) -> Output {
    let dir = world.settings[region].ledger.data_dir.to_str().unwrap();
    let args: Vec<_> = ["repair", "region", "2", "--data-dir", dir].iter().chain(apply).copied().collect();
    run_with(&[], &args)
}

/// Makes the peers of `us` forget its deployment. `us` cannot reach them meanwhile.
async fn forget_us(world: &World) {
    world.set_around(US, Network::Cut);
    for region in [EU, AP] {
        world.stop_region(region).await;
        assert!(repair(world, region, &["--apply"]).status.success());
        world.start_region(region).await;
    }
}

/// Waits until a claim of Carol in `us` is served or refused, and returns the answer.
async fn claims_are(world: &World, served: bool) -> Answer {
    let began = Instant::now();
    loop {
        let answer = play(world, US, "carol", "tv").await;
        if (answer.status != 503) == served {
            return answer;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{answer:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_that_its_peers_know_as_another_admits_nobody_and_ends_nobody() {
    let world = World::start().await;
    let held = play(&world, US, "ann", "tv").await.expect(201);
    play(&world, US, "carol", "tv").await.expect(201);
    // The anchor has met its peer.
    play(&world, AP, "bob", "tv").await.expect(201);
    forget_us(&world).await;
    for region in [EU, AP] {
        let other = world.region_token_as("6a3d2f68-8f6c-4f0e-9a40-3b3c4f0b1c11", US, region);
        let path = "/api/v1/regions/deployments";
        world.send_with(region, "ann", &other, Method::POST, path, json!({})).await.expect(200);
    }
    world.set_around(US, Network::Well);
    let refused = claims_are(&world, false).await;
    assert_eq!(refused.body["type"], "/problems/region-settings-differ");
    let beat = json!({ "session_id": held["session_id"] });
    world.client(US, "ann").post("/api/v1/devices/sessions/heartbeat", beat).await.expect(204);
    forget_us(&world).await;
    world.set_around(US, Network::Well);
    claims_are(&world, true).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_deployment_takes_the_place_of_a_lost_one_by_an_operator_s_command() {
    let mut world = World::start().await;
    play(&world, AP, "ann", "tv").await.expect(201);
    world.stop_region(US).await;
    let data = world.settings[US].ledger.data_dir.with_file_name("data-new");
    world.settings[US].ledger.data_dir = data;
    let repair = |region: usize, apply: &[&str]| {
        let dir = world.settings[region].ledger.data_dir.to_str().unwrap();
        let args: Vec<_> =
            ["repair", "region", "2", "--data-dir", dir].iter().chain(apply).copied().collect();
        run_with(&[], &args)
    };
    for region in [EU, AP] {
        world.stop_region(region).await;
    }
    let asked = repair(EU, &[]);
    assert!(asked.status.success() && asked.stdout.contains("Nothing was changed."), "{asked:?}");
    for region in [EU, AP] {
        // The region may not have heard of its peer yet.
        repair(region, &["--apply"]);
        assert!(!repair(region, &[]).status.success(), "forgotten");
        world.start_region(region).await;
    }
    world.start_region(US).await;
    play(&world, US, "bob", "tv").await.expect(201);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forgotten_deployment_is_replaced_without_a_restart() {
    let world = World::start_with([true, false, false], |_| {}).await;
    play(&world, US, "ann", "tv").await.expect(201);
    world.stop_region(US).await;
    let token = world.region_token(US, EU, None).await;
    let accept = async |token: &str| {
        world.send_with(EU, "ann", token, Method::POST, "/api/v1/regions/deployments", json!({})).await
    };
    accept(&token).await.expect(200);
    let url = world.settings[EU].ledger.url.as_ref().unwrap().reveal().to_owned();
    let variables = [("SEATKEEPER_LEDGER_URL".to_owned(), url)];
    let applied = run_with(&variables, &["repair", "region", "2", "--apply"]);
    assert!(applied.status.success(), "{applied:?}");
    let other = world.region_token_as("6a3d2f68-8f6c-4f0e-9a40-3b3c4f0b1c11", US, EU);
    let began = Instant::now();
    loop {
        match accept(&other).await {
            answer if answer.status == 200 => break,
            answer => assert_eq!(answer.expect(421)["type"], "/problems/region-number-taken"),
        }
        assert!(began.elapsed() < Duration::from_secs(20), "the old deployment is remembered");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(accept(&token).await.expect(421)["type"], "/problems/region-number-taken");
    let applied = run_with(&variables, &["repair", "region", "2", "--apply"]);
    assert!(applied.status.success(), "{applied:?}");
    while accept(&token).await.status != 200 {
        assert!(began.elapsed() < Duration::from_secs(20), "the other deployment is remembered");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.start_region(US).await;
    world.close().await;
}
