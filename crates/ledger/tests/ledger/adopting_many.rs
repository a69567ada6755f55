//! Adoptions of more subscribers than a transaction takes: page by page, and resumed after a crash between two pages.

use std::collections::BTreeSet;

use seatkeeper_core::{Region, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::{Adoption, Home, HomeState};
use seatkeeper_ledger::verify::HomeMoveKind;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::homes::{LOST, NOW, OWN, SECOND, end, home_of, known};
use crate::place::{ANY_UUID, TestLedger, time_at};
use crate::story::{ledger, subscribed, tenant};

/// More than two pages.
const MANY: usize = 2_500;

const EARLIER: Region = Region::new(4);

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
    // The index allows a home to a subscriber of the first page or to a subscriber of the second page, not to both.
    let halt = format!(
        "CREATE UNIQUE INDEX halt ON homes (version) WHERE user_id IN ('{}', '{}')",
        user(10),
        user(1_500)
    );
    execute(&place, halt).await;
    let halted = ledger.claim_unassigned_homes(OWN, |_| OWN).await;
    assert!(halted.is_err());
    let claimed = homes(&ledger).await.len();
    assert!((500..1_500).contains(&claimed), "{claimed} homes");
    // A subscriber with a home on record keeps the home.
    ledger.learn_homes(&[known(&user(2_000), THIRD, 3, HomeState::Here)], (LOST, THIRD), OWN).await.unwrap();
    execute(&place, "DROP INDEX halt".to_owned()).await;
    for _ in 0..2 {
        ledger.claim_unassigned_homes(OWN, |_| OWN).await.unwrap();
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

/// Learns many homes: every other home in the lost region, the rest in a region that the lost region had adopted.
async fn learn_many(ledger: &Ledger) {
    let region = |number| if number % 2 == 0 { LOST } else { EARLIER };
    let told: Vec<_> =
        (0..MANY).map(|number| known(&user(number), region(number), 1, HomeState::Here)).collect();
    for page in told.chunks(500) {
        ledger.learn_homes(page, (LOST, THIRD), OWN).await.unwrap();
    }
    ledger.learn_homes(&[known("third", THIRD, 4, HomeState::Here)], (LOST, THIRD), OWN).await.unwrap();
}

async fn adoption(ledger: &Ledger) -> Adoption {
    *ledger.adoptions().await.unwrap().iter().find(|adoption| adoption.lost == LOST).expect("an adoption")
}

/// Asserts at most one adoption on record for each home, and returns the number of adopted homes.
async fn adopted_once(ledger: &Ledger) -> usize {
    let moves = ledger.home_moves().await.unwrap();
    let adopted = moves.iter().filter(|moved| matches!(moved.kind, HomeMoveKind::Adopted { peer_seq: None }));
    let users: Vec<_> = adopted.map(|moved| moved.subscriber.1.clone()).collect();
    assert_eq!(users.len(), users.iter().collect::<BTreeSet<_>>().len(), "a home is adopted twice");
    users.len()
}

#[tokio::test]
async fn an_end_that_fails_half_way_is_resumed_and_adopts_each_home_once() {
    let (place, ledger) = ledger().await;
    ledger.note_adoption((EARLIER, LOST), NOW, OWN).await.unwrap();
    ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap();
    // A home of the last page is on its way to the lost region.
    let leaving = UserId::new("u9");
    ledger.assign_home(&tenant(), &leaving, OWN, OWN).await.unwrap();
    ledger.begin_home_move(&tenant(), &leaving, OWN, LOST).await.unwrap();
    learn_many(&ledger).await;
    // The index allows the adoption of a home of the first page or of a home of a later page, not of both.
    let (first, later) = (user(0), user(2_400));
    let halt = format!(
        "CREATE UNIQUE INDEX halt ON homes (version) WHERE region = 1 AND user_id IN ('{first}', '{later}')"
    );
    execute(&place, halt).await;
    let begun = adoption(&ledger).await;
    while let Ok(is_done) = ledger.end_adoption_page(&begun, &[EARLIER], OWN).await {
        assert!(!is_done, "a later page fails");
    }

    // Half of the homes are here, and silent. The rest is still in the lost regions, where nobody admits.
    let adopted = adopted_once(&ledger).await;
    assert!((1_250..2_500).contains(&adopted), "{adopted} homes");
    let here = homes(&ledger).await.into_iter().filter(|(_, home)| home.region == OWN);
    let here: Vec<_> = here.collect();
    assert_eq!(here.len(), adopted);
    assert!(here.iter().all(|(_, home)| home.admits_from == Some(NOW)));
    assert_eq!(home_of(&ledger, &later).await, Home::first(LOST));
    assert!(!adoption(&ledger).await.is_done);

    // A further run begins anew: the new silence counts for the homes of the first pages.
    ledger.note_adoption((LOST, OWN), NOW + SECOND, OWN).await.unwrap();
    assert_eq!(home_of(&ledger, &first).await.admits_from, Some(NOW + SECOND));
    execute(&place, "DROP INDEX halt".to_owned()).await;
    for _ in 0..2 {
        end(&ledger, &begun, &[EARLIER]).await;
        assert!(adoption(&ledger).await.is_done);
        assert_eq!(adopted_once(&ledger).await, MANY + 1);
    }
    for (name, home) in homes(&ledger).await {
        let version = match &*name {
            "third" => 4,
            "u9" => 3,
            _ => 2,
        };
        let region = if name == "third" { THIRD } else { OWN };
        let admits_from = (region == OWN).then_some(NOW + SECOND);
        assert_eq!(home, Home { version, admits_from, ..Home::first(region) }, "{name}");
    }
    let left = ledger.home_moves().await.unwrap();
    let left: Vec<_> = left.iter().filter(|moved| matches!(moved.kind, HomeMoveKind::Left)).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[tokio::test]
async fn an_end_deletes_more_kept_sessions_than_a_page() {
    let (place, ledger) = ledger().await;
    let begun = ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap().unwrap();
    let row = format!("{ANY_UUID}, 3, 'acme', 'license', 'x', '{{}}', {}", time_at("1800000000"));
    let columns = "(session_id, lost, tenant_id, pool_kind, pool_id, record, last_heartbeat_at)";
    add_rows(&place, 0, 1, &format!("arriving_sessions {columns}"), &row).await;
    end(&ledger, &begun, &[]).await;
    let kept = "SELECT COUNT(*) FROM arriving_sessions";
    let kept: i64 = sqlx::query_scalar(kept).fetch_one(&mut place.connect().await).await.unwrap();
    assert_eq!(kept, 0);
}

#[tokio::test]
async fn a_home_that_is_told_after_the_end_is_not_learned() {
    let (_place, ledger) = ledger().await;
    let begun = ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap().unwrap();
    end(&ledger, &begun, &[]).await;
    ledger.learn_homes(&[known("ann", LOST, 1, HomeState::Here)], (LOST, THIRD), OWN).await.unwrap();
    assert_eq!(ledger.home(&tenant(), &UserId::new("ann")).await.unwrap(), None);
}
