//! Sessions begun by nodes alone are recorded beside the session chain, once each, and within the limit on
//! each node.

use seatkeeper_core::{EndReason, Event, Span, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::node_local::LoneNode;
use seatkeeper_ledger::retention::Purged;
use seatkeeper_ledger::verify::{Breach, ToldTerms, Verdict};
use sqlx::Executor as _;
use uuid::Uuid;

use crate::retaining::{proof, run};
use crate::story::{Story, ledger, licensed, planned, subscribed, tenant};

const HERE: LoneNode = LoneNode { id: Uuid::from_u128(1), without_home: false };
const THERE: LoneNode = LoneNode { id: Uuid::from_u128(2), without_home: false };
const ABROAD: LoneNode = LoneNode { id: Uuid::from_u128(3), without_home: true };

#[tokio::test]
async fn each_node_gives_every_seat_away_and_each_admission_is_on_record_once() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 1).await;
    // The pool's only seat is taken in the chain.
    let mut chain = Story::new(&license);
    let (ann, ann_begins) = chain.admit("ann");
    ledger.apply(&[ann_begins]).await.unwrap();
    let ann = ledger.find_session(ann).await.unwrap().expect("it is on record");
    assert!(!ann.is_node_local && ann.record.ended.is_none());
    let (mut here, mut there) = (Story::new(&license), Story::new(&license));
    let (bob, bob_begins) = here.admit("bob");
    let (carl, carl_begins) = there.admit("carl");
    ledger.record_node_local(HERE, &[bob_begins.clone(), here.deny("dora")]).await.unwrap();
    ledger.record_node_local(THERE, &[carl_begins]).await.unwrap();
    let bob_ends = here.end(bob, EndReason::Evicted);
    let (emil, emil_begins) = here.admit("emil");
    for _ in 0..2 {
        let again = [bob_begins.clone(), bob_ends.clone(), emil_begins.clone()];
        ledger.record_node_local(HERE, &again).await.unwrap();
    }

    let proven = proof(&ledger).await;
    assert_eq!((proven.admissions, proven.live, proven.node_local), (1, 1, 3));
    let reason = async |id| {
        let found = ledger.find_session(id).await.unwrap().expect("it is on record");
        assert!(found.is_node_local);
        found.record.ended.map(|end| end.reason)
    };
    assert_eq!(reason(bob).await, Some(EndReason::Evicted));
    assert_eq!((reason(carl).await, reason(emil).await), (None, None));
    // Sessions of nodes alone are outside the chain, and have no rows in `sessions`.
    assert_eq!(ledger.pool_seq(&chain.pool).await.unwrap(), 1);
    assert_eq!(ledger.session(bob).await.unwrap(), None);
    ledger.apply(&[chain.deny("bob")]).await.unwrap();
    assert_eq!(ledger.session(emil).await.unwrap(), None);
}

#[tokio::test]
async fn a_node_that_admits_one_too_many_by_itself_breaks_the_proof() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 1).await);
    let (_, first) = story.admit("ann");
    let (_, second) = story.admit("bob");
    ledger.record_node_local(HERE, &[first, second]).await.unwrap();
    let Verdict::Broken(finding) = ledger.verify(|_| ()).await.unwrap() else { panic!("it is proven") };
    assert_eq!(finding.breach, Breach::AboveLimit { live: 2, limit: 1 });
}

#[tokio::test]
async fn it_goes_with_old_history() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 3).await);
    let events: Vec<Event> = ["ann", "bob", "carl"].map(|machine| story.admit(machine).1).into();
    ledger.record_node_local(HERE, &events).await.unwrap();
    let (run, before) = (run(&ledger).await, story.now + Span::from_secs(1));
    let two = ledger.purge(&run, before, 2).await.unwrap();
    assert_eq!(two, Purged { records: 2, sessions: 0, more: true });
    assert_eq!(proof(&ledger).await.node_local, 1);
    let last = ledger.purge(&run, before, 2).await.unwrap();
    assert_eq!(last, Purged { records: 1, sessions: 0, more: false });
}

/// Returns the story of a subscriber by terms of a limit and a version.
fn devices(user: &str, limit: u32, version: u64) -> Story {
    let mut story = Story::devices(user);
    (story.limit, story.version) = (limit, version);
    story
}

/// Returns the breach of a proof that fails.
async fn broken(ledger: &Ledger) -> Breach {
    match ledger.verify(|_| ()).await.unwrap() {
        Verdict::Proven(_) => panic!("it is proven"),
        Verdict::Broken(finding) => finding.breach,
    }
}

/// The home has the terms on record, and not this region.
#[tokio::test]
async fn a_node_in_place_of_a_home_keeps_to_the_limit_that_the_home_told() {
    let (_place, ledger) = ledger().await;
    let mut story = devices("ann", 2, 22);
    let (phone, tablet) = (story.admit("phone"), story.admit("tablet"));
    ledger.record_node_local(ABROAD, &[phone.1, tablet.1]).await.unwrap();
    assert_eq!(proof(&ledger).await.node_local, 2);
    let mut unknown = devices("bob", 1, 0);
    let (_, first) = unknown.admit("phone");
    ledger.record_node_local(ABROAD, std::slice::from_ref(&first)).await.unwrap();
    assert_eq!(proof(&ledger).await.node_local, 3);
    let (_, third) = story.admit("laptop");
    ledger.record_node_local(ABROAD, &[third]).await.unwrap();
    assert_eq!(broken(&ledger).await, Breach::AboveLimit { live: 3, limit: 2 });
}

/// The limit of a record in another spelling would never be compared with the record of the home.
#[tokio::test]
async fn a_record_whose_mark_is_spelt_differently_is_malformed() {
    let (place, ledger) = ledger().await;
    let mut story = devices("ann", 9, 22);
    ledger.record_node_local(ABROAD, &[story.admit("phone").1]).await.unwrap();
    assert_eq!(ledger.told_terms().await.unwrap().len(), 1);
    let mut connection = place.connect_unguarded().await;
    let respelt = "UPDATE audit_log SET detail = replace(detail, ':', ': ') WHERE action = 'admitted_alone'";
    assert_eq!(connection.execute(respelt).await.unwrap().rows_affected(), 1);
    assert_eq!(ledger.told_terms().await.unwrap(), []);
    assert_eq!(broken(&ledger).await, Breach::Malformed);
}

#[tokio::test]
async fn a_node_in_place_of_a_home_that_told_nothing_has_the_limit_1() {
    let (_place, ledger) = ledger().await;
    let mut story = devices("ann", 2, 0);
    ledger.record_node_local(ABROAD, &[story.admit("phone").1]).await.unwrap();
    let granted = Some(1);
    assert_eq!(broken(&ledger).await, Breach::LimitNotGranted { limit: 2, version: 0, granted });
}

#[tokio::test]
async fn a_node_in_place_of_the_registry_has_terms_on_record() {
    let (_place, ledger) = ledger().await;
    let mut story = devices("ann", 2, 22);
    ledger.record_node_local(HERE, &[story.admit("phone").1]).await.unwrap();
    assert_eq!(broken(&ledger).await, Breach::LimitNotGranted { limit: 2, version: 22, granted: None });
}

#[tokio::test]
async fn the_home_has_granted_the_limit_that_it_told() {
    let ((_home_place, home), (_place, abroad)) = (ledger().await, ledger().await);
    planned(&home, "pair", 2).await;
    subscribed(&home, "ann", "pair").await;
    let mut story = Story::of_subscriber(&home, "ann").await;
    let subscriber = (tenant(), UserId::from("ann"));
    let terms = ToldTerms { subscriber, version: story.version, limit: 2, admissions: 2 };
    abroad.record_node_local(ABROAD, &[story.admit("phone").1, story.admit("tablet").1]).await.unwrap();
    let mut registry = devices("bob", 1, 0);
    abroad.record_node_local(HERE, &[registry.admit("phone").1]).await.unwrap();
    assert_eq!(abroad.told_terms().await.unwrap(), std::slice::from_ref(&terms));
    assert!(home.grants(&terms).await.unwrap());
    assert!(!abroad.grants(&terms).await.unwrap());
    assert!(!home.grants(&ToldTerms { limit: 3, ..terms.clone() }).await.unwrap());
    assert!(!home.grants(&ToldTerms { version: terms.version + 40, ..terms }).await.unwrap());
}
