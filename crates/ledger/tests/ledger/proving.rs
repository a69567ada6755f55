//! Verification proves an untouched ledger, and finds tampering.

use seatkeeper_core::{EndReason, Seats};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::audit::Stream;
use seatkeeper_ledger::licenses::LicenseChange;
use seatkeeper_ledger::verify::{Breach, Verdict};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::place::TestLedger;
use crate::story::{Story, admin, by, ledger, licensed, subscribed, tenant};

type Expected = fn(&Breach) -> bool;

/// Fills three pools with sessions, some of them ended.
async fn lived_in(ledger: &Ledger) {
    let mut events = Vec::new();
    subscribed(ledger, "ann", "standard").await;
    let ann = Story::of_subscriber(ledger, "ann").await;
    for mut story in [Story::new(&licensed(ledger, 2).await), Story::new(&licensed(ledger, 2).await), ann] {
        let (one, began) = story.admit("one");
        events.extend([began, story.admit("two").1, story.end(one, EndReason::Released)]);
        events.push(story.admit("three").1);
    }
    ledger.apply(&events).await.unwrap();
}

/// Changes a row directly in the database, bypassing the ledger.
async fn tamper(place: &TestLedger, statement: &'static str) {
    let mut connection = place.connect_unguarded().await;
    assert_eq!(connection.execute(statement).await.unwrap().rows_affected(), 1, "{statement}");
}

#[tokio::test]
async fn an_untouched_ledger_proves_itself_pool_by_pool() {
    let (_place, ledger) = ledger().await;
    lived_in(&ledger).await;
    let mut heard = Vec::new();
    let verdict = ledger.verify(|proof| heard.push(proof.records)).await.unwrap();
    let Verdict::Proven(proof) = verdict else { panic!("{verdict:?}") };
    assert_eq!((proof.pools, proof.records, proof.admissions, proof.ends, proof.live), (3, 15, 9, 3, 6));
    assert_eq!(heard, [5, 10, 15]);
}

#[tokio::test]
async fn records_that_are_missing_at_the_end_of_a_stream_are_found() {
    let last = "SELECT session_id FROM audit_log WHERE pool_kind = 'subscriber' AND stream = 'session'
        ORDER BY seq DESC LIMIT 1";
    let cases = [
        // The last admission and its session.
        (
            vec![
                format!("DELETE FROM sessions WHERE id = ({last})"),
                "DELETE FROM audit_log WHERE pool_kind = 'subscriber' AND stream = 'session' AND seq = 4"
                    .into(),
            ],
            Breach::HeadDiffers { stream: Stream::Session, recorded: 3, head: 4 },
        ),
        // The whole session stream of a subscriber.
        (
            vec![
                "DELETE FROM sessions WHERE pool_kind = 'subscriber'".into(),
                "DELETE FROM audit_log WHERE pool_kind = 'subscriber' AND stream = 'session'".into(),
            ],
            Breach::HeadDiffers { stream: Stream::Session, recorded: 0, head: 4 },
        ),
        // A deleted head. Otherwise the next missing record of the stream would go unnoticed.
        (
            vec!["DELETE FROM audit_heads WHERE pool_kind = 'subscriber' AND stream = 'session'".into()],
            Breach::HeadDiffers { stream: Stream::Session, recorded: 4, head: 0 },
        ),
        // The last change of a license, not named by any admission.
        (
            vec!["DELETE FROM audit_log WHERE action = 'license_updated'".into()],
            Breach::HeadDiffers { stream: Stream::Entitlement, recorded: 1, head: 2 },
        ),
    ];
    for (statements, expected) in cases {
        let (place, ledger) = ledger().await;
        lived_in(&ledger).await;
        let license = licensed(&ledger, 2).await;
        let change = LicenseChange { max_seats: Some(Seats(3)), ..LicenseChange::default() };
        ledger.update_license(&tenant(), license.id, &change, by(&admin())).await.unwrap();
        let mut connection = place.connect().await;
        for statement in statements {
            connection.execute(AssertSqlSafe(statement)).await.unwrap();
        }
        let verdict = ledger.verify(|_| ()).await.unwrap();
        let Verdict::Broken(finding) = verdict else { panic!("{expected}: {verdict:?}") };
        assert_eq!(finding.breach, expected, "{finding}");
    }
}

#[tokio::test]
async fn a_ledger_that_was_tampered_with_is_found_out() {
    let cases: [(&str, Expected); 5] = [
        ("UPDATE audit_log SET live = 1 WHERE id = (SELECT MAX(id) FROM audit_log)", |breach| {
            matches!(breach, Breach::LiveMiscounted { told: 1, .. })
        }),
        (
            "DELETE FROM audit_log WHERE id = (SELECT MIN(id) FROM audit_log WHERE action = 'ended')",
            |breach| matches!(breach, Breach::Gap { .. }),
        ),
        (
            "UPDATE audit_log SET limit_seats = 1
             WHERE id = (SELECT MIN(id) FROM audit_log WHERE action = 'license_created')",
            |breach| matches!(breach, Breach::LimitNotGranted { granted: Some(1), .. }),
        ),
        (
            "UPDATE sessions SET ended_at = NULL, end_reason = NULL, holder = 'x'
             WHERE id = (SELECT id FROM sessions WHERE ended_at IS NOT NULL LIMIT 1)",
            |breach| matches!(breach, Breach::Differs),
        ),
        ("DELETE FROM sessions WHERE id = (SELECT id FROM sessions ORDER BY id LIMIT 1)", |breach| {
            matches!(breach, Breach::SessionsMissing { missing: 1 })
        }),
    ];
    for (statement, expected) in cases {
        let (place, ledger) = ledger().await;
        lived_in(&ledger).await;
        tamper(&place, statement).await;
        let verdict = ledger.verify(|_| ()).await.unwrap();
        let Verdict::Broken(finding) = verdict else { panic!("{statement}: {verdict:?}") };
        assert!(expected(&finding.breach), "{statement}: {finding}");
    }
}
