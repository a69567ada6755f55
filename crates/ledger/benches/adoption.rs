//! Measures the steps of an adoption that concern all subscribers at once, in the restored ledger and in the successor.
//!
//! `cargo bench -p seatkeeper-ledger --bench adoption [-- postgres] [SUBSCRIBERS]` writes a ledger to a temporary directory
//! (`TMPDIR`), or to a temporary PostgreSQL with durable commits. Without a number there are 1,500,000 subscribers, each with a
//! subscription, a live session and an audit record.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark")]

use std::time::{Duration, Instant};

use seatkeeper_core::{Region, RegistryTime, Span};
use seatkeeper_ledger::{Ledger, Location, PostgresUrl, Settings};
use seatkeeper_testbed::postgres::Postgres;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection};

const OWN: Region = Region::new(1);
const LOST: Region = Region::new(3);
/// A region that the lost region had adopted.
const EARLIER: Region = Region::new(4);
const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

/// The differing words of the two databases.
struct Words {
    id: &'static str,
    now: &'static str,
    no: &'static str,
}

const POSTGRES: Words = Words { id: "gen_random_uuid()", now: "now()", no: "false" };
const SQLITE: Words = Words { id: "randomblob(16)", now: "'2027-01-15T08:00:00+00:00'", no: "0" };

#[tokio::main]
async fn main() {
    let mut args = std::env::args();
    let subscribers = args.find_map(|arg| arg.parse().ok()).unwrap_or(1_500_000);
    if std::env::args().any(|arg| arg == "postgres") {
        let server = Postgres::start_with(&["max_wal_size = 4GB"]);
        let url = server.url(&server.add_database());
        let location = || url.parse::<PostgresUrl>().unwrap().into();
        Ledger::open(Settings::new(location())).await.unwrap().close().await;
        let mut connection = PgConnection::connect(&url).await.unwrap();
        connection.execute("SET session_replication_role = replica").await.unwrap();
        for statement in rows(subscribers, &POSTGRES) {
            connection.execute(AssertSqlSafe(statement)).await.unwrap();
        }
        connection.execute("ANALYZE").await.unwrap();
        measure(location()).await;
    } else {
        let dir = tempfile::tempdir().unwrap();
        Ledger::open(Settings::new(Location::from(&dir))).await.unwrap().close().await;
        let file = SqliteConnectOptions::new().filename(dir.path().join("ledger.db"));
        let mut connection = file.connect().await.unwrap();
        for statement in rows(subscribers, &SQLITE) {
            connection.execute(AssertSqlSafe(statement)).await.unwrap();
        }
        connection.close().await.unwrap();
        measure(Location::from(&dir)).await;
    }
}

/// Returns the statements that add subscribers.
fn rows(subscribers: u64, words: &Words) -> Vec<String> {
    let Words { id, now, no } = words;
    let user = "'user-' || CAST(1000000000 + i AS TEXT)";
    let add = |table: &str, columns: &str, row: String| {
        format!(
            "INSERT INTO {table} ({columns}) WITH RECURSIVE n (i) AS (
                 SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {subscribers}
             ) SELECT {row} FROM n"
        )
    };
    vec![
        format!("INSERT INTO tenants (id, created_at) VALUES ('acme', {now})"),
        add(
            "subscriptions",
            "id, tenant_id, user_id, plan, status, starts_at, version, created_at, updated_at",
            format!("{id}, 'acme', {user}, 'basic', 'active', {now}, 1, {now}, {now}"),
        ),
        add(
            "sessions",
            "id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms, expires_at",
            format!("{id}, 'acme', 'subscriber', {user}, 'tv', {user}, 0, {now}, {now}, 360000, {now}"),
        ),
        add(
            "audit_log",
            "at, tenant_id, pool_kind, pool_id, stream, seq, epoch, action, session_id, holder, actor, limit_seats,
             limit_version, live, count, folded",
            format!(
                "{now}, 'acme', 'subscriber', {user}, 'session', 1, 1, 'admitted', {id}, 'tv', 'system', 1, 1, 1, 1, {no}"
            ),
        ),
    ]
}

async fn measure(location: Location) {
    let ledger = Ledger::open(Settings::new(location)).await.unwrap();
    timed("longest TTL", ledger.longest_ttl()).await.unwrap();
    timed("tenants of the anchor", ledger.tenants_of_anchor(LOST)).await.unwrap();
    timed("claim of homes", ledger.claim_unassigned_homes(EARLIER, |_| EARLIER)).await.unwrap();
    timed("claim of homes, repeated", ledger.claim_unassigned_homes(EARLIER, |_| EARLIER)).await.unwrap();
    timed("begin", ledger.note_adoption((EARLIER, LOST), NOW, OWN)).await.unwrap();
    let adoption = timed("begin", ledger.note_adoption((LOST, OWN), NOW, OWN)).await.unwrap().unwrap();
    let (began, mut longest, mut pages, mut is_done) = (Instant::now(), Duration::ZERO, 0_u32, false);
    while !is_done {
        if pages == 750 {
            let later = NOW + Span::from_secs(1);
            timed("begin, half way", ledger.note_adoption((LOST, OWN), later, OWN)).await.unwrap();
        }
        let page = Instant::now();
        is_done = ledger.end_adoption_page(&adoption, &[EARLIER], OWN).await.unwrap();
        longest = longest.max(page.elapsed());
        pages += 1;
    }
    println!("end of the adoption: {:.1?}, {pages} pages, the longest {longest:.1?}", began.elapsed());
    ledger.close().await;
}

async fn timed<T>(step: &str, action: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let done = action.await;
    println!("{step}: {:.1?}", began.elapsed());
    done
}
