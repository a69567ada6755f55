//! Any region takes any request, and the home answers.

use reqwest::Method;
use seatkeeper_ledger::Ledger;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use uuid::Uuid;

use crate::harness::{Client, EventStream};
use crate::world::{AP, EU, NAMES, TENANT, US, World, region_of, screen};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_is_at_home_where_the_first_request_came_and_plays_from_everywhere() {
    let world = World::start().await;
    for first in [EU, US, AP] {
        let user = format!("ann-{first}");
        let home =
            world.client(first, &user).post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
        for elsewhere in [EU, US, AP] {
            let client = world.client(elsewhere, &user);
            let ask = json!({ "device_id": "tv", "device_type": "tv", "session_id": home["session_id"] });
            let again = client.post("/api/v1/devices/sessions", ask).await.expect(200);
            assert_eq!(again["session_id"], home["session_id"], "{} from {}", NAMES[first], NAMES[elsewhere]);
            let listed = client.get("/api/v1/devices/sessions").await.expect(200);
            assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
            let beat = json!({ "session_id": home["session_id"] });
            client.post("/api/v1/devices/sessions/heartbeat", beat).await.expect(204);
        }
        assert_eq!(usize::from(region_of(&home["session_id"])), first + 1);
        let ended = format!("/api/v1/devices/sessions/{}", home["session_id"].as_str().unwrap());
        world.client((first + 1) % 3, &user).delete(&ended).await.expect(204);
        let listed = world.client((first + 2) % 3, &user).get("/api/v1/devices/sessions").await.expect(200);
        assert_eq!(listed["items"], json!([]));
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_license_lives_in_the_anchor_and_is_used_from_everywhere() {
    let world = World::start().await;
    let key = world.license(US, 1).await;
    for region in [EU, US, AP] {
        let client = world.client(region, "ann");
        let seat = client.acquire(&key, "machine").await.expect(201);
        assert_eq!(region_of(&seat["session_id"]), 1);
        client.heartbeat(&seat["session_id"]).await.expect(200);
        let full = world.client((region + 1) % 3, "bob").acquire(&key, "other").await;
        assert_eq!(full.headers["retry-after"], full.body["retry_after_seconds"].to_string().as_str());
        full.expect(403);
        client.release(&seat["session_id"]).await.expect(204);
        client.heartbeat(&seat["session_id"]).await.expect(410);
    }
    let licenses = world.admin(AP).get("/api/v1/admin/licenses").await.expect(200);
    assert_eq!(licenses["items"][0]["license_key"], key);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn license_tokens_and_release_codes_work_in_every_region() {
    let world = World::start().await;
    let license = json!({ "max_seats": 1, "clients": "key" });
    let license = world.admin(AP).post("/api/v1/admin/licenses", license).await.expect(201);
    let nobody = |region| Client::new(&world.url(region), String::new());
    let ask = json!({ "tenant": TENANT, "license_key": license["license_key"], "machine_id": "m" });
    let token = nobody(US).post("/api/v1/licenses/token", ask).await.expect(200);
    let client = Client::new(&world.url(AP), token["token"].as_str().unwrap().to_owned());
    let seat = client.acquire(&license["license_key"], "m").await.expect(201);
    let code = json!({ "session_id": seat["session_id"], "release_code": seat["release_code"] });
    nobody(US).post("/api/v1/licenses/sessions/release", code).await.expect(204);
    client.heartbeat(&seat["session_id"]).await.expect(410);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_license_token_gets_no_home() {
    let world = World::start().await;
    let license = json!({ "max_seats": 1, "clients": "key" });
    let license = world.admin(EU).post("/api/v1/admin/licenses", license).await.expect(201);
    let ask = json!({ "tenant": TENANT, "license_key": license["license_key"], "machine_id": "m" });
    let nobody = Client::new(&world.url(US), String::new());
    let token = nobody.post("/api/v1/licenses/token", ask).await.expect(200);
    for region in [US, EU] {
        let machine = Client::new(&world.url(region), token["token"].as_str().unwrap().to_owned());
        machine.post("/api/v1/devices/sessions", screen("tv")).await.expect(401);
        let listed = world.admin(region).get("/api/v1/admin/regions").await.expect(200);
        let homes =
            listed["items"].as_array().unwrap().iter().map(|region| region["homes"].as_u64().unwrap());
        assert_eq!(homes.sum::<u64>(), 0, "{listed:#}");
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn capacities_live_in_the_anchor() {
    let world = World::start().await;
    let (user, capacity) = (Uuid::new_v4(), Uuid::new_v4());
    let tenant = Uuid::new_v4();
    let ask = json!({
        "userObjectId": user, "tenantObjectId": tenant, "capacityId": capacity, "sessionKind": 1
    });
    let service = |region| world.service(region);
    let first = service(AP).put("/api/v1/capacities/sessions", ask.clone()).await.expect(201);
    assert_eq!(region_of(&first["sessionId"]), 1);
    let second = service(US).put("/api/v1/capacities/sessions", ask).await.expect(200);
    assert_eq!(first["sessionId"], second["sessionId"]);
    let query = format!("userObjectId={user}&capacityId={capacity}&tenantObjectId={tenant}");
    let found = service(US).get(&format!("/api/v1/capacities/sessions?{query}")).await.expect(200);
    assert_eq!(found["items"][0]["sessionId"], first["sessionId"]);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_events_is_forwarded() {
    let world = World::start().await;
    let session = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    let events = format!("/api/v1/devices/sessions/{}/events", session["session_id"].as_str().unwrap());
    let away = world.client(AP, "ann");
    let mut stream = EventStream::open(&away, &events, None).await.unwrap();
    world.client(EU, "ann").post("/api/v1/devices/sessions", screen("phone")).await.expect(201);
    assert_eq!(stream.next().await.unwrap().name, "evicted");
    world.close().await;
}

/// The home of the session in the path answers. A session at home elsewhere needs a stream of its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_many_sessions_is_forwarded_with_its_list() {
    let world = World::start().await;
    let play = async |region, user| {
        let session = world.client(region, user).post("/api/v1/devices/sessions", screen("tv")).await;
        session.expect(201)["session_id"].clone()
    };
    let (anns, bobs, carls) = (play(US, "ann").await, play(AP, "bob").await, play(US, "carl").await);
    let path = |session: &Value| format!("/api/v1/devices/sessions/{}", session.as_str().unwrap());
    let (events, admin) = (format!("{}/events", path(&anns)), world.admin(AP));
    let mut stream = EventStream::open_shared(&admin, &events, &[&bobs, &carls]).await.unwrap();
    let mut told = async || {
        let heard = stream.next().await.unwrap();
        (heard.name, heard.data["session_id"].clone())
    };
    assert_eq!(told().await, ("unknown".into(), bobs));
    world.client(EU, "ann").post("/api/v1/devices/sessions", screen("phone")).await.expect(201);
    assert_eq!(told().await, ("evicted".into(), anns));
    world.client(EU, "carl").delete(&path(&carls)).await.expect(204);
    assert_eq!(told().await, ("revoked".into(), carls));
    assert_eq!(stream.next().await, None, "nothing is left to tell");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_home_takes_the_clients_address_from_the_token_of_a_region() {
    let world = World::start().await;
    world.client(AP, "bob").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    let to_home = world.region_token(US, AP, Some("203.0.113.7")).await;
    let path = "/api/v1/devices/sessions";
    let forwarded = world.send_with(AP, "bob", &to_home, Method::POST, path, screen("phone")).await;
    forwarded.expect(201);
    let listed = world.client(EU, "bob").get("/api/v1/devices/sessions").await.expect(200);
    assert_eq!(listed["items"][0]["ip"], "203.0.113.7");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forwarded_request_is_answered_at_home_alone_and_never_forwarded_again() {
    let world = World::start().await;
    let home = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    let token = world.region_token(AP, EU, Some("203.0.113.7")).await;
    let path = "/api/v1/devices/sessions";
    let answer = world.send_with(EU, "ann", &token, Method::POST, path, screen("phone")).await.expect(421);
    assert_eq!((&answer["type"], &answer["home"]), (&json!("/problems/wrong-region"), &json!(2)));
    let beat = json!({ "session_id": home["session_id"] });
    let path = "/api/v1/devices/sessions/heartbeat";
    let answer = world.send_with(EU, "ann", &token, Method::POST, path, beat).await.expect(421);
    assert_eq!(answer["home"], json!(2));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_that_no_peer_signed_for_this_region_is_refused() {
    let world = World::start().await;
    let key = world.license(EU, 1).await;
    let seat = world.client(EU, "ann").acquire(&key, "desk").await.expect(201);
    let heartbeat = format!("/api/v1/licenses/sessions/{}/heartbeat", seat["session_id"].as_str().unwrap());
    let for_another = world.region_token(US, AP, Some("203.0.113.7")).await;
    let own = world.region_token(EU, EU, Some("203.0.113.7")).await;
    // Clocks that are two minutes apart.
    let [behind, ahead] = [-120, 120].map(|ahead| world.region_token_ahead(ahead, US, EU));
    for token in ["forged", &for_another, &own, &behind, &ahead] {
        for (method, path) in [(Method::GET, "/api/v1/devices/sessions"), (Method::PATCH, &*heartbeat)] {
            let answer = world.send_with(EU, "ann", token, method, path, Value::Null).await.expect(421);
            assert_eq!(answer["type"], "/problems/region-token-refused");
        }
    }
    let path = "/api/v1/regions/homes";
    let ask = json!({ "tenant": TENANT, "user": "ann" });
    // The API of a region for its peers is for no client of a peer.
    let for_client = world.region_token(US, EU, Some("203.0.113.7")).await;
    let answer = world.send_with(EU, "ann", &for_client, Method::POST, path, ask.clone()).await.expect(421);
    assert_eq!(answer["type"], "/problems/region-token-refused");
    let token = world.region_token(US, EU, None).await;
    let answer = world.send_with(EU, "ann", &token, Method::POST, path, ask).await.expect(200);
    assert_eq!(answer["region"], 2);
    world.close().await;
}

/// Sends a request to a region with a target that HTTP clients do not send, and returns the status.
async fn status_of_target(world: &World, region: usize, target: &str, body: &Value) -> u16 {
    let (address, token) = (world.address(region), world.client(region, "ann").token);
    let body = body.to_string();
    let request = format!(
        "POST {target} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    status.unwrap_or_else(|| panic!("{target}: {answer}"))
}

/// A URL parser reads some paths as other paths. No such path leads a client to the API of a region for its peers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clients_path_does_not_lead_to_the_api_for_regions() {
    let world = World::start().await;
    world.client(EU, "bob").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    let after = json!({ "since": "1970-01-01T00:00:00Z", "tenant": "", "user": "" });
    let ask = json!({ "tenant": TENANT, "user": "mallory", "after": after });
    let licenses = "/api/v1/admin/licenses";
    for up in [r"..\..", r"..\%2e%2e", r"%2e%2e\.%2E", r"x\..\..\..", r".\..\.."] {
        for peer_path in [r"homes", r"homes\here", r"deployments", r"heartbeats", r"adoptions\begin"] {
            for before in [licenses.to_owned(), format!("http://127.0.0.1{licenses}")] {
                let target = format!(r"{before}/{up}\regions\{peer_path}");
                let status = status_of_target(&world, US, &target, &ask).await;
                assert!((400..500).contains(&status), "{target}: {status}");
            }
        }
    }
    for target in [
        "/api/v1/admin/licenses/..%2f..%2fregions%2fhomes",
        "/api/v1/admin/licenses/..%5c..%5cregions%5chomes",
        "/api/v1/admin/licenses/..;/..;/regions/homes",
        "/api/v1/admin/licenses/../../regions/homes",
        "/api/v1/admin/licenses/%2e%2e",
        "/api/v1/admin/licenses//../regions/homes",
        "//api/v1/regions/homes",
        "/api/v1/regions/homes",
    ] {
        let status = status_of_target(&world, US, target, &ask).await;
        assert!((400..500).contains(&status), "{target}: {status}");
    }
    let ledger = Ledger::open_read_only(world.ledger(EU)).await.unwrap();
    assert_eq!(ledger.home(&TENANT.into(), &"mallory".into()).await.unwrap(), None, "no home is assigned");
    ledger.close().await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn made_up_sessions_are_missing_and_callers_without_a_token_are_refused() {
    let world = World::start().await;
    let client = world.client(US, "ann");
    for region in [0_u8, 1, 2, 3, 77] {
        let started = seatkeeper_core::RegistryTime::from_millis(1);
        let bucket = seatkeeper_core::Bucket::new(0).unwrap();
        let region = seatkeeper_core::Region::new(region);
        let id = seatkeeper_core::SessionId::mint(started, bucket, region, 7).to_string();
        client.post("/api/v1/devices/sessions/heartbeat", json!({ "session_id": id })).await.expect(404);
        client.heartbeat(&json!(id)).await.expect(404);
    }
    client.post("/api/v1/devices/sessions/heartbeat", json!({ "session_id": 7 })).await.expect(422);
    let nameless = json!({ "user": "u".repeat(256), "plan": "basic" });
    world.admin(US).post("/api/v1/admin/subscriptions", nameless).await.expect(422);
    let nobody = Client::new(&world.url(US), "no-token".into());
    nobody.post("/api/v1/devices/sessions", screen("tv")).await.expect(401);
    nobody.post("/api/v1/regions/homes", json!({ "tenant": "acme", "user": "ann" })).await.expect(421);
    world.close().await;
}
