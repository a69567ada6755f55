//! The load that idle nodes put on Redis and PostgreSQL.
//!
//! Each test counts over a fixed time and asserts only an upper bound, since a busy machine makes the counts
//! smaller. But on a busy machine a rebuild may end late, and PostgreSQL reports commits late: one count of several
//! must be within the bounds.

use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup};
use sqlx::{Connection as _, PgConnection};

use super::support::{Nodes, answered};

/// The most commands a second from a node to a single Redis. Commands inside a script count as well.
const COMMANDS_MAX: f64 = 100.0;

/// The most commands a second from a node to all masters of a cluster together.
const CLUSTER_COMMANDS_MAX: f64 = 300.0;

/// The most commits a second from a node to PostgreSQL.
const COMMITS_MAX: f64 = 9.0;

/// The time of counting.
const COUNTED: Duration = Duration::from_secs(12);

/// The most counts until a count is within the bounds.
const COUNTS_MAX: usize = 4;

/// The time after the start in which nodes finish their first rebuild and PostgreSQL counts its commits. An
/// idle connection reports its last commits up to 10 s late (`PGSTAT_IDLE_INTERVAL` in PostgreSQL's
/// `pgstat.c`).
const SETTLED_AFTER: Duration = Duration::from_secs(15);

#[tokio::test]
async fn an_idle_node_sends_few_commands_to_redis_and_makes_few_commits() {
    let redis = Redis::start();
    assert_idle(&[redis.url()], std::slice::from_ref(&redis), COMMANDS_MAX).await;
}

#[tokio::test]
async fn three_idle_nodes_send_few_commands_to_redis_and_make_few_commits() {
    let redis = Redis::start();
    let registries = [redis.url(), redis.url(), redis.url()];
    assert_idle(&registries, std::slice::from_ref(&redis), COMMANDS_MAX).await;
}

#[tokio::test]
async fn an_idle_node_sends_few_commands_to_a_cluster() {
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    assert_idle(&[cluster.url()], cluster.nodes(), CLUSTER_COMMANDS_MAX).await;
}

#[tokio::test]
async fn three_idle_nodes_send_few_commands_to_a_cluster() {
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    assert_idle(&[cluster.url(), cluster.url(), cluster.url()], cluster.nodes(), CLUSTER_COMMANDS_MAX).await;
}

/// Starts a node over each registry, and counts the commands at `servers` and the commits in PostgreSQL while
/// the nodes are idle.
async fn assert_idle(registries: &[String], servers: &[Redis], commands_max: f64) {
    let database = postgres::database();
    let mut nodes = Nodes::on(database.url());
    registries.iter().for_each(|registry| nodes.add(registry));
    for client in nodes.clients() {
        answered(async || client.get("/readyz").await).await.expect(200);
    }
    tokio::time::sleep(SETTLED_AFTER).await;

    for counts_left in (0..COUNTS_MAX).rev() {
        let (began, commands, commits) = (Instant::now(), commands(servers), commits(&database).await);
        tokio::time::sleep(COUNTED).await;
        let (sent, made) = (self::commands(servers) - commands, self::commits(&database).await - commits);
        let node_seconds = began.elapsed().as_secs_f64() * registries.len() as f64;
        let (commands, commits) = (sent as f64 / node_seconds, made as f64 / node_seconds);
        println!("a node and second: {commands:.0} commands at Redis, {commits:.1} commits in PostgreSQL");
        if commands <= commands_max && commits <= COMMITS_MAX {
            break;
        }
        assert!(counts_left > 0, "{commands} commands and {commits} commits a node and second");
    }
    drop(nodes.close());
}

/// Returns the number of commands processed by the servers.
fn commands(servers: &[Redis]) -> u64 {
    let processed = |server: &Redis| {
        let stats: String = server.ask(redis::cmd("INFO").arg("stats").take());
        let processed = stats.lines().find_map(|line| line.strip_prefix("total_commands_processed:"));
        processed.and_then(|processed| processed.parse::<u64>().ok()).expect("Redis counts its commands")
    };
    servers.iter().map(processed).sum()
}

/// Returns the number of commits in this database.
async fn commits(database: &Database) -> i64 {
    let mut connection = PgConnection::connect(&database.url()).await.expect("a connection");
    let count = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()";
    sqlx::query_scalar(count).fetch_one(&mut connection).await.expect("PostgreSQL counts its commits")
}
