//! The password of Redis changes under load, and no request fails.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join_all;
use seatkeeper_testbed::redis::Redis;

use super::support::{Nodes, seat};
use crate::harness::Client;

/// The variable with the path of a node's password file.
pub(crate) const PASSWORD_FILE: &str = "SEATKEEPER_REGISTRY_PASSWORD_FILE";

/// The number of machines at each node. Every machine takes and releases seats throughout the test.
const MACHINES: usize = 4;

/// The number of password changes.
const CHANGES: usize = 5;

/// The number of requests answered before the next change.
const BETWEEN: usize = 50;

const PAUSE: Duration = Duration::from_millis(5);

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_changed_under_load_and_no_request_fails() {
    let redis = Redis::start();
    let user = |rules: &[&str]| {
        redis.ask::<()>(redis::cmd("ACL").arg("SETUSER").arg("seatkeeper").arg(rules).take());
    };
    let rights = ["~sk:*", "&sk:*", "&__keyevent@0__:expired", "+@all", "-@dangerous", "+info"];
    user(&[&["on", ">password-0"][..], &rights].concat());
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("password");
    fs::write(&file, "password-0").expect("it is written");
    let registry = redis.url().replace("redis://", "redis://seatkeeper@");
    let mut nodes = Nodes::over(&[]);
    for _ in 0..2 {
        nodes.add_in(&[(PASSWORD_FILE, file.clone())], &registry);
    }
    let (license, clients) = (nodes.harnesses[0].license(100).await, nodes.clients());
    let key = &license["license_key"];
    let held = seat(&clients[0], &license, "held").await;

    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let machine = async |client: &Client, name: String| {
        while !is_over.load(Relaxed) {
            let got = client.acquire(key, &name).await;
            // A retry on another connection may find the seat already taken by the first attempt.
            assert!([200, 201].contains(&got.status), "{got:?}");
            let session = got.body["session_id"].clone();
            client.heartbeat(&session).await.expect(200);
            client.heartbeat(&held).await.expect(200);
            // A retry may find the session already released.
            let left = client.release(&session).await;
            assert!([204, 404].contains(&left.status), "{left:?}");
            answered.fetch_add(4, Relaxed);
        }
    };
    let at_work = (0..clients.len() * MACHINES)
        .map(|number| machine(&clients[number % clients.len()], format!("machine-{number}")));
    let story = async {
        for change in 1..=CHANGES {
            let (old, new) = (format!("password-{}", change - 1), format!("password-{change}"));
            user(&[&format!(">{new}")]);
            fs::write(&file, new).expect("it is written");
            user(&[&format!("<{old}")]);
            redis.ask::<u32>(redis::cmd("CLIENT").arg("KILL").arg("USER").arg("seatkeeper").take());
            let until = answered.load(Relaxed) + BETWEEN;
            while answered.load(Relaxed) < until {
                tokio::time::sleep(PAUSE).await;
            }
        }
        is_over.store(true, Relaxed);
    };
    tokio::join!(story, join_all(at_work));
    clients[1].heartbeat(&held).await.expect(200);
    drop(nodes.close());
}
