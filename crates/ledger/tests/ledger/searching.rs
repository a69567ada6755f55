//! Sessions and audit records are found by every filter, page by page.

use seatkeeper_core::{EndReason, Holder, PoolKind, Span, TenantId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::audit::{Action, AuditFilter};
use seatkeeper_ledger::sessions::SessionFilter;

use crate::story::{START, Story, ledger, licensed, tenant};

/// Fills a license pool with ten holders, the first already released, and a device pool with one holder.
async fn populated(ledger: &Ledger) -> Story {
    let mut story = Story::new(&licensed(ledger, 50).await);
    let mut events = Vec::new();
    for n in 0..10 {
        let (id, began) = story.admit(&format!("host-{n}"));
        events.push(began);
        story.pass(Span::from_secs(1));
        if n == 0 {
            events.push(story.end(id, EndReason::Released));
        }
    }
    events.push(Story::devices("ann").admit("tv").1);
    ledger.apply(&events).await.unwrap();
    story
}

async fn holders(ledger: &Ledger, filter: SessionFilter) -> Vec<String> {
    let page = ledger.search_sessions(&tenant(), &filter, None, 100).await.unwrap();
    page.items.iter().map(|record| record.session.holder.to_string()).collect()
}

#[tokio::test]
async fn sessions_are_found_by_pool_holder_user_address_and_life() {
    let (_place, ledger) = ledger().await;
    let story = populated(&ledger).await;
    let any = SessionFilter::default();
    assert_eq!(holders(&ledger, any.clone()).await.len(), 11);
    let devices = SessionFilter { pool_kind: Some(PoolKind::Subscriber), ..any.clone() };
    assert_eq!(holders(&ledger, devices).await, ["tv"]);
    let pool = SessionFilter { pool: Some(story.pool.name.clone()), ..any.clone() };
    assert_eq!(holders(&ledger, pool).await.len(), 10);
    let holder = SessionFilter { holder: Some(Holder::from("host-3")), ..any.clone() };
    assert_eq!(holders(&ledger, holder).await, ["host-3"]);
    let user = SessionFilter { user: Some("bob".into()), ..any.clone() };
    assert_eq!(holders(&ledger, user).await, [""; 0]);
    let ip = SessionFilter { ip: Some([192, 0, 2, 7].into()), live: Some(false), ..any.clone() };
    assert_eq!(holders(&ledger, ip).await, ["host-0"]);
    let foreign = ledger.search_sessions(&TenantId::from("globex"), &any, None, 100).await.unwrap();
    assert_eq!(foreign.items, []);
}

#[tokio::test]
async fn pages_of_sessions_follow_each_other_newest_first() {
    let (_place, ledger) = ledger().await;
    let story = populated(&ledger).await;
    let filter = SessionFilter { pool: Some(story.pool.name), ..SessionFilter::default() };
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let page = ledger.search_sessions(&tenant(), &filter, cursor, 3).await.unwrap();
        seen.extend(page.items.iter().map(|record| record.session.holder.to_string()));
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    let newest_first: Vec<_> = (0..10).rev().map(|n| format!("host-{n}")).collect();
    assert_eq!(seen, newest_first);
}

#[tokio::test]
async fn records_are_found_by_action_pool_session_and_time() {
    let (_place, ledger) = ledger().await;
    let story = populated(&ledger).await;
    let find = async |filter: AuditFilter| ledger.audit(&tenant(), &filter, None, 100).await.unwrap().items;
    let any = AuditFilter::default();

    let ended = find(AuditFilter { action: Some(Action::Ended), ..any.clone() }).await;
    assert_eq!(ended.len(), 1);
    let of_session = find(AuditFilter { session: ended[0].session, ..any.clone() }).await;
    assert_eq!(of_session.len(), 2);
    let of_pool = find(AuditFilter { pool: Some(story.pool.name.clone()), ..any.clone() }).await;
    assert_eq!(of_pool.len(), 12);
    let of_kind = find(AuditFilter { pool_kind: Some(PoolKind::Subscriber), ..any.clone() }).await;
    assert_eq!(of_kind.len(), 1);
    let from = Some(START + Span::from_secs(3));
    let to = Some(START + Span::from_secs(5));
    let timed = find(AuditFilter { from, to, ..any.clone() }).await;
    assert_eq!(timed.len(), 2);

    let first = ledger.audit(&tenant(), &any, None, 8).await.unwrap();
    let rest = ledger.audit(&tenant(), &any, first.next, 8).await.unwrap();
    assert_eq!((first.items.len(), rest.items.len(), rest.next), (8, 5, None));
    assert!(first.items[7].id > rest.items[0].id);
}
