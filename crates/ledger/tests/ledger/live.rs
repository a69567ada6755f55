//! `live_sessions` follows `sessions` through every kind of change.

use futures_util::TryStreamExt as _;
use seatkeeper_core::SessionId;
use seatkeeper_ledger::{Error, Ledger, Settings};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::place::{TestLedger, time_at};
use crate::story::Story;

/// Inserts a session's row and the record of its admission.
const WRITTEN: [&str; 2] = [
    "INSERT INTO sessions (id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at,
         last_heartbeat_at, ttl_ms, expires_at, ended_at, end_reason)
     VALUES ($1, 'acme', 'subscriber', 'ann', 'HOLDER', 'ann', 0, NOW, NOW, 90000, NOW, ENDED)",
    "INSERT INTO audit_log (at, tenant_id, pool_kind, pool_id, stream, seq, epoch, action, session_id, holder,
         actor, limit_seats, limit_version, live, count, folded)
     VALUES (NOW, 'acme', 'subscriber', 'ann', 'session', SEQ, 0, 'admitted', $1, 'HOLDER', 'system', 4, 1, 1,
         1, 1 = 0)",
];

#[tokio::test]
async fn a_session_is_live_until_it_ends_or_is_deleted() {
    let place = TestLedger::new();
    let ledger = Ledger::open(Settings::new(place.location())).await.unwrap();
    let (tv, _) = Story::devices("ann").admit("tv");
    write(&place, 1, tv, "tv", "NULL, NULL").await;
    assert_eq!(live(&ledger).await, [tv]);

    let end = format!("UPDATE sessions SET ended_at = {}, end_reason = 'expired'", time_at("1"));
    place.connect().await.execute(AssertSqlSafe(end)).await.unwrap();
    assert_eq!(live(&ledger).await, []);
    write(&place, 2, Story::devices("ann").admit("tv").0, "tv", "NULL, NULL").await;
    assert_eq!(live(&ledger).await.len(), 1);

    place.connect().await.execute("DELETE FROM sessions").await.unwrap();
    write(&place, 3, Story::devices("ann").admit("tv").0, "tv", "NULL, NULL").await;
    assert_eq!(live(&ledger).await.len(), 1);
}

#[tokio::test]
async fn a_holder_has_one_live_session_in_a_pool() {
    let place = TestLedger::new();
    let ledger = Ledger::open(Settings::new(place.location())).await.unwrap();
    ledger.raise_epoch("memory:1", 0).await.unwrap();
    let mut story = Story::devices("ann");
    let (tv, admitted) = story.admit("tv");
    ledger.apply(&[admitted]).await.unwrap();
    let (_, twice) = story.admit("tv");
    let refused = ledger.apply(&[twice]).await;
    assert!(matches!(refused, Err(Error::Database(_))), "a holder's second session: {refused:?}");
    assert_eq!(live(&ledger).await, [tv]);
}

async fn write(place: &TestLedger, seq: u64, id: SessionId, holder: &str, ended: &str) {
    let mut connection = place.connect().await;
    for statement in WRITTEN {
        let statement = statement.replace("ENDED", ended).replace("HOLDER", holder);
        let statement = statement.replace("SEQ", &seq.to_string()).replace("NOW", &time_at("0"));
        connection.execute(sqlx::query(AssertSqlSafe(statement)).bind(id.as_uuid())).await.unwrap();
    }
}

async fn live(ledger: &Ledger) -> Vec<SessionId> {
    let pools: Vec<_> = ledger.live_sessions().try_collect().await.unwrap();
    pools.iter().flat_map(|live| &live.sessions).map(|session| session.id).collect()
}
