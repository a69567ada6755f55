//! Regions as processes of their own, killed in the middle of a move.

use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use crate::adoption::refuse_a_batch;
use crate::harness::run;
use crate::processes::{DEADLINE, Processes, recorded};
use crate::world::{AP, EU, NAMES, US, region_of, screen};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_region_killed_in_the_middle_of_a_move_ends_no_session_and_admits_no_second() {
    let dir = tempfile::tempdir().unwrap();
    let mut regions = Processes::start(dir.path(), "", "");
    for (round, killed) in [US, AP, US, AP, US, AP, US, AP].into_iter().enumerate() {
        let user = format!("user-{round}");
        let held = regions.client(US, &user).post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
        let (admin, body) = (regions.admin(US), json!({ "user": user, "to": "ap" }));
        recorded(&admin, &user).await;
        let begun = tokio::spawn(async move {
            admin.try_send(Method::POST, "/api/v1/admin/homes/moves", Some(body)).await
        });
        // From before the first step to after the last.
        tokio::time::sleep(Duration::from_millis(3 * round as u64)).await;
        regions.kill(killed);
        drop(begun.await);
        regions.start_region(killed);
        let beat = json!({ "session_id": held["session_id"] });
        let began = Instant::now();
        for region in [EU, US, AP] {
            let client = regions.client(region, &user);
            loop {
                let answer = client.post("/api/v1/devices/sessions/heartbeat", beat.clone()).await;
                match answer.status {
                    204 => break,
                    503 => assert!(
                        began.elapsed() < DEADLINE,
                        "round {round}: no heartbeat in {}",
                        NAMES[region]
                    ),
                    status => panic!("round {round}: a heartbeat in {} got {status}", NAMES[region]),
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        // The only seat is the session's, wherever the home is now: a claim evicts it, and is never beside it.
        let next =
            regions.client(EU, &user).post("/api/v1/devices/sessions", screen("phone")).await.expect(201);
        assert_eq!(next["evicted_session_ids"], json!([held["session_id"]]), "round {round}");
        assert!(matches!(region_of(&next["session_id"]), 2 | 3));
    }
    drop(regions.close());
}

/// The subscribers at home in the region that is lost.
const LOST_USERS: usize = 24;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adoption_is_resumed_after_a_kill_of_the_successor_or_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let mut regions = Processes::start(dir.path(), "", "[devices]\nttl_seconds = 30\n");
    let mut held = Vec::new();
    for number in 0..LOST_USERS {
        let user = format!("user-{number}");
        let answer = regions.client(EU, &user).post("/api/v1/devices/sessions", screen("tv")).await;
        held.push((user, answer.expect(201)["session_id"].clone()));
    }
    let admin = regions.admin(EU);
    for (user, _) in &held {
        recorded(&admin, user).await;
    }
    let refused = regions.adoption().output().unwrap();
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("another process uses the data directory"), "{told}");
    regions.kill(EU);
    for round in 0..12_u64 {
        let mut adoption = regions.adoption().spawn().unwrap();
        tokio::time::sleep(Duration::from_millis(15 + 12 * round)).await;
        if round % 2 == 0 {
            regions.kill(US);
            drop(adoption.wait_with_output().unwrap());
            regions.start_region(US);
        } else {
            adoption.kill().unwrap();
            adoption.wait().unwrap();
        }
    }
    refuse_a_batch(&regions.data(EU)).await;
    // The answer of the first command may be lost: the second tells the unbilled usage as well.
    for wanted in ["Region eu is adopted by us: ", "Region eu is adopted by us already."] {
        let adopted = regions.adoption().output().unwrap();
        let told = String::from_utf8_lossy(&adopted.stdout).into_owned();
        assert!(adopted.status.success(), "{told}{}", String::from_utf8_lossy(&adopted.stderr));
        assert!(told.starts_with(wanted), "{told}");
        assert!(told.contains("NOT BILLED: 0 sessions of capacities"), "{told}");
        assert!(told.contains("and 1 batches"), "{told}");
    }
    for (user, session) in &held {
        for region in [US, AP] {
            let beat = json!({ "session_id": session });
            let answer = regions.client(region, user).post("/api/v1/devices/sessions/heartbeat", beat).await;
            answer.expect(204);
        }
        let silent = regions.client(AP, user).post("/api/v1/devices/sessions", screen("phone")).await;
        assert_eq!(silent.expect(503)["type"], "/problems/region-adopting");
    }
    let listed = run(&["region", "list", "--server", &regions.servers[&AP].url, "--config"]
        .into_iter()
        .chain([regions.settings(AP).to_str().unwrap()])
        .collect::<Vec<_>>());
    assert!(listed.stdout.contains("lost, adopted by 2"), "{}{}", listed.stdout, listed.stderr);
    let (settings, data) = (regions.settings(EU), regions.data(EU));
    // A server that started after all could not listen there, and would end.
    let listen = regions.servers[&AP].url.trim_start_matches("http://");
    starts_no_server(
        &data,
        &["--listen", listen, "--config", settings.to_str().unwrap()],
        "has adopted this region",
    );
    // A node without the section [region] would forward nothing, and would know no successor.
    starts_no_server(&data, &["--listen", listen], "have no region.number");
    drop(regions.close());
}

/// Checks that no server starts in the data directory `data`, with the reason `why`.
fn starts_no_server(data: &Path, settings: &[&str], why: &str) {
    let started = run(&[&["serve", "--data-dir", data.to_str().unwrap()], settings].concat());
    assert_eq!(started.status.code(), Some(1), "{}", started.stderr);
    assert!(started.stderr.contains(why), "{}", started.stderr);
}
