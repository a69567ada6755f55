//! The password of Redis changes under load, and no request fails. On a busy machine a node may stand still,
//! and refuse requests for a moment.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use seatkeeper_testbed::redis::Redis;

use super::support::{Nodes, seat};
use super::tally::{Tally, machines, refused, some_are_done};

/// The variable with the path of a node's password file.
pub(crate) const PASSWORD_FILE: &str = "SEATKEEPER_REGISTRY_PASSWORD_FILE";

/// The number of machines at each node. Every machine takes and releases seats throughout the test.
const MACHINES: usize = 4;

/// The number of password changes.
const CHANGES: usize = 5;

/// The number of password changes in which no request may be refused.
const QUIET_CHANGES_MIN: usize = 3;

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

    let is_over = AtomicBool::new(false);
    let tallies: Vec<_> = (0..clients.len() * MACHINES).map(|_| Tally::default()).collect();
    let at_work = machines(&tallies, &clients, key, &held, &is_over);
    let story = async {
        let mut asked_again = Vec::new();
        for change in 1..=CHANGES {
            let (old, new) = (format!("password-{}", change - 1), format!("password-{change}"));
            user(&[&format!(">{new}")]);
            fs::write(&file, new).expect("it is written");
            user(&[&format!("<{old}")]);
            redis.ask::<u32>(redis::cmd("CLIENT").arg("KILL").arg("USER").arg("seatkeeper").take());
            some_are_done(&tallies).await;
            asked_again.push(refused(&tallies));
        }
        is_over.store(true, Relaxed);
        println!("asked again in each change: {asked_again:?}");
        let quiet = asked_again.iter().filter(|refused| **refused == 0).count();
        assert!(quiet >= QUIET_CHANGES_MIN, "requests were refused: {asked_again:?}");
    };
    tokio::join!(story, at_work);
    clients[1].heartbeat(&held).await.expect(200);
    drop(nodes.close());
}
