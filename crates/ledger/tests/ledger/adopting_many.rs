//! Adoptions of more subscribers than a transaction takes: page by page, and resumed after a crash between two pages.

use std::collections::BTreeSet;

use seatkeeper_core::{Region, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::{Home, HomeState};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::homes::{LOST, OWN, known};
use crate::place::{ANY_UUID, TestLedger, time_at};
use crate::story::{ledger, subscribed, tenant};

/// More than two pages.
const MANY: usize = 2_500;

const THIRD: Region = Region::new(2);

/// Subscribers in the order of their names.
fn user(number: usize) -> String {
    format!("u{}", 10_000 + number)
}

async fn execute(place: &TestLedger, statement: String) {
    place.connect_unguarded().await.execute(AssertSqlSafe(statement)).await.unwrap();
}

/// Adds a row of `table` for every number below [`MANY`], from `first` on in steps of `step`. The row names the number `i`.
async fn add_rows(place: &TestLedger, first: usize, step: usize, table: &str, row: &str) {
    let statement = format!(
        "INSERT INTO {table} WITH RECURSIVE n (i) AS (
             SELECT {first} UNION ALL SELECT i + {step} FROM n WHERE i + {step} < {MANY}
         ) SELECT {row} FROM n"
    );
    execute(place, statement).await;
}

/// Adds many subscribers: each by an active subscription, a live session or a deleted history alone.
async fn add_subscribers(place: &TestLedger) {
    let (now, user) = (time_at("1800000000"), "'u' || CAST(10000 + i AS TEXT)");
    let subscription = format!("{ANY_UUID}, 'acme', {user}, 'basic', 'active', {now}, 1, {now}, {now}");
    let columns = "(id, tenant_id, user_id, plan, status, starts_at, version, created_at, updated_at)";
    add_rows(place, 0, 3, &format!("subscriptions {columns}"), &subscription).await;
    let session =
        format!("{ANY_UUID}, 'acme', 'subscriber', {user}, 'tv', {user}, 0, {now}, {now}, 1000, {now}");
    let columns =
        "(id, tenant_id, pool_kind, pool_id, holder, user_id, tier, started_at, last_heartbeat_at, ttl_ms,
        expires_at)";
    add_rows(place, 1, 3, &format!("sessions {columns}"), &session).await;
    let cut = format!("'acme', 'subscriber', {user}, 7, 0");
    let columns = "(tenant_id, pool_kind, pool_id, seq, live)";
    add_rows(place, 2, 3, &format!("audit_cuts {columns}"), &cut).await;
}

/// Returns the regions and versions of the homes on record, in the order of their users.
async fn homes(ledger: &Ledger) -> Vec<(String, Home)> {
    let mut homes = Vec::new();
    loop {
        let after = homes.last().map_or(String::new(), |(user, _): &(String, Home)| user.clone());
        let page = ledger.homes_after((&tenant(), &UserId::new(&*after)), 1_000).await.unwrap();
        if page.is_empty() {
            return homes;
        }
        homes.extend(page.into_iter().map(|known| (known.user.as_str().to_owned(), known.home)));
    }
}

#[tokio::test]
async fn a_claim_that_fails_half_way_keeps_its_pages_and_a_repetition_claims_the_rest() {
    let (place, ledger) = ledger().await;
    subscribed(&ledger, "ann", "basic").await;
    add_subscribers(&place).await;
    // The index lets one of two subscribers have a home: the first in the first page, the other in the second.
    let halt = format!(
        "CREATE UNIQUE INDEX halt ON homes (version) WHERE user_id IN ('{}', '{}')",
        user(10),
        user(1_500)
    );
    execute(&place, halt).await;
    let halted = ledger.claim_unassigned_homes(OWN).await;
    assert!(halted.is_err());
    let claimed = homes(&ledger).await.len();
    assert!((500..1_500).contains(&claimed), "{claimed} homes");
    // A subscriber whose home is on record in the meantime keeps the home.
    ledger.learn_homes(&[known(&user(2_000), THIRD, 3, HomeState::Here)], (LOST, THIRD), OWN).await.unwrap();
    execute(&place, "DROP INDEX halt".to_owned()).await;
    for _ in 0..2 {
        ledger.claim_unassigned_homes(OWN).await.unwrap();
    }
    let homes = homes(&ledger).await;
    let users: BTreeSet<_> = (0..MANY).map(user).chain(["ann".to_owned()]).collect();
    assert_eq!(homes.iter().map(|(user, _)| user.clone()).collect::<BTreeSet<_>>(), users);
    for (name, home) in homes {
        let expected =
            if name == user(2_000) { Home { version: 3, ..Home::first(THIRD) } } else { Home::first(OWN) };
        assert_eq!(home, expected, "{name}");
    }
}
