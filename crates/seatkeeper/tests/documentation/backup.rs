//! Backups, made and restored as the documentation says.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use seatkeeper_testbed::postgres;
use seatkeeper_testbed::redis::Redis;
use serde_json::json;

use super::{blocks, page, three_nodes};
use crate::harness::Harness;

/// Longer than a backup of a small ledger takes on a busy machine.
const BACKUP_MAX: Duration = Duration::from_secs(60);

/// The machines that acquire and release during a backup.
const BUSY_MACHINES: u32 = 8;

/// A claim on a license that was created after the backup.
const ASK_FOR_LATER: &str = r#"curl -s 127.0.0.1:8081/api/v1/licenses/acquire -H "Authorization: Bearer $TOKEN" \
    -H 'Content-Type: application/json' -d '{"license_key":"LATER","machine_id":"m1"}'; echo
"#;

/// Moves a seat from a machine in the backup to a machine outside the backup.
const GIVE_THE_SEAT_AWAY: &str = r#"seat=$(ask 8083 m1 | sed 's/.*"session_id":"\([^"]*\)".*/\1/')
until curl -sf -X DELETE 127.0.0.1:8083/api/v1/licenses/sessions/$seat -H "Authorization: Bearer $TOKEN"; do sleep 1; done
until ask 8083 m4 | grep session_id; do sleep 1; done
"#;

#[test]
fn of_nodes() {
    let (redis, database) = (Redis::start(), postgres::database());
    let blocks = blocks(&page("docs/operations.md"), "sh");
    let with = |what: &str| blocks.iter().find(|block| block.contains(what)).expect("a block with it");
    let (start, story) =
        (&blocks[0][blocks[0].find("for port").expect("nodes that are started")..], &blocks[1]);
    // The backup does not depend on Redis, whose memory is lost.
    let backup = format!("redis-cli flushall\n{}", with("pg_dump"));
    // Buckets are rebuilt in sequence. A `create` answered with 503 may have created the license: the retry
    // fails because the key is taken.
    let later = "until ask 8083 m1 | grep session_id; do sleep 1; done\n\
        until seatkeeper license create --seats 1 --key LATER --server http://127.0.0.1:8081 2>&1 \
            | grep -e LATER -e taken; do sleep 1; done\n";
    let stop = "kill $(jobs -p); wait\n";
    // Nodes are ready before the empty Redis is rebuilt.
    let restored = "until ask 8081 m2 | grep session_id; do sleep 1; done\n\
        ask 8081 m1\n\
        until ask 8082 m3 | grep license-full; do sleep 1; done\nseatkeeper audit verify\n";
    let rest = [
        story,
        &*backup,
        later,
        GIVE_THE_SEAT_AWAY,
        stop,
        with("pg_restore"),
        start,
        restored,
        ASK_FOR_LATER,
    ]
    .concat();
    let (statuses, told) = three_nodes(&redis, &database, &rest);
    let (ready, seat, same, full) = (json!("ok"), json!("acquired"), json!("resumed"), json!(403));
    let before = [&ready, &ready, &ready, &seat, &seat, &full, &same, &seat];
    let after = [&ready, &ready, &ready, &same, &same, &full, &json!(404)];
    assert_eq!(statuses, [&before[..], &after].concat().into_iter().cloned().collect::<Vec<_>>(), "{told}");
}

/// Runs a statement on the ledger in a data directory.
async fn sqlite(data_dir: &Path, statement: &str) {
    let mut sqlite = tokio::process::Command::new("sqlite3");
    let status =
        sqlite.args(["-cmd", ".timeout 30000", "ledger.db", statement]).current_dir(data_dir).status().await;
    let status = status.expect("sqlite3 is missing: install it (Debian: apt-get install sqlite3)");
    assert!(status.success(), "{statement}");
}

#[tokio::test]
async fn of_a_data_directory() {
    let mut harness = Harness::open();
    let license = harness.license(2).await;
    let (key, ann) = (&license["license_key"], harness.client("ann"));
    let before = ann.acquire(key, "before").await.expect(201)["session_id"].clone();
    // A copy of a ledger of some size takes longer than many commits.
    sqlite(harness.data_dir(), "CREATE TABLE padding AS SELECT zeroblob(60000000) AS bytes").await;
    let guide = page("docs/durability.md");
    let (_, rest) = guide.split_once("**Backup.** `").expect("how it is made");
    let (command, _) = rest.split_once('`').expect("the end of the command");
    let mut shell = tokio::process::Command::new("bash");
    shell.args(["-euc", &command.replace("seatkeeper-data/", "")]).current_dir(harness.data_dir());
    let mut backup = shell.kill_on_drop(true).spawn().expect("bash");
    // The server commits all the time, and the backup ends.
    let others = harness.license(BUSY_MACHINES).await;
    let busy = join_all((0..BUSY_MACHINES).map(async |machine| {
        loop {
            let seat = ann.acquire(&others["license_key"], &format!("busy-{machine}")).await;
            ann.release(&seat.expect(201)["session_id"]).await.expect(204);
        }
    }));
    let status = tokio::select! {
        status = tokio::time::timeout(BACKUP_MAX, backup.wait()) => status.expect("a backup that ends").expect("bash"),
        _ = busy => unreachable!("the machines go on"),
    };
    assert!(status.success(), "{command}");
    let mode = fs::metadata(harness.data_dir().join("copy.db")).expect("a copy").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads the records");
    let after = ann.acquire(key, "after").await.expect(201)["session_id"].clone();

    assert!(harness.stop().0.success());
    let file = |name: &str| harness.data_dir().join(name);
    fs::rename(file("copy.db"), file("ledger.db")).expect("a copy");
    for rest in ["ledger.db-wal", "ledger.db-shm"] {
        // After a graceful shutdown, the files do not exist.
        let _ = fs::remove_file(file(rest));
    }
    harness.start();
    let ann = harness.client("ann");
    ann.heartbeat(&before).await.expect(200);
    ann.heartbeat(&after).await.expect(404);
    ann.acquire(key, "after").await.expect(201);
    ann.acquire(key, "one-too-many").await.expect(403);
}
