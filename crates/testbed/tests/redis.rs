//! Tests of the Redis harness.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::disk::Disk;
use seatkeeper_testbed::redis::{Memory, Redis, RedisCluster, RedisSetup};

#[test]
fn a_server_is_gone_with_its_owner() {
    let redis = Redis::start();
    assert_eq!(redis.ask::<String>(redis::cmd("PING")), "PONG");
    let process = format!("/proc/{}", redis.pid());
    assert!(Path::new(&process).exists());
    redis.pause();
    drop(redis);
    assert!(!Path::new(&process).exists());
}

#[test]
fn a_server_starts_again_with_what_it_should_remember() {
    let mut redis = RedisSetup::default().setting("appendonly yes").setting("appendfsync always").start();
    let port = redis.port();
    set(&redis, 1);
    let snapshot = redis.snapshot();
    set(&redis, 2);
    redis.kill();
    redis.start_again(Memory::OnDisk);
    assert_eq!((redis.port(), get(&redis)), (port, Some(2)));
    redis.kill();
    redis.start_again(Memory::Lost);
    assert_eq!(get(&redis), None);

    let mut redis = Redis::start();
    redis.stop();
    redis.start_again(Memory::Snapshot(snapshot));
    assert_eq!(get(&redis), Some(1));
}

#[test]
fn the_clock_of_a_server_can_be_turned() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let clock = Arc::new(Clock::new());
    let redis = RedisSetup::default().clock(&clock).start();
    let machine = Redis::start();
    let ahead = || time(&redis).checked_sub(time(&machine));
    assert!(ahead().is_none_or(|ahead| ahead < 5));
    clock.advance(HOUR);
    assert!((3_590..3_610).contains(&ahead().expect("it is ahead")));
    clock.set_back(HOUR);
    clock.set_back(HOUR);
    assert!(time(&machine) - time(&redis) > 3_590);
}

#[test]
fn a_cluster_serves_every_slot() {
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    assert_eq!(cluster.nodes().len(), 3);
    let client = redis::cluster::ClusterClient::new(cluster.urls()).expect("the addresses are some");
    let mut connection = client.get_connection().expect("a cluster takes connections");
    for n in 0..100 {
        redis::cmd("SET").arg(n).arg(n).exec(&mut connection).expect("each slot is somebody's");
    }
}

fn set(redis: &Redis, value: u32) {
    let mut set = redis::cmd("SET");
    set.arg("key").arg(value);
    redis.ask::<()>(set);
}

fn get(redis: &Redis) -> Option<u32> {
    let mut get = redis::cmd("GET");
    get.arg("key");
    redis.ask(get)
}

fn time(redis: &Redis) -> u64 {
    redis.ask::<(u64, u64)>(redis::cmd("TIME")).0
}

#[test]
fn a_server_whose_disk_is_full_refuses_writes_and_goes_on_with_room() {
    let disk = Arc::new(Disk::new());
    let redis = RedisSetup::default().setting("appendonly yes").disk(&disk).start();
    set(&redis, 1);
    disk.fill();
    let mut connection = redis::Client::open(redis.url()).unwrap().get_connection().unwrap();
    let mut write = || redis::cmd("SET").arg("other").arg(1).exec(&mut connection);
    let started = std::time::Instant::now();
    let refused = loop {
        if let Err(refused) = write() {
            break refused;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "it takes writes");
    };
    assert_eq!(refused.code(), Some("MISCONF"), "{refused}");
    disk.mend();
    while write().is_err() {
        assert!(started.elapsed() < Duration::from_secs(60), "it refuses writes");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(get(&redis), Some(1));
}

#[test]
fn the_replica_of_a_cluster_takes_over() {
    let mut cluster = RedisCluster::start_promoting(3, &RedisSetup::default());
    let replica = cluster.add_replica(0);
    cluster.nodes_mut()[0].kill();
    cluster.wait_until_master(replica);
    cluster.nodes_mut()[0].start_again(Memory::Lost);
    cluster.wait_until_replica(0);
}
