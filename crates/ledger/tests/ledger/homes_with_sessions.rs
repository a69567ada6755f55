//! Sessions that come along with a home or a license of a lost region.

use std::collections::BTreeSet;
use std::convert::Infallible;

use seatkeeper_core::{Change, EndReason, Particulars, PoolId, Session, Span, Terms};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::verify::Verdict;

use crate::homes::{LOST, NOW, OWN, SECOND, TARGET, end};
use crate::story::{Story, TTL, ledger, licensed, tenant};

async fn admit_kept(ledger: &Ledger, pool: &PoolId, terms: Terms) {
    let Ok(()) =
        ledger.adopt_sessions(pool, terms, async { Ok::<_, Infallible>(NOW + SECOND) }).await.unwrap();
}

/// Admits a session to a story of another ledger.
fn held_elsewhere(story: &mut Story, machine: &str) -> (Session, Particulars) {
    let (_, event) = story.admit(machine);
    let Change::Admitted { session, particulars, .. } = event.change else { panic!("an admission") };
    (*session, *particulars)
}

#[tokio::test]
async fn no_kept_session_outlasts_its_pool_s_opening_or_the_adoption() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 9).await;
    let (pool, mut story, terms) = (license.pool(), Story::new(&license), license.terms(SECOND));
    let held: Vec<_> = (0..4).map(|number| held_elsewhere(&mut story, &format!("m{number}"))).collect();
    let adoption = ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap().unwrap();
    let live = async || ledger.pool_head(&pool).await.unwrap().sessions.len();

    ledger.keep_arriving_sessions(LOST, &pool, &held[..1]).await.unwrap();
    ledger.drop_arriving_sessions(&pool).await.unwrap();
    admit_kept(&ledger, &pool, terms).await;
    assert_eq!(live().await, 0);

    // The end of the adoption deletes the sessions from the lost region alone.
    for (lost, held) in [(LOST, &held[1..3]), (TARGET, &held[3..])] {
        ledger.keep_arriving_sessions(lost, &pool, held).await.unwrap();
    }
    end(&ledger, &adoption, &[]).await;
    admit_kept(&ledger, &pool, terms).await;
    assert_eq!(live().await, 1);
}

#[tokio::test]
async fn of_thousands_of_sessions_the_newest_that_are_not_on_record_are_taken_over() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 3_000).await;
    let (pool, mut story, mut arriving) = (license.pool(), Story::new(&license), Vec::new());
    // Of the sessions on record here, one is live and two are over.
    for machine in ["m1", "m2", "m3"] {
        let (id, event) = story.admit(machine);
        let Change::Admitted { session, particulars, .. } = event.change.clone() else {
            panic!("an admission")
        };
        arriving.push((*session, *particulars));
        ledger.apply(&[event]).await.unwrap();
        if machine != "m1" {
            ledger.apply(&[story.end(id, EndReason::Released)]).await.unwrap();
        }
    }
    let on_record = arriving.clone();
    let mut elsewhere = Story::new(&license);
    for number in 0..4_000 {
        elsewhere.pass(Span::from_millis(1));
        arriving.push(held_elsewhere(&mut elsewhere, &format!("n{number}")));
    }
    let newest: BTreeSet<_> =
        arriving[arriving.len() - 2_999..].iter().map(|(session, _)| session.id).collect();
    // The oldest heartbeats arrive first, behind the sessions on record, whose heartbeats are the newest.
    for (session, _) in &mut arriving[..3] {
        session.last_heartbeat = elsewhere.now + SECOND;
    }
    ledger.keep_arriving_sessions(LOST, &pool, &arriving).await.unwrap();
    admit_kept(&ledger, &pool, license.terms(SECOND)).await;
    let live = ledger.pool_head(&pool).await.unwrap().sessions;
    let live: BTreeSet<_> = live.iter().map(|session| session.id).collect();
    assert_eq!(live.len(), 3_000);
    assert!(live.is_superset(&newest) && live.contains(&on_record[0].0.id));
    let verdict = ledger.verify(|_| {}).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");
}

#[tokio::test]
async fn a_license_of_a_lost_region_goes_on_with_its_sessions() {
    let (_lost, from) = ledger().await;
    let (_place, into) = ledger().await;
    let license = licensed(&from, 2).await;
    assert_eq!(from.tenants_of_anchor(LOST).await.unwrap(), [(tenant(), None)]);
    let mut story = Story::new(&license);
    let sessions: Vec<_> =
        ["m1", "m2", "m3"].into_iter().map(|machine| held_elsewhere(&mut story, machine)).collect();
    let terms = license.terms(SECOND);
    for is_repeated in [false, true] {
        let adopted = into.adopt_license(license.clone(), &[], NOW).await.unwrap();
        assert_eq!((adopted.id, &adopted.key, adopted.version), (license.id, &license.key, 1));
        for arriving in sessions.chunks(2) {
            // A restart between two messages opens no pool with a part of the sessions.
            let live = into.pool_head(&license.pool()).await.unwrap().sessions.len();
            assert!(live == 0 || is_repeated, "{live}");
            into.keep_arriving_sessions(LOST, &license.pool(), arriving).await.unwrap();
        }
        // Without the registry's time nothing changes.
        let failed = into.adopt_sessions(&license.pool(), terms, async { Err("no time") }).await.unwrap();
        assert_eq!(failed, Err("no time"));
        admit_kept(&into, &license.pool(), terms).await;
        // No more sessions than seats are taken over.
        assert_eq!(into.pool_head(&license.pool()).await.unwrap().sessions.len(), 2);
    }
    assert_eq!(into.longest_ttl().await.unwrap(), TTL);
    let verdict = into.verify(|_| {}).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");
}
