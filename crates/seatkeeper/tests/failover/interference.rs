//! An operator or another program interferes with a store that runs: writes wait, a foreign script blocks, rights are
//! taken away, connections are refused, a table is locked. The store answers all the while.

use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Redis, RedisSetup};
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::support::Nodes;
use super::trial::{NODES, Trial, outage, permit};
use crate::support::knobs;

/// A script that ends only when killed.
const ENDLESS: &str = "while true do redis.call('PING') end";

/// The pause between two interruptions that repeat.
const PAUSE: Duration = Duration::from_millis(100);

/// Three nodes under a storm, and a connection for the operator.
struct Interference {
    trial: Trial,
    /// Made before the trial, since Redis may refuse connections.
    operator: redis::Connection,
    redis: Redis,
}

impl Interference {
    async fn over(test: &'static str, setup: RedisSetup) -> Self {
        let permit = permit().await;
        let redis = tokio::task::block_in_place(|| setup.start());
        let operator = connection_to(&redis);
        let trial = Trial::over(test, &redis.url(), permit).await;
        Self { trial, operator, redis }
    }

    fn ask(&mut self, words: &[&str]) {
        let (name, arguments) = words.split_first().expect("a command");
        redis::cmd(name).arg(arguments).exec(&mut self.operator).expect("Redis answers its operator");
    }

    /// Breaks Redis by `fault`, and mends Redis after an outage by `remedy`, in each cycle.
    async fn try_out(mut self, fault: &[&[&str]], remedy: &[&[&str]]) {
        for _ in 0..knobs::fault_cycles() {
            self.trial.breaks().await;
            fault.iter().for_each(|words| self.ask(words));
            tokio::time::sleep(outage()).await;
            remedy.iter().for_each(|words| self.ask(words));
            self.trial.heals().await;
        }
        self.trial.end().await;
    }

    /// Repeats `fault` for an outage, in each cycle.
    async fn try_out_repeatedly(mut self, fault: &[&str]) {
        for _ in 0..knobs::fault_cycles() {
            self.trial.breaks().await;
            let began = Instant::now();
            while began.elapsed() < outage() {
                self.ask(fault);
                tokio::time::sleep(PAUSE).await;
            }
            self.trial.heals().await;
        }
        self.trial.end().await;
    }
}

fn connection_to(redis: &Redis) -> redis::Connection {
    let client = redis::Client::open(redis.url()).expect("the URL is valid");
    client.get_connection().expect("Redis takes connections")
}

/// Writes wait, as in a planned failover by `FAILOVER`. Reads are answered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_pauses_writes() {
    let stage = Interference::over("redis_pauses_writes", RedisSetup::default()).await;
    stage.try_out(&[&["CLIENT", "PAUSE", "3600000", "WRITE"]], &[&["CLIENT", "UNPAUSE"]]).await;
}

/// A script of another program does not end. Redis hangs for a second, and then refuses every command with `BUSY`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_foreign_script_blocks_redis() {
    let setup = RedisSetup::default().setting("busy-reply-threshold 1000");
    let mut stage = Interference::over("a_foreign_script_blocks_redis", setup).await;
    for _ in 0..knobs::fault_cycles() {
        stage.trial.breaks().await;
        let mut foreign = connection_to(&stage.redis);
        let script = redis::cmd("EVAL").arg(ENDLESS).arg(0).get_packed_command();
        foreign.send_packed_command(&script).expect("Redis takes the script");
        tokio::time::sleep(outage()).await;
        stage.ask(&["SCRIPT", "KILL"]);
        stage.trial.heals().await;
    }
    stage.trial.end().await;
}

/// The user of the nodes loses the right to write, and gets `NOPERM`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn the_nodes_lose_the_right_to_write_to_redis() {
    let stage = Interference::over("the_nodes_lose_the_right_to_write_to_redis", RedisSetup::default()).await;
    let (fault, remedy) = (["ACL", "SETUSER", "default", "-@write"], ["ACL", "SETUSER", "default", "+@all"]);
    stage.try_out(&[&fault], &[&remedy]).await;
}

/// The nodes lose their connections, and Redis has no room for new ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_has_no_room_for_connections() {
    let stage = Interference::over("redis_has_no_room_for_connections", RedisSetup::default()).await;
    let fault: [&[&str]; 2] = [&["CONFIG", "SET", "maxclients", "1"], &["CLIENT", "KILL", "TYPE", "normal"]];
    stage.try_out(&fault, &[&["CONFIG", "SET", "maxclients", "10000"]]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn redis_forgets_its_scripts_ten_times_a_second() {
    let stage =
        Interference::over("redis_forgets_its_scripts_ten_times_a_second", RedisSetup::default()).await;
    stage.try_out_repeatedly(&["SCRIPT", "FLUSH"]).await;
}

/// Three nodes over a PostgreSQL of their own, and a connection for the operator to another database.
struct Ledger {
    trial: Trial,
    operator: PgConnection,
    database: String,
    _redis: Redis,
    server: Postgres,
}

impl Ledger {
    async fn under(test: &'static str) -> Self {
        let (permit, redis) = (permit().await, Redis::start());
        let server = tokio::task::block_in_place(Postgres::start);
        let database = tokio::task::block_in_place(|| server.add_database());
        let mut nodes = Nodes::on(server.url(&database));
        tokio::task::block_in_place(|| (0..NODES).for_each(|_| nodes.add(&redis.url())));
        let operator = PgConnection::connect(&server.url("postgres")).await.expect("a connection");
        let trial = Trial::begin(test, nodes, knobs::seed(), permit).await;
        Self { trial, operator, database, _redis: redis, server }
    }

    async fn allow_connections(&mut self, allowed: bool) {
        let change = format!("ALTER DATABASE {} ALLOW_CONNECTIONS {allowed}", self.database);
        self.operator.execute(AssertSqlSafe(change)).await.expect("PostgreSQL obeys");
    }

    async fn end_connections(&mut self) {
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = $1";
        let end = sqlx::query(end).bind(&self.database);
        end.execute(&mut self.operator).await.expect("PostgreSQL obeys");
    }

    /// Holds `lock` for an outage, in each cycle.
    async fn try_lock(mut self, lock: &str) {
        let mut other = PgConnection::connect(&self.server.url(&self.database)).await.expect("a connection");
        for _ in 0..knobs::fault_cycles() {
            self.trial.breaks().await;
            let mut held = other.begin().await.expect("a transaction");
            held.execute(AssertSqlSafe(format!("LOCK TABLE {lock}"))).await.expect("the lock");
            tokio::time::sleep(outage()).await;
            held.rollback().await.expect("the end of the lock");
            self.trial.heals().await;
        }
        self.trial.end().await;
    }
}

/// PostgreSQL reads and does not write, as a standby does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_is_read_only() {
    let mut stage = Ledger::under("postgres_is_read_only").await;
    for _ in 0..knobs::fault_cycles() {
        stage.trial.breaks().await;
        tokio::task::block_in_place(|| stage.server.set("default_transaction_read_only", "on"));
        tokio::time::sleep(outage()).await;
        tokio::task::block_in_place(|| stage.server.set("default_transaction_read_only", "off"));
        stage.trial.heals().await;
    }
    stage.trial.end().await;
}

/// PostgreSQL serves the connections that exist, and refuses new ones.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn postgres_takes_no_new_connections() {
    let mut stage = Ledger::under("postgres_takes_no_new_connections").await;
    for _ in 0..knobs::fault_cycles() {
        stage.trial.breaks().await;
        stage.allow_connections(false).await;
        tokio::time::sleep(outage()).await;
        stage.allow_connections(true).await;
        stage.trial.heals().await;
    }
    stage.trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_ends_connections_and_refuses_new_ones() {
    let mut stage = Ledger::under("postgres_ends_connections_and_refuses_new_ones").await;
    for _ in 0..knobs::fault_cycles() {
        stage.trial.breaks().await;
        stage.allow_connections(false).await;
        stage.end_connections().await;
        tokio::time::sleep(outage()).await;
        stage.allow_connections(true).await;
        stage.trial.heals().await;
    }
    stage.trial.end().await;
}

/// Epochs are read, and no event can be recorded, as during `VACUUM FULL`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_audit_log_is_locked() {
    Ledger::under("the_audit_log_is_locked").await.try_lock("audit_log IN ACCESS EXCLUSIVE MODE").await;
}

/// No epoch can be read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn the_table_of_buckets_is_locked() {
    Ledger::under("the_table_of_buckets_is_locked").await.try_lock("buckets IN ACCESS EXCLUSIVE MODE").await;
}
