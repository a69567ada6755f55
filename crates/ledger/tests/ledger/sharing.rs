//! Several nodes use one ledger at the same time.

use std::collections::BTreeSet;

use futures_util::TryStreamExt as _;
use seatkeeper_core::{Change, EndReason, Event, LatestHeartbeat, RegistryTime, Seats, SessionId, Span};
use seatkeeper_ledger::licenses::LicenseChange;
use seatkeeper_ledger::verify::Verdict;
use seatkeeper_ledger::{Effect, Error, Idempotency, Write};
use sqlx::Executor as _;

use crate::story::{START, Story, admin, by, ledger, licensed, named, new_license, new_plan, tenant};

const NODES: usize = 3;

/// Returns the events of pools with holders coming and going by a fixed seed, in registry order.
fn lived_in(stories: &mut [Story], mut seed: u64) -> Vec<Event> {
    let mut held = vec![Vec::new(); stories.len()];
    let mut events = Vec::new();
    for n in 0..3_000_u64 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = (seed >> 33) as usize % stories.len();
        let (story, held) = (&mut stories[at], &mut held[at]);
        story.pass(Span::from_millis(seed >> 60));
        if (seed >> 40).is_multiple_of(3) && !held.is_empty() {
            events.push(story.end(held.remove((seed >> 44) as usize % held.len()), EndReason::Released));
        } else {
            let (id, event) = story.admit(&format!("device-{n}"));
            held.push(id);
            events.push(event);
        }
    }
    events
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_apply_the_same_events_at_once_record_each_once() {
    let (place, ledger) = ledger().await;
    let mut stories = Vec::new();
    for _ in 0..20 {
        stories.push(Story::new(&licensed(&ledger, 1_000_000).await));
    }
    let events = lived_in(&mut stories, 0x5eed);
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let (node, events) = (place.another(&ledger).await, events.clone());
        nodes.push(tokio::spawn(async move {
            // Each node cuts the events into batches of a different size, and repeats some events.
            let size = 50 + 37 * number;
            let mut from = 0;
            while from < events.len() {
                let to = (from + size).min(events.len());
                node.apply(&events[from.saturating_sub(size / 3)..to]).await.unwrap();
                from = to;
            }
        }));
    }
    for node in nodes {
        node.await.unwrap();
    }
    let verdict = ledger.verify(|_| ()).await.unwrap();
    let Verdict::Proven(proof) = verdict else { panic!("{verdict:?}") };
    assert_eq!(proof.records, 20 + events.len() as u64, "each license has a record, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_that_apply_flush_and_read_do_not_get_in_each_others_way() {
    let (place, ledger) = ledger().await;
    let mut nodes = Vec::new();
    for number in 0..NODES {
        let mut stories = Vec::new();
        for _ in 0..20 {
            stories.push(Story::new(&licensed(&ledger, 1_000_000).await));
        }
        let node = place.another(&ledger).await;
        nodes.push(tokio::spawn(async move {
            let events = lived_in(&mut stories, 0xf1005 + number as u64);
            let ids: Vec<_> = events.iter().filter_map(session_of).collect();
            for (n, batch) in events.chunks(100).enumerate() {
                let now = RegistryTime::from_millis(START.as_millis() + 1_000_000 + n as u64);
                let beat = |&session| LatestHeartbeat { session, at: now, ttl: Span::from_secs(90) };
                let beats: Vec<_> = ids.iter().rev().map(beat).collect();
                let (applied, flushed) = tokio::join!(node.apply(batch), node.flush_heartbeats(&beats));
                applied.unwrap();
                flushed.unwrap();
            }
            events.len()
        }));
    }
    let mut events = 0;
    for node in nodes {
        events += node.await.unwrap();
    }
    let verdict = ledger.verify(|_| ()).await.unwrap();
    let Verdict::Proven(proof) = verdict else { panic!("{verdict:?}") };
    assert_eq!(proof.records as usize, 20 * NODES + events);
}

fn session_of(event: &Event) -> Option<SessionId> {
    match &event.change {
        Change::Admitted { session, .. } => Some(session.id),
        Change::Ended { .. } | Change::Denied(_) => None,
    }
}

#[tokio::test]
async fn an_event_that_would_leave_a_gap_is_refused() {
    let (_place, ledger) = ledger().await;
    let (mut story, mut other) =
        (Story::new(&licensed(&ledger, 9).await), Story::new(&licensed(&ledger, 9).await));
    let (a, b, c) = (story.admit("one").1, story.admit("two").1, story.admit("three").1);
    let (x, y) = (other.admit("one").1, other.admit("two").1);
    for (batch, seq) in [(vec![x.clone(), b.clone()], 2), (vec![a.clone(), x.clone(), c.clone()], 3)] {
        let refused = ledger.apply(&batch).await;
        let Err(Error::Contradiction { pool, seq: at }) = refused else { panic!("{refused:?}") };
        assert_eq!((*pool, at), (story.pool.clone(), seq));
    }
    assert_eq!(ledger.pool_seq(&story.pool).await.unwrap(), 0);
    ledger.apply(&[a.clone(), x, b]).await.unwrap();
    ledger.apply(&[a, c, y]).await.unwrap();
    assert_eq!(ledger.pool_seq(&story.pool).await.unwrap(), 3);
}

#[tokio::test]
async fn the_live_sessions_of_a_bucket_and_of_a_pool_are_read_with_its_number() {
    let (_place, ledger) = ledger().await;
    let mut stories = Vec::new();
    for _ in 0..5 {
        stories.push(Story::new(&licensed(&ledger, 9).await));
    }
    for story in &mut stories {
        let (gone, began) = story.admit("gone");
        ledger.apply(&[began, story.end(gone, EndReason::Released), story.admit("stays").1]).await.unwrap();
    }
    let all: Vec<_> = ledger.live_sessions().try_collect().await.unwrap();
    assert_eq!(all.len(), 5);
    for live in all {
        let bucket = live.pool.bucket();
        let found = ledger.live_sessions_in(bucket).await.unwrap();
        assert!(found.contains(&live) && found.iter().all(|found| found.pool.bucket() == bucket));
        assert_eq!((live.seq, ledger.pool_head(&live.pool).await.unwrap()), (3, live));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_is_asked_for_many_times_at_once_is_made_once() {
    let (place, ledger) = ledger().await;
    let nodes = [place.another(&ledger).await, place.another(&ledger).await];
    // Later rounds use open connections, so the concurrent writes meet at the same statement.
    for round in 0..20 {
        let mut asking = Vec::new();
        for asked in 0..8 {
            let node = nodes[asked % 2].clone();
            asking.push(tokio::spawn(async move {
                let origin = admin();
                let key = |what: &str| Idempotency { key: format!("{what}-{round}"), request_hash: vec![1] };
                let (license, plan) = (key("license"), key("plan"));
                let write = |key| Write { idempotency: Some(key), ..by(&origin) };
                let new = new_license(&format!("KEY-{round}"), 3);
                let made = node.create_license(new, write(&license)).await.unwrap();
                let new = new_plan(&format!("plan-{round}"), 3);
                let planned = node.create_plan(new, write(&plan)).await.unwrap();
                (made.value.id, [made.effect, planned.effect])
            }));
        }
        let (mut ids, mut effects) = (BTreeSet::new(), Vec::new());
        for asked in asking {
            let (id, told) = asked.await.unwrap();
            ids.insert(id);
            effects.extend(told);
        }
        assert_eq!(ids.len(), 1);
        assert_eq!(effects.iter().filter(|effect| **effect == Effect::Changed).count(), 2);
        assert_eq!(effects.iter().filter(|effect| **effect == Effect::Replayed).count(), 14);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_many_nodes_have_a_version_each() {
    let (place, ledger) = ledger().await;
    let license = licensed(&ledger, 1).await;
    ledger.create_plan(new_plan("family", 1), by(&admin())).await.unwrap();
    let mut changing = Vec::new();
    for node in 0..8_u32 {
        let (ledger, id) = (place.another(&ledger).await, license.id);
        changing.push(tokio::spawn(async move {
            let origin = admin();
            for n in 1..=5 {
                let seats = Some(Seats(100 * n + node));
                let change = LicenseChange { max_seats: seats, ..LicenseChange::default() };
                ledger.update_license(&tenant(), id, &change, by(&origin)).await.unwrap();
                let change =
                    seatkeeper_ledger::plans::PlanChange { device_limit: seats, ..Default::default() };
                ledger.update_plan(&tenant(), &named("family"), change, by(&origin)).await.unwrap();
            }
        }));
    }
    for change in changing {
        change.await.unwrap();
    }
    assert_eq!(ledger.license(&tenant(), license.id).await.unwrap().unwrap().version, 41);
    let verdict = ledger.verify(|_| ()).await.unwrap();
    let Verdict::Proven(proof) = verdict else { panic!("{verdict:?}") };
    assert_eq!(proof.records, 2 * 41);
}

#[tokio::test]
async fn a_node_older_than_a_column_of_the_audit_log_still_records_events() {
    let (place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 3).await);
    let (first, began) = story.admit("one");
    assert_eq!(ledger.apply(&[began]).await.unwrap(), [true]);

    place.connect().await.execute("ALTER TABLE audit_log ADD COLUMN of_a_newer_program TEXT").await.unwrap();
    let (second, began) = story.admit("two");
    let ended = story.end(first, EndReason::Released);
    assert_eq!(ledger.apply(&[began, ended]).await.unwrap(), [true, true]);
    assert_eq!(ledger.session(second).await.unwrap().unwrap().ended, None);
    assert!(ledger.session(first).await.unwrap().unwrap().ended.is_some());
}
