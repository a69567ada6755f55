//! Clauses on rebuilding a bucket, which serves no caller meanwhile.

use std::future::Future;
use std::sync::Arc;

use seatkeeper_core::{Bucket, EndReason, RegistryTime, Session, Span};

use super::books::waiting;
use super::expiry::let_most_of_a_ttl_pass;
use super::harness::{Harness, Scene};
use super::opening::held_since_long;
use super::plan::seats;
use super::pool::{TestPool, owner, request_of};
use crate::{Error, Filling, Heartbeat, Rebuild, State};

/// A backend under test with buckets that can be rebuilt.
pub trait Rebuildable: Harness {
    /// Returns a node's registry for rebuilds.
    fn rebuild(&self) -> Arc<dyn Rebuild>;

    /// Sets the epoch of a bucket on every node.
    fn know(&self, bucket: Bucket, epoch: u64) -> impl Future<Output = ()> + Send;
}

/// The pool may have been open in the earlier epoch, and its events recorded.
pub async fn a_record_read_in_an_earlier_epoch_opens_no_pool(h: &impl Rebuildable) {
    let pool = h.pool_not_open(seats(1));
    let (registry, rebuild, bucket) = (&pool.registry, h.rebuild(), pool.bucket());
    let closed_at =
        || async { registry.closed_at(&pool.id).await.expect("an answer").expect("the pool is closed") };
    let before = closed_at().await;
    begin(h, bucket, NEXT).await;
    rebuild.rebuild_clear(bucket, NEXT, RegistryTime::default()).await.expect("a bucket can be emptied");
    rebuild.rebuild_finish(bucket, NEXT, None).await.expect("a bucket can be served again");
    h.know(bucket, NEXT).await;
    let terms = Some(pool.terms());
    if let Err(error) = registry.open_if_recent(before, &pool.id, 0, terms, Vec::new()).await {
        not_serving(&error, bucket);
    }
    assert!(matches!(pool.claim("ann").await.failed(), Error::PoolNotOpen));
    let now = closed_at().await;
    registry.open_if_recent(now, &pool.id, 0, terms, Vec::new()).await.expect("a pool can be opened");
    pool.claim("ann").await.admitted();
}

/// Maximum number of events of one step read together, whatever the caller's bound.
const TOGETHER_MAX: usize = 8;

/// The latest epoch of a newly started harness.
const BEFORE: u64 = 1;
const NEXT: u64 = BEFORE + 1;

pub async fn a_bucket_that_is_being_rebuilt_serves_nobody(h: &impl Rebuildable) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("ann").await.admitted();
    let (registry, bucket, id) = (&pool.registry, pool.bucket(), ann.session.id);
    begin(h, bucket, NEXT).await;
    h.know(bucket, NEXT).await;
    let origin = request_of(&"ann".into(), "any");

    not_serving(&pool.claim("bob").await.failed(), bucket);
    not_serving(&failed(registry.heartbeat(id, &owner(&ann), &origin).await), bucket);
    not_serving(&failed(registry.session(id, &owner(&ann)).await), bucket);
    not_serving(&failed(registry.end(id, &owner(&ann), EndReason::Released, &origin).await), bucket);
    not_serving(&failed(registry.end_all(&pool.id, EndReason::Revoked, &origin).await), bucket);
    not_serving(&failed(registry.revise(&pool.id, pool.terms(), &origin).await), bucket);
    not_serving(&failed(registry.view(&pool.id, 1).await), bucket);
    not_serving(&failed(registry.open(&pool.id, 0, None, Vec::new()).await), bucket);
    not_serving(&failed(registry.sweep(bucket, 1).await), bucket);
    not_serving(&failed(registry.due(bucket).await), bucket);
    not_serving(&failed(registry.journal_end(bucket).await), bucket);
    assert_eq!(waiting(&**registry).await.len(), 0, "who rebuilds reads the journal");
    rebuilt(h, &pool, NEXT, &[]).await;
}

pub async fn a_node_that_knows_another_epoch_is_served_nothing(h: &impl Rebuildable) {
    let pool = h.pool(seats(2)).await;
    let ann = pool.claim("ann").await.admitted();
    let bucket = pool.bucket();
    h.know(bucket, NEXT).await;
    not_serving(&pool.claim("bob").await.failed(), bucket);
    rebuilt(h, &pool, NEXT, &[]).await;
    h.know(bucket, BEFORE).await;
    not_serving(&pool.claim("bob").await.failed(), bucket);
    let origin = request_of(&"ann".into(), "any");
    not_serving(&failed(pool.registry.heartbeat(ann.session.id, &owner(&ann), &origin).await), bucket);
    h.know(bucket, NEXT).await;
    pool.claim("bob").await.admitted();
}

pub async fn a_rebuild_that_was_overtaken_goes_no_further(h: &impl Rebuildable) {
    let pool = h.pool(seats(2)).await;
    let (rebuild, bucket) = (h.rebuild(), pool.bucket());
    begin(h, bucket, NEXT).await;
    begin(h, bucket, NEXT + 1).await;
    begin(h, bucket, NEXT + 1).await;
    let filling = Filling { pool: &pool.id, seq: 0, terms: None, live: &[] };
    not_serving(&failed(rebuild.rebuild_begin(bucket, NEXT).await), bucket);
    not_serving(&failed(rebuild.rebuild_journal(bucket, NEXT, None, 1).await), bucket);
    not_serving(&failed(rebuild.rebuild_clear(bucket, NEXT, RegistryTime::default()).await), bucket);
    not_serving(&failed(rebuild.rebuild_fill(NEXT, filling).await), bucket);
    not_serving(&failed(rebuild.rebuild_finish(bucket, NEXT, None).await), bucket);

    rebuilt(h, &pool, NEXT + 1, &[]).await;
    not_serving(&failed(rebuild.rebuild_begin(bucket, NEXT + 1).await), bucket);
    not_serving(&failed(rebuild.rebuild_clear(bucket, NEXT + 1, RegistryTime::default()).await), bucket);
    h.know(bucket, NEXT + 1).await;
    pool.claim("ann").await.admitted();
}

pub async fn a_repeated_step_of_a_rebuild_changes_nothing(h: &impl Rebuildable) {
    let pool = h.pool(seats(2)).await;
    let (rebuild, bucket) = (h.rebuild(), pool.bucket());
    let ann = held_since_long(h, &pool, "ann", 7).await;
    let live = std::slice::from_ref(&ann);
    let filling = Filling { pool: &pool.id, seq: 4, terms: Some(pool.terms()), live };
    begin(h, bucket, NEXT).await;
    begin(h, bucket, NEXT).await;
    rebuild.rebuild_clear(bucket, NEXT, RegistryTime::default()).await.expect("a bucket can be emptied");
    rebuild.rebuild_fill(NEXT, filling).await.expect("a pool can be filled");
    rebuild.rebuild_fill(NEXT, filling).await.expect("a repeated step is no error");
    // A late duplicate: its reply was lost, and the rebuild went on.
    rebuild.rebuild_clear(bucket, NEXT, RegistryTime::default()).await.expect("a repeated step is no error");
    rebuild.rebuild_finish(bucket, NEXT, None).await.expect("a bucket can be served again");
    rebuild.rebuild_finish(bucket, NEXT, None).await.expect("a repeated step is no error");
    not_serving(&failed(rebuild.rebuild_begin(bucket, NEXT).await), bucket);
    h.know(bucket, NEXT).await;
    assert_eq!(pool.holders().await, ["ann"]);
    assert_eq!(waiting(&*pool.registry).await.len(), 0, "a fill is no event");
    let bob = pool.claim("bob").await.answered();
    assert_eq!((bob.receipt.epoch, bob.receipt.position), (NEXT, 1));
}

pub async fn what_waits_in_the_journal_can_be_replayed(h: &impl Rebuildable) {
    let pool = h.pool(seats(20)).await;
    for n in 0..20 {
        pool.claim(&format!("user-{n}")).await.admitted();
    }
    pool.end_all(EndReason::Revoked).await;
    let (rebuild, bucket) = (h.rebuild(), pool.bucket());
    begin(h, bucket, NEXT).await;
    let mut after = None;
    let mut replayed = Vec::new();
    for _ in 0..40 {
        let read = rebuild.rebuild_journal(bucket, NEXT, after, 2).await.expect("a journal can be replayed");
        assert!(read.len() < 2 + TOGETHER_MAX);
        after = read.last().map(|entry| entry.receipt).or(after);
        replayed.extend(read.into_iter().map(|entry| (entry.event.pool, entry.event.seq)));
    }
    let expected: Vec<_> = (1..41).map(|seq| (pool.id.clone(), seq)).collect();
    assert_eq!(replayed, expected);
    rebuilt(h, &pool, NEXT, &[]).await;
    h.know(bucket, NEXT).await;
    assert_eq!(waiting(&*pool.registry).await.len(), 0, "what was replayed is gone");
}

pub async fn a_rebuilt_bucket_holds_what_it_was_filled_with_and_nothing_else(h: &impl Rebuildable) {
    let pool = h.pool(seats(2)).await;
    let other = h.pool(seats(1).called("another")).await;
    let untouched = h.pool(seats(1).called("a third")).await;
    assert_ne!(other.bucket(), pool.bucket());
    let lost = pool.claim("ann").await.admitted();
    other.claim("ann").await.admitted();
    untouched.claim("ann").await.admitted();
    let bob = held_since_long(h, &pool, "bob", 7).await;
    rebuilt(h, &pool, NEXT, &[(4, &pool, bob.clone())]).await;
    h.know(pool.bucket(), NEXT).await;

    assert_eq!(pool.holders().await, ["bob"]);
    assert_eq!(pool.heartbeat_by(&owner(&lost), lost.session.id).await, Heartbeat::Missing);
    assert_eq!(pool.claim("bob").await.resumed().session.id, bob.id);
    let cid = pool.claim("cid").await.answered();
    assert_eq!((cid.receipt.epoch, cid.receipt.position), (NEXT, 1), "positions begin anew");
    let in_bucket =
        waiting(&*pool.registry).await.into_iter().filter(|it| it.receipt.bucket == pool.bucket());
    let told: Vec<_> =
        in_bucket.map(|entry| (entry.event.seq, entry.event.epoch, entry.event.live)).collect();
    assert_eq!(told, [(5, NEXT, 2)]);
    assert_eq!(other.holders().await, ["ann"]);
    assert_eq!(untouched.holders().await, ["ann"]);
}

pub async fn filled_sessions_get_one_full_ttl_from_the_filling_on(h: &impl Rebuildable) {
    let pool = h.pool(seats(1)).await;
    let ann = held_since_long(h, &pool, "ann", 1).await;
    let filled_after = h.now().await;
    rebuilt(h, &pool, NEXT, &[(1, &pool, ann.clone())]).await;
    h.know(pool.bucket(), NEXT).await;
    let live = pool.view().await.sessions.remove(0);
    assert!(live.session.last_heartbeat >= filled_after);
    assert_eq!(live.expires, live.session.last_heartbeat + pool.ttl());
}

pub async fn a_rebuild_that_finishes_long_after_its_fill_is_refused(h: &impl Rebuildable) {
    let pool = h.pool(seats(1).brief()).await;
    let bucket = pool.bucket();
    begins_with_one_session(h, &pool).await;
    let_most_of_a_ttl_pass(h, &pool).await;
    not_serving(&failed(h.rebuild().rebuild_finish(bucket, NEXT, None).await), bucket);

    rebuilt(h, &pool, NEXT + 1, &[]).await;
    h.know(bucket, NEXT + 1).await;
    pool.claim("ann").await.admitted();
}

/// Only a served bucket can end the session, so a refusal would come again at every rebuild.
pub async fn a_short_ttl_refuses_no_rebuild(h: &impl Rebuildable) {
    let pool = h.pool(seats(1)).await.after(|terms| terms.ttl = Span::from_secs(10));
    begins_with_one_session(h, &pool).await;
    let_most_of_a_ttl_pass(h, &pool).await;
    h.rebuild().rebuild_finish(pool.bucket(), NEXT, None).await.expect("the bucket is served");
    h.know(pool.bucket(), NEXT).await;
    h.let_pass(pool.ttl()).await;
    pool.claim("bob").await.admitted();
}

/// Begins a rebuild, and fills the bucket with a session.
async fn begins_with_one_session(h: &impl Rebuildable, pool: &TestPool) {
    let held = held_since_long(h, pool, "ann", 1).await;
    let (rebuild, bucket) = (h.rebuild(), pool.bucket());
    begin(h, bucket, NEXT).await;
    rebuild.rebuild_clear(bucket, NEXT, RegistryTime::default()).await.expect("a bucket can be emptied");
    let live = [Session { ttl: pool.ttl(), ..held }];
    let filling = Filling { pool: &pool.id, seq: 1, terms: Some(pool.terms()), live: &live };
    rebuild.rebuild_fill(NEXT, filling).await.expect("a pool can be filled");
}

pub async fn a_rebuilt_bucket_is_not_earlier_than_the_record(h: &impl Rebuildable) {
    let pool = h.pool(seats(1)).await;
    let on_record = h.now().await + Span::from_secs(90);
    let (rebuild, bucket) = (h.rebuild(), pool.bucket());
    begin(h, bucket, NEXT).await;
    rebuild.rebuild_clear(bucket, NEXT, on_record).await.expect("a bucket can be emptied");
    let ann = held_since_long(h, &pool, "ann", 1).await;
    let filling = Filling { pool: &pool.id, seq: 1, terms: Some(pool.terms()), live: &[ann] };
    rebuild.rebuild_fill(NEXT, filling).await.expect("a pool can be filled");
    rebuild.rebuild_finish(bucket, NEXT, None).await.expect("a bucket can be served again");
    h.know(bucket, NEXT).await;
    assert!(pool.view().await.sessions[0].session.last_heartbeat >= on_record);
    pool.end_all(EndReason::Revoked).await;
    let started = pool.claim("bob").await.admitted().session.started;
    assert!(started >= on_record, "{started:?} {on_record:?}");
}

/// The last session of a bucket may have ended at the latest time on record.
pub async fn a_bucket_rebuilt_without_pools_is_not_earlier_than_the_record(h: &impl Rebuildable) {
    let pool = h.pool(seats(1)).await;
    let on_record = h.now().await + Span::from_secs(90);
    let (rebuild, bucket) = (h.rebuild(), pool.bucket());
    begin(h, bucket, NEXT).await;
    rebuild.rebuild_clear(bucket, NEXT, on_record).await.expect("a bucket can be emptied");
    rebuild.rebuild_finish(bucket, NEXT, None).await.expect("a bucket can be served again");
    h.know(bucket, NEXT).await;
    pool.open(1, Vec::new()).await;
    let started = pool.claim("ann").await.admitted().session.started;
    assert!(started >= on_record, "{started:?} {on_record:?}");
}

pub async fn the_conditions_tell_how_each_bucket_is(h: &impl Rebuildable) {
    let pool = h.pool(seats(1)).await;
    let bucket = pool.bucket();
    let state = async || {
        let conditions = h.rebuild().conditions().await;
        let all: Vec<_> = conditions.iter().map(|condition| condition.bucket).collect();
        assert_eq!(all, Bucket::all().collect::<Vec<_>>());
        conditions.into_iter().find(|condition| condition.bucket == bucket).map(|condition| condition.state)
    };
    assert!(matches!(state().await, Some(State::Serving { epoch: BEFORE, .. })));
    begin(h, bucket, NEXT).await;
    assert_eq!(state().await, Some(State::Rebuilding { epoch: NEXT }));
    rebuilt(h, &pool, NEXT, &[]).await;
    assert!(matches!(state().await, Some(State::Serving { epoch: NEXT, .. })));
    h.know(bucket, NEXT).await;
}

/// Rebuilds the bucket of a pool with the given pools: number of the last event, pool, and a session.
async fn rebuilt(h: &impl Rebuildable, pool: &TestPool, epoch: u64, filled: &[(u64, &TestPool, Session)]) {
    let (rebuild, bucket) = (h.rebuild(), pool.bucket());
    begin(h, bucket, epoch).await;
    rebuild.rebuild_clear(bucket, epoch, RegistryTime::default()).await.expect("a bucket can be emptied");
    for (seq, pool, session) in filled {
        let live = std::slice::from_ref(session);
        let filling = Filling { pool: &pool.id, seq: *seq, terms: Some(pool.terms()), live };
        rebuild.rebuild_fill(epoch, filling).await.expect("a pool can be filled");
    }
    if filled.is_empty() {
        let filling = Filling { pool: &pool.id, seq: 0, terms: Some(pool.terms()), live: &[] };
        rebuild.rebuild_fill(epoch, filling).await.expect("a pool can be filled");
    }
    rebuild.rebuild_finish(bucket, epoch, None).await.expect("a bucket can be served again");
}

async fn begin(h: &impl Rebuildable, bucket: Bucket, epoch: u64) {
    h.rebuild().rebuild_begin(bucket, epoch).await.expect("a rebuild can begin");
}

#[track_caller]
fn failed<T: std::fmt::Debug>(result: Result<T, Error>) -> Error {
    result.expect_err("there should be no answer")
}

#[track_caller]
fn not_serving(error: &Error, asked: Bucket) {
    assert!(matches!(error, Error::NotServing { bucket } if *bucket == asked), "{error:?}");
}
