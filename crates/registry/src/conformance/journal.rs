//! Clauses on the journal: each change is on record in the step of the change.

use std::time::{Duration, Instant};

use seatkeeper_core::{Change, EndReason, Event, Origin};

use super::books::{Account, events_of, waiting};
use super::harness::{Harness, JOURNAL_EVENTS_MAX, Scene};
use super::plan::{devices, seats};
use super::pool::{TestPool, admin, particulars_of, request_of};
use crate::{Ended, Error, Receipt, Registry};

/// Deadline for an event that must come at once.
const DEADLINE: Duration = Duration::from_secs(10);

pub async fn every_change_is_one_event_and_in_order(h: &impl Harness) {
    let pool = h.pool(devices(1)).await;
    pool.claim("tv").await.admitted();
    h.let_a_moment_pass().await;
    pool.claim("phone").await.answered();
    let phone = pool.claim("phone").await.answered();
    assert_eq!(phone.live, 1);
    pool.end_all(EndReason::Revoked).await;
    let told: Vec<_> = events_of(&*pool.registry, &pool.id).await.iter().map(told).collect();
    let expected = [
        (1, 1, "tv admitted".to_owned()),
        (2, 0, "tv evicted".to_owned()),
        (3, 1, "phone admitted".to_owned()),
        (4, 0, "phone superseded".to_owned()),
        (5, 1, "phone admitted".to_owned()),
        (6, 0, "phone revoked".to_owned()),
    ];
    assert_eq!(told, expected);
}

pub async fn an_event_says_who_did_what_and_when(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("machine").by("ann").of_tier(2).await.admitted();
    h.let_a_moment_pass().await;
    let before = h.now().await;
    pool.release(&ann).await;

    let events = events_of(&*pool.registry, &pool.id).await;
    let [admitted, ended] = &events[..] else { panic!("expected two events: {events:?}") };
    assert_eq!(admitted.origin, request_of(&"ann".into(), "claim"));
    assert_eq!((admitted.at, admitted.limit.0, admitted.version), (ann.session.started, 2, 1));
    let Change::Admitted { session, expires, particulars } = &admitted.change else {
        panic!("expected an admission: {admitted:?}")
    };
    assert_eq!((&**session, *expires), (&ann.session, ann.expires));
    assert_eq!(**particulars, particulars_of(&"machine".into()));

    assert_eq!(ended.origin, request_of(&"ann".into(), "end"));
    assert!(before <= ended.at && ended.at <= h.now().await, "{ended:?}");
    assert_eq!(ended.epoch, admitted.epoch);
    let expected = Change::Ended {
        session: ann.session.id,
        holder: "machine".into(),
        tier: ann.session.tier,
        reason: EndReason::Released,
        last_heartbeat: ann.session.last_heartbeat,
        expires: ann.expires,
    };
    assert_eq!(ended.change, expected);
}

pub async fn what_time_ends_is_the_systems_own_work(h: &impl Harness) {
    let pool = h.pool(seats(1).brief()).await;
    pool.claim("ann").await.admitted();
    h.let_pass(pool.ttl()).await;
    pool.claim("bob").await.admitted();
    let events = events_of(&*pool.registry, &pool.id).await;
    let told: Vec<_> = events.iter().map(told).collect();
    assert_eq!(told[1..], [(2, 0, "ann expired".to_owned()), (3, 1, "bob admitted".to_owned())]);
    assert_eq!(events[1].origin, Origin::SYSTEM);
    assert_eq!(events[2].origin, request_of(&"bob".into(), "claim"));
}

pub async fn renewals_are_not_events(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.heartbeat(&ann).await;
    pool.claim("ann").await.resumed();
    pool.claim("ann").naming(&ann).await.refreshed();
    pool.session_by(&admin(), ann.session.id).await.expect("ann is in");
    pool.view().await;
    assert_eq!(waiting(&*pool.registry).await.len(), 1);
}

pub async fn reading_again_gives_the_same_again(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    pool.claim("ann").await.admitted();
    pool.claim("bob").await.admitted();
    let first = events_of(&*pool.registry, &pool.id).await;
    assert_eq!(first.len(), 2);
    assert_eq!(events_of(&*pool.registry, &pool.id).await, first);
}

/// A node may know only of its own events, and reads the events of other nodes later.
pub async fn what_waits_is_read_to_its_end_whoever_wrote_it(h: &impl Harness) {
    let plan = seats(2);
    let nodes = [h.pool(plan.clone()).await, h.pool_not_open(plan)];
    for (node, holder) in nodes.iter().zip(["ann", "bob"]) {
        node.claim(holder).await.admitted();
    }
    for node in &nodes {
        assert_eq!(waiting(&*node.registry).await.len(), nodes.len());
    }
}

pub async fn a_journal_can_be_read_piece_by_piece(h: &impl Harness) {
    let pools = [h.pool(seats(9)).await, h.pool(seats(9).called("another")).await];
    for holder in ["ann", "bob", "cid", "dan"] {
        for pool in &pools {
            pool.claim(holder).await.admitted();
        }
    }
    let mut accounts = [Account::default(), Account::default()];
    for _ in 0..8 {
        for entry in pools[0].registry.journal_read(1).await.expect("a journal can be read").entries {
            let at = usize::from(entry.event.pool == pools[1].id);
            accounts[at].enter(&entry.event).expect("the events of a pool follow from one another");
            acknowledge(&pools[0], entry.receipt).await;
        }
    }
    assert_eq!(accounts.map(|account| account.seq()), [4, 4]);
    assert!(waiting(&*pools[0].registry).await.is_empty());
}

pub async fn what_happens_in_one_step_can_be_acknowledged_event_by_event(h: &impl Harness) {
    const HOLDERS: u64 = 20;
    let pool = h.pool(seats(HOLDERS as u32)).await;
    for number in 0..HOLDERS {
        pool.claim(&format!("machine {number}")).await.admitted();
    }
    let admissions = waiting(&*pool.registry).await;
    acknowledge(&pool, admissions.last().expect("all were admitted").receipt).await;
    pool.end_all(EndReason::Revoked).await;
    for seq in HOLDERS + 1..=2 * HOLDERS {
        let read = pool.registry.journal_read(3).await.expect("a journal can be read");
        let first = read.entries.first().expect("there is more");
        assert_eq!((first.event.seq, first.event.live), (seq, (2 * HOLDERS - seq) as u32));
        acknowledge(&pool, first.receipt).await;
    }
    assert!(waiting(&*pool.registry).await.is_empty());
}

pub async fn acknowledged_events_are_gone_and_the_others_stay(h: &impl Harness) {
    let pool = h.pool(seats(3)).await;
    for holder in ["ann", "bob", "cid"] {
        pool.claim(holder).await.admitted();
    }
    let entries = waiting(&*pool.registry).await;
    let second = entries[1].receipt;
    for _ in 0..2 {
        acknowledge(&pool, second).await;
        let left: Vec<_> = events_of(&*pool.registry, &pool.id).await.iter().map(told).collect();
        assert_eq!(left, [(3, 3, "cid admitted".to_owned())]);
    }
    acknowledge(&pool, entries[0].receipt).await;
    assert_eq!(waiting(&*pool.registry).await[0].receipt, entries[2].receipt);
    pool.claim("ann").await.resumed();
    assert_eq!(waiting(&*pool.registry).await.len(), 1);
}

pub async fn a_receipt_covers_the_events_of_its_answer(h: &impl Harness) {
    let pool = h.pool(seats(2).brief()).await;
    let claimed = pool.claim("ann").await.answered();
    covers_all(&pool, claimed.receipt).await;

    let id = pool.claim("ann").await.resumed().session.id;
    let ended = pool.end_by(&admin(), id, EndReason::Released).await;
    let Ended::Now { receipt, .. } = ended else { panic!("it is live: {ended:?}") };
    covers_all(&pool, receipt).await;

    pool.claim("bob").await.admitted();
    covers_all(&pool, pool.end_all(EndReason::Revoked).await.receipt).await;

    let cid = pool.claim("cid").await.admitted();
    h.let_pass(pool.ttl()).await;
    let heard = pool.heartbeat_by(&admin(), cid.session.id).await;
    let crate::Heartbeat::Over { receipt, .. } = heard else { panic!("it is over: {heard:?}") };
    covers_all(&pool, receipt).await;

    let closed = pool.after(|terms| terms.standing = seatkeeper_core::Standing::Closed);
    pool.claim("dan").await.admitted();
    covers_all(&pool, pool.revise(closed.terms()).await.receipt).await;
}

pub async fn a_denial_waits_for_the_admissions_that_it_was_decided_by(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let admitted = pool.claim("ann").await.answered().receipt;
    let denied = pool.claim("bob").await.answered().receipt;
    assert_eq!(denied.bucket, admitted.bucket);
    assert!(denied.position >= admitted.position, "{denied:?} {admitted:?}");
    covers_all(&pool, denied).await;
}

pub async fn the_end_of_a_journal_covers_all_that_happened(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    pool.claim("ann").await.admitted();
    pool.claim("bob").await.admitted();
    let end = pool.registry.journal_end(pool.bucket()).await.expect("a journal has an end");
    covers_all(&pool, end).await;
    assert_eq!(pool.registry.journal_end(pool.bucket()).await.expect("a journal has an end"), end);
}

pub async fn a_full_journal_admits_nobody_and_lets_everything_else_go_on(h: &impl Harness) {
    let pool = h.pool(seats(JOURNAL_EVENTS_MAX as u32 + 1)).await;
    let ann = pool.claim("ann").await.admitted();
    let bob = pool.claim("bob").await.admitted();
    for n in 2..JOURNAL_EVENTS_MAX {
        pool.claim(&format!("machine {n}")).await.admitted();
    }
    let refused = pool.claim("one too many").await.failed();
    assert!(matches!(refused, Error::JournalFull { depth } if depth >= JOURNAL_EVENTS_MAX), "{refused:?}");
    assert_eq!(pool.view().await.live as usize, JOURNAL_EVENTS_MAX);

    pool.heartbeat(&ann).await;
    assert_eq!(pool.release(&bob).await, EndReason::Released);
    pool.claim("one too many").await.failed();
    pool.end_all(EndReason::Revoked).await;
    assert_eq!(waiting(&*pool.registry).await.len(), 2 * JOURNAL_EVENTS_MAX);

    let end = pool.registry.journal_end(pool.bucket()).await.expect("a journal has an end");
    acknowledge(&pool, end).await;
    pool.claim("one too many").await.admitted();
}

pub async fn the_depth_counts_what_waits(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let first = pool.claim("ann").await.answered().receipt;
    pool.claim("bob").await.admitted();
    the_depth_becomes(&*pool.registry, 2).await;
    acknowledge(&pool, first).await;
    the_depth_becomes(&*pool.registry, 1).await;
    acknowledge(&pool, first).await;
    the_depth_becomes(&*pool.registry, 1).await;
}

pub async fn the_reader_is_stirred_by_an_event(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    pool.claim("ann").await.admitted();
    wakeup(&*pool.registry).await;
    tokio::join!(async { pool.claim("bob").await.admitted() }, async {
        // Wake-ups may be spurious, so the journal decides on the event's arrival.
        while waiting(&*pool.registry).await.len() < 2 {
            wakeup(&*pool.registry).await;
        }
    });
}

async fn wakeup(registry: &dyn Registry) {
    let wakeup = tokio::time::timeout(DEADLINE, registry.journal_woken()).await;
    wakeup.expect("an event wakes the reader");
}

async fn the_depth_becomes(registry: &dyn Registry, depth: usize) {
    let started = Instant::now();
    while registry.journal_depth() != depth {
        assert!(started.elapsed() < DEADLINE, "{} wait, expected {depth}", registry.journal_depth());
        tokio::task::yield_now().await;
    }
}

async fn acknowledge(pool: &TestPool, through: Receipt) {
    pool.registry.journal_acknowledge(through).await.expect("events can be acknowledged");
}

/// Checks that no event of the pool waits once the receipt is acknowledged.
async fn covers_all(pool: &TestPool, receipt: Receipt) {
    assert_eq!(receipt.bucket, pool.bucket());
    acknowledge(pool, receipt).await;
    assert_eq!(events_of(&*pool.registry, &pool.id).await, []);
}

/// Returns an event's number, the live sessions after the event, and a description of the change.
fn told(event: &Event) -> (u64, u32, String) {
    let what = match &event.change {
        Change::Admitted { session, .. } => format!("{} admitted", session.holder),
        Change::Ended { holder, reason, .. } => format!("{holder} {}", reason.as_str()),
        Change::Denied(denied) => format!("{} denied", denied.holder),
    };
    (event.seq, event.live, what)
}
