//! The ledger is restored from a dump that lacks the latest records, while Redis lives on and knows them.
//! Only the restored ledger decides.

use std::path::Path;
use std::process::Command;

use seatkeeper_testbed::redis::{Memory, Redis};
use sqlx::{Connection as _, PgConnection};

use super::support::{Nodes, answered, denied, released, renewed, seat, seated};
use crate::until::until;

const SEATS: u32 = 2;

fn postgres_tool(tool: &str, args: &[&str], file: &Path, url: &str) {
    let mut command = Command::new(tool);
    command.args(["-d", url]).args(args).arg(file);
    let status = command.status();
    let status = status.unwrap_or_else(|_| {
        panic!("{tool} is missing: install postgresql-client (Debian: apt-get install postgresql-client)")
    });
    assert!(status.success(), "{tool}: {status}");
}

const MADE_LATER: &str = "CREATE FUNCTION registry.later() RETURNS INT LANGUAGE sql AS 'SELECT 1';
    CREATE TABLE later (license_id UUID REFERENCES licenses (id))";

/// Empties the database, as the page on operations does before a restore.
const EMPTIED: &str = "DROP SCHEMA IF EXISTS registry, public CASCADE; CREATE SCHEMA public";

/// An upgrade of the restored database.
const MADE_AGAIN: &str = "BEGIN; CREATE TABLE later (); CREATE FUNCTION registry.later() RETURNS INT LANGUAGE sql AS 'SELECT 1'; ROLLBACK";

async fn statements(url: &str, statements: &'static str) {
    let mut connection = PgConnection::connect(url).await.expect("a connection");
    sqlx::raw_sql(statements).execute(&mut connection).await.expect("the statements run");
}

fn events_in_journals(redis: &Redis) -> u64 {
    const COUNT: &str = "local events = 0
        for _, journal in ipairs(redis.call('KEYS', '*:journal')) do
          events = events + redis.call('XLEN', journal)
        end
        return events";
    redis.ask(redis::cmd("EVAL").arg(COUNT).arg(0).take())
}

/// Seats granted after the dump are unknown to the restored ledger, even if Redis knows them.
async fn the_copy_decides(a_raise_is_lost: bool) {
    let mut redis = Redis::start();
    let mut nodes = Nodes::over(&[redis.url(), redis.url()]);
    let (license, client) = (nodes.harnesses[0].license(SEATS).await, nodes.harnesses[0].client("crowd"));
    let ann = seat(&client, &license, "ann").await;
    let dump = tempfile::NamedTempFile::new().expect("a file");
    postgres_tool("pg_dump", &["-Fc", "-f"], dump.path(), nodes.ledger_url());
    if a_raise_is_lost {
        redis.kill();
        redis.start_again(Memory::Lost);
        renewed(&client, &ann).await;
    }
    let bob = answered(async || client.acquire(&license["license_key"], "bob").await).await;
    let bob = bob.expect(201)["session_id"].clone();

    // A rebuild would replay an event still in a journal, and restore Bob's seat.
    until("every journal is acknowledged", async || match events_in_journals(&redis) {
        0 => Ok(()),
        waiting => Err(waiting.to_string()),
    })
    .await;
    for node in &mut nodes.harnesses {
        let (status, log) = node.stop();
        assert!(status.success(), "{log}");
    }
    // A later version has made a function and a table, which the dump lacks.
    statements(nodes.ledger_url(), MADE_LATER).await;
    statements(nodes.ledger_url(), EMPTIED).await;
    postgres_tool("pg_restore", &["--single-transaction"], dump.path(), nodes.ledger_url());
    statements(nodes.ledger_url(), MADE_AGAIN).await;
    nodes.harnesses.iter_mut().for_each(crate::harness::Harness::start);

    let clients = nodes.clients();
    for client in &clients {
        renewed(client, &ann).await;
        answered(async || client.heartbeat(&bob).await).await.expect(404);
    }
    let carl = seated(&clients[1], &license["license_key"], "carl").await;
    denied(&clients[0], &license["license_key"], "dora").await;
    released(&clients[0], &carl["session_id"]).await;
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_is_restored_and_redis_knows_later_sessions() {
    the_copy_decides(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_is_restored_and_redis_knows_a_later_epoch() {
    the_copy_decides(true).await;
}
