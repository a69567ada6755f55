//! The homes that have moved, as a node learns them from the record.

use tempfile::TempDir;

use super::*;

const OWN: Region = Region::new(1);
const TARGET: Region = Region::new(2);

async fn moved_homes() -> (TempDir, Ledger, MovedHomes) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(seatkeeper_ledger::Settings::new(dir.path())).await.unwrap();
    let homes = MovedHomes::new(ledger.clone());
    (dir, ledger, homes)
}

fn tenant() -> TenantId {
    TenantId::new("acme")
}

fn user(name: &str) -> UserId {
    UserId::new(name)
}

fn home(region: Region, version: u64) -> Home {
    Home { version, ..Home::first(region) }
}

#[tokio::test]
async fn a_read_tells_first_homes_from_moved_homes() {
    let (_dir, ledger, homes) = moved_homes().await;
    let find = |name| homes.find(&tenant(), &user(name));
    assert_eq!(find("ann"), Knowledge::Unread, "before the first read");
    for name in ["ann", "bob"] {
        ledger.assign_home(&tenant(), &user(name), OWN, OWN).await.unwrap();
    }
    homes.refresh(|_| {}).await.unwrap();
    assert!(homes.is_empty());
    assert_eq!(find("ann"), Knowledge::First);
    ledger.begin_home_move(&tenant(), &user("ann"), OWN, TARGET).await.unwrap();
    homes.refresh(|_| {}).await.unwrap();
    assert_eq!(find("ann"), Knowledge::Unread, "on its way");
    let departure = ledger.home_moving(&tenant(), &user("ann")).await.unwrap().unwrap();
    ledger.end_home_move(&departure).await.unwrap();
    homes.refresh(|_| {}).await.unwrap();
    let moved = Home { state: HomeState::Moved, ..home(TARGET, 2) };
    assert_eq!(find("ann"), Knowledge::Moved(moved));
    assert_eq!((find("bob"), find("nobody")), (Knowledge::First, Knowledge::First));
}

#[tokio::test]
async fn an_older_record_replaces_no_newer_record() {
    let (_dir, _, homes) = moved_homes().await;
    homes.refresh(|_| {}).await.unwrap();
    let find = || homes.find(&tenant(), &user("ann"));
    let note = |home| homes.note(&tenant(), &user("ann"), home);
    note(Some(home(TARGET, 3)));
    note(Some(home(OWN, 2)));
    note(Some(home(OWN, 1)));
    assert_eq!(find(), Knowledge::Moved(home(TARGET, 3)));
    homes.invalidate(&tenant(), &user("ann"));
    assert_eq!(find(), Knowledge::Unread);
    note(Some(home(OWN, 4)));
    assert_eq!(find(), Knowledge::Moved(home(OWN, 4)));
}

#[tokio::test]
async fn a_subscriber_without_a_moved_home_stays_unread_until_the_record_is_read() {
    let (_dir, _, homes) = moved_homes().await;
    homes.refresh(|_| {}).await.unwrap();
    for record in [Some(home(OWN, 1)), None] {
        homes.invalidate(&tenant(), &user("ann"));
        assert_eq!(homes.find(&tenant(), &user("ann")), Knowledge::Unread);
        homes.note(&tenant(), &user("ann"), record);
        assert_eq!(homes.find(&tenant(), &user("ann")), Knowledge::First);
    }
}

#[test]
fn the_latest_changes_are_read_again_until_no_earlier_change_can_follow() {
    let read = Instant::now();
    let mut newest = Newest { position: HomesCursor::default(), read: Some(read) };
    newest.settle(read + OVERLAP - Duration::from_millis(1));
    assert_eq!(newest.read, Some(read), "a change of a transaction under way may follow");
    newest.settle(read + OVERLAP);
    assert_eq!(newest.read, None);
    assert_eq!(newest.reread_from(), newest.position);
}
