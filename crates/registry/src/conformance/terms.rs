//! Clauses on changes of an entitlement while sessions are live.

use seatkeeper_core::{Change, Denial, EndReason, Seats, Span, Standing, Terms};

use super::books::events_of;
use super::harness::{Harness, Scene};
use super::plan::{capacity, devices, seats};
use super::pool::{TestPool, owner};
use crate::Heartbeat;

pub async fn a_lowered_limit_ends_nobody_and_binds_the_next_admission(h: &impl Harness) {
    let pool = h.pool(seats(3)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.claim("bob").await.admitted();
    let lowered = pool.at_limit(1);
    assert_eq!(pool.revise(lowered.terms()).await.count, 0);
    assert_eq!(pool.holders().await, ["ann", "bob"]);
    pool.claim("cid").await.full();
    pool.release(&ann).await;
    pool.claim("cid").await.full();
    assert_eq!(pool.view().await.terms, Some(lowered.terms()));
}

pub async fn a_raised_limit_admits_at_once(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    pool.claim("ann").await.admitted();
    pool.claim("bob").await.full();
    pool.revise(pool.at_limit(2).terms()).await;
    let claimed = pool.claim("bob").await.answered();
    assert_eq!((claimed.live, claimed.limit), (2, Seats(2)));
}

pub async fn closed_terms_end_every_session_and_admit_nobody(h: &impl Harness) {
    let pool = h.pool(devices(2)).await;
    let ann = pool.claim("ann").await.admitted();
    pool.claim("bob").await.admitted();
    assert_eq!(pool.revise(closed(&pool)).await.count, 2);
    assert_eq!(pool.heartbeat_by(&owner(&ann), ann.session.id).await, Heartbeat::Missing);
    assert_eq!(pool.claim("ann").naming(&ann).await.denied(), Denial::EntitlementClosed);
    let events = events_of(&*pool.registry, &pool.id).await;
    let why = |event: &seatkeeper_core::Event| match event.change {
        Change::Ended { reason, .. } => Some(reason),
        Change::Admitted { .. } | Change::Denied(_) => None,
    };
    let reasons: Vec<_> = events.iter().filter_map(why).collect();
    assert_eq!(reasons, [EndReason::EntitlementEnded; 2]);
}

pub async fn reopened_terms_admit_again(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    pool.revise(closed(&pool)).await;
    let reopened = pool.after(|terms| terms.version += 1);
    reopened.claim("ann").await.admitted();
}

pub async fn older_terms_change_nothing(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let newer = pool.after(|terms| terms.version = 9);
    pool.revise(newer.terms()).await;
    let ttl = Span::from_secs(60);
    let older = Terms { version: 8, limit: Seats(5), ttl, standing: Standing::Closed, ..pool.terms() };
    pool.claim("ann").await.admitted();
    assert_eq!(pool.revise(older).await.count, 0);
    pool.claim("bob").await.full();
    pool.at_limit(5).claim("bob").await.full();
    assert_eq!(pool.view().await.terms, Some(newer.terms()));
}

pub async fn terms_of_the_same_version_change_nothing_but_the_ttl(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ends_at = Some(h.now().await);
    let same = pool.of_same_version(|terms| {
        (terms.limit, terms.ends_at, terms.standing) = (Seats(5), ends_at, Standing::Closed);
    });
    assert_eq!(pool.revise(same.terms()).await.count, 0);
    same.claim("ann").await.admitted();
    same.claim("bob").await.full();
    assert_eq!(pool.view().await.terms, Some(pool.terms()));
    let shorter = same.of_same_version(|terms| terms.ttl = Span::from_secs(60));
    shorter.claim("bob").await.full();
    assert_eq!(pool.view().await.terms, Some(Terms { ttl: shorter.ttl(), ..pool.terms() }));
}

pub async fn a_ttl_of_the_same_version_counts_from_the_next_claim_on(h: &impl Harness) {
    for ttl in [60, 36_000].map(Span::from_secs) {
        let pool = h.pool(seats(2).called(&format!("{ttl:?}"))).await;
        let ann = pool.claim("ann").await.admitted();
        assert_eq!(pool.heartbeat(&ann).await.ttl, pool.ttl(), "no claim has brought the TTL yet");
        let changed = pool.of_same_version(|terms| terms.ttl = ttl);
        let bob = changed.claim("bob").await.admitted();
        assert_eq!((bob.session.ttl, bob.expires_in), (ttl, ttl));
        let unrenewed = pool.session_by(&owner(&ann), ann.session.id).await.expect("ann is in");
        assert_eq!(unrenewed.session.ttl, pool.ttl());
        let renewed = pool.heartbeat(&ann).await;
        assert_eq!((renewed.ttl, renewed.expires_in), (ttl, ttl));
        // A node with the old setting.
        assert_eq!(pool.claim("ann").await.resumed().session.ttl, pool.ttl());
    }
}

pub async fn a_ttl_of_the_same_version_reaches_an_empty_pool(h: &impl Harness) {
    for plan in [seats(1), capacity(), devices(1)] {
        let pool = h.pool(plan).await;
        let ann = pool.claim("ann").await.admitted();
        pool.release(&ann).await;
        let changed = pool.of_same_version(|terms| terms.ttl = Span::from_secs(60));
        assert_eq!(changed.claim("ann").await.admitted().session.ttl, changed.ttl());
    }
}

pub async fn a_claim_brings_newer_terms_along(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    pool.claim("ann").await.admitted();
    let raised = pool.at_limit(2);
    raised.claim("bob").await.admitted();
    assert_eq!(pool.view().await.terms, Some(raised.terms()));
    let events = events_of(&*pool.registry, &pool.id).await;
    let versions: Vec<_> = events.iter().map(|event| (event.version, event.limit)).collect();
    assert_eq!(versions, [(1, Seats(1)), (2, Seats(2))]);
}

pub async fn a_shortened_entitlement_expires_who_is_in(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("ann").await.admitted();
    let now = h.now().await;
    assert_eq!(pool.revise(pool.after(|terms| terms.ends_at = Some(now)).terms()).await.count, 1);
    assert_eq!(pool.heartbeat_by(&owner(&ann), ann.session.id).await, Heartbeat::Missing);
    assert_eq!(pool.claim("bob").await.denied(), Denial::EntitlementOver { ended_at: now });
}

pub async fn an_extended_entitlement_brings_nothing_back(h: &impl Harness) {
    let ends_at = h.now().await + h.ttl();
    let pool = h.pool(seats(1).ending_at(ends_at)).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_pass(ends_at.since(h.now().await)).await;
    let extended = pool.after(|terms| terms.ends_at = None);
    assert_eq!(pool.revise(extended.terms()).await.count, 1);
    assert_eq!(pool.heartbeat_by(&owner(&ann), ann.session.id).await, Heartbeat::Missing);
    extended.claim("ann").naming(&ann).await.admitted();
}

pub async fn a_changed_ttl_binds_from_the_next_renewal_on(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("ann").await.admitted();
    let longer = pool.after(|terms| terms.ttl = Span::from_millis(pool.ttl().as_millis() + 60_000));
    pool.revise(longer.terms()).await;
    let unrenewed = pool.session_by(&owner(&ann), ann.session.id).await.expect("ann is in");
    assert_eq!(unrenewed.expires, ann.expires);
    let renewed = pool.heartbeat(&ann).await;
    assert_eq!(renewed.expires_in, longer.ttl());
}

fn closed(pool: &TestPool) -> Terms {
    pool.after(|terms| terms.standing = Standing::Closed).terms()
}
