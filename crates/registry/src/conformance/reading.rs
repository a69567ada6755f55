//! Clauses on reading sessions and pools.

use seatkeeper_core::{RegistryTime, SessionId, Span};

use super::harness::{Harness, Scene};
use super::plan::seats;
use super::pool::{TestPool, admin};

pub async fn a_view_shows_the_stalest_first_and_no_more_than_asked(h: &impl Harness) {
    let pool = h.pool(seats(4)).await;
    let mut in_turn = Vec::new();
    for holder in ["ann", "bob", "cid"] {
        in_turn.push(pool.claim(holder).await.admitted());
        h.let_a_moment_pass().await;
    }
    pool.heartbeat(&in_turn[0]).await;
    assert_eq!(seen(&pool, usize::MAX).await, ["bob", "cid", "ann"]);
    assert_eq!(seen(&pool, 2).await, ["bob", "cid"]);
    let none = pool.registry.view(&pool.id, 0).await.expect("a registry shows pools");
    assert_eq!((none.live, none.sessions.len(), none.terms), (3, 0, Some(pool.terms())));
}

pub async fn the_stalest_come_first_whatever_their_ttl(h: &impl Harness) {
    let pool = h.pool(seats(4)).await;
    let shorter = pool.after(|terms| terms.ttl = Span::from_secs(1_800));
    let as_before = shorter.after(|terms| terms.ttl = pool.ttl());
    for (pool, holder) in [(&pool, "ann"), (&shorter, "bob"), (&as_before, "cid"), (&as_before, "dan")] {
        pool.claim(holder).await.admitted();
        h.let_a_moment_pass().await;
    }
    assert_eq!(seen(&pool, usize::MAX).await, ["ann", "bob", "cid", "dan"]);
    assert_eq!(seen(&pool, 2).await, ["ann", "bob"]);
}

pub async fn a_session_is_shown_as_it_stands(h: &impl Harness) {
    let pool = h.pool(seats(1)).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_a_moment_pass().await;
    let before = h.now().await;
    let shown = pool.session_by(&admin(), ann.session.id).await.expect("ann is in");
    assert_eq!((&shown.session, &shown.pool, shown.expires), (&ann.session, &ann.pool, ann.expires));
    assert!(shown.expires_in <= ann.expires.since(before), "{shown:?}");
    assert!(shown.expires_in >= ann.expires.since(h.now().await), "{shown:?}");
    let viewed = pool.view().await.sessions;
    assert_eq!(viewed.len(), 1);
    assert_eq!((&viewed[0].session, viewed[0].expires), (&shown.session, shown.expires));
}

pub async fn renewals_can_be_read_by_the_time_they_were_made(h: &impl Harness) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("ann").await.admitted();
    h.let_a_moment_pass().await;
    let bob = pool.claim("bob").await.admitted();
    let (ann_at, bob_at) = (ann.session.last_heartbeat, bob.session.last_heartbeat);
    let (ann_id, bob_id) = (ann.session.id, bob.session.id);
    assert_eq!(renewed_since(&pool, ann_at).await, [(bob_id, bob_at)]);
    assert_eq!(renewed_since(&pool, bob_at).await, []);

    h.let_a_moment_pass().await;
    let ann_again = pool.heartbeat(&ann).await.last_heartbeat;
    assert_eq!(renewed_since(&pool, bob_at).await, [(ann_id, ann_again)]);
    let mut both = vec![(ann_id, ann_again), (bob_id, bob_at)];
    both.sort_unstable();
    assert_eq!(renewed_since(&pool, ann_at).await, both);
}

async fn renewed_since(pool: &TestPool, since: RegistryTime) -> Vec<(SessionId, RegistryTime)> {
    let renewed = pool.registry.renewed_since(pool.bucket(), since).await;
    let renewed = renewed.expect("a bucket knows its renewals");
    let mut renewed: Vec<_> = renewed.iter().map(|heartbeat| (heartbeat.session, heartbeat.at)).collect();
    renewed.sort_unstable();
    renewed
}

async fn seen(pool: &TestPool, max: usize) -> Vec<String> {
    let view = pool.registry.view(&pool.id, max).await.expect("a registry shows pools");
    view.sessions.iter().map(|live| live.session.holder.to_string()).collect()
}
