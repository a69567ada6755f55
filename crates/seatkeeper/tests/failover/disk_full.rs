//! Full and read-only disks: a disk refuses writes, and takes writes again after a while. A new test needs an entry in
//! the catalogue.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_testbed::disk::Disk;
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Redis, RedisSetup};

use super::support::Nodes;
use super::trial::{NODES, Trial, outage, permit, short_outage};
use crate::support::knobs;

/// Fills the disk for a while, repeatedly. `revive` starts a server that gave up.
async fn fills(trial: Trial, disk: &Disk, lasts: Duration, revive: impl Fn()) {
    fails(trial, disk, Disk::fill, lasts, revive).await;
}

/// Lets the disk fail for a while by `fail`, repeatedly.
async fn fails(mut trial: Trial, disk: &Disk, fail: impl Fn(&Disk), lasts: Duration, revive: impl Fn()) {
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        fail(disk);
        tokio::time::sleep(lasts).await;
        disk.mend();
        tokio::task::block_in_place(&revive);
        trial.heals().await;
    }
    trial.end().await;
}

/// Redis appends each write to a file, and refuses writes while the disk is full.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_redis_is_full() {
    let (permit, disk) = (permit().await, Arc::new(Disk::new()));
    let redis = RedisSetup::default().setting("appendonly yes").disk(&disk).start();
    let trial = Trial::over("the_disk_of_redis_is_full", &redis.url(), permit).await;
    fills(trial, &disk, outage(), || {}).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_postgres_is_full() {
    let (permit, disk, redis) = (permit().await, Disk::new(), Redis::start());
    let server = tokio::task::block_in_place(|| Postgres::start_on(&disk));
    let mut nodes = Nodes::on(server.url("postgres"));
    tokio::task::block_in_place(|| (0..NODES).for_each(|_| nodes.add(&redis.url())));
    let trial = Trial::begin("the_disk_of_postgres_is_full", nodes, knobs::seed(), permit).await;
    fills(trial, &disk, outage(), || server.revive()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_postgres_alone_is_full() {
    let (permit, disk) = (permit().await, Disk::new());
    let server = tokio::task::block_in_place(|| Postgres::start_on(&disk));
    let ledger = server.url("postgres");
    let mut nodes = Nodes::on(ledger.clone());
    tokio::task::block_in_place(|| (0..NODES).for_each(|_| nodes.add(&ledger)));
    let trial = Trial::begin("the_disk_of_postgres_alone_is_full", nodes, knobs::seed(), permit).await;
    fills(trial, &disk, short_outage(), || server.revive()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_an_embedded_server_is_full() {
    let (permit, disk) = (permit().await, Disk::new());
    let nodes = tokio::task::block_in_place(|| Nodes::embedded(&disk.environment()));
    let trial = Trial::begin("the_disk_of_an_embedded_server_is_full", nodes, knobs::seed(), permit).await;
    fills(trial, &disk, outage(), || {}).await;
}

/// The kernel mounts a file system read-only when its disk fails, until an operator mounts it anew.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_disk_of_an_embedded_server_is_read_only() {
    let (permit, disk) = (permit().await, Disk::new());
    let nodes = tokio::task::block_in_place(|| Nodes::embedded(&disk.environment()));
    let trial =
        Trial::begin("the_disk_of_an_embedded_server_is_read_only", nodes, knobs::seed(), permit).await;
    fails(trial, &disk, Disk::refuse_writes, outage(), || {}).await;
}
