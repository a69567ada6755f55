//! A promoted PostgreSQL standby lacks a license that the nodes still remember.

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;
use sqlx::{Connection as _, PgConnection};

use super::support::Nodes;
use super::trial::permit;
use crate::harness::run;

const JOURNAL: &[(&str, &str)] = &[("LICENSES_DURABILITY", "journal")];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_license_that_a_promotion_has_lost_is_named_by_the_proof() {
    let (_permit, redis) = (permit().await, Redis::start());
    let primary = tokio::task::block_in_place(Postgres::start);
    let to_primary = Proxy::start(([127, 0, 0, 1], primary.port()).into(), 0).await;
    let mut nodes = Nodes::on_with(primary.url("postgres"), JOURNAL);
    tokio::task::block_in_place(|| nodes.add_behind(&redis.url(), &to_primary));
    let way = Proxy::start(([127, 0, 0, 1], primary.port()).into(), 0).await;
    let standby = tokio::task::block_in_place(|| Postgres::standby_of(way.address()));
    way.set(Network::Silent);
    let (client, license) = (nodes.clients().remove(0), nodes.harnesses[0].license(2).await);
    // The admission stays in the journal: the ledger of the license never has it.
    let mut operator = PgConnection::connect(&primary.url("postgres")).await.expect("a connection");
    sqlx::raw_sql("BEGIN; LOCK TABLE audit_log IN EXCLUSIVE MODE")
        .execute(&mut operator)
        .await
        .expect("the lock");
    client.acquire(&license["license_key"], "ann").await.expect(201);

    tokio::task::block_in_place(|| {
        primary.stop(Stop::Immediate);
        standby.promote();
    });
    nodes.read_ledger_in(standby.url("postgres"));
    to_primary.redirect(([127, 0, 0, 1], standby.port()).into());
    nodes.ledger_rules().await;
    let closed = nodes.close();
    let id = license["license_id"].as_str().expect("an id");
    let url = standby.url("postgres");
    let proof = tokio::task::block_in_place(|| run(&["audit", "verify", "--ledger", &url]));
    println!("{}", proof.stdout);
    assert!(proof.stdout.contains(&format!("LOST: license {id}")), "{}{}", proof.stdout, proof.stderr);
    drop(closed);
}
