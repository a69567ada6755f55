//! The content of a group's members: a member differs from the host from its first different report on.

use seatkeeper_core::{Bucket, Region, RegistryTime, SessionId, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::group_contents::ContentReport;

use crate::story::ledger;

fn id(entropy: u64) -> SessionId {
    SessionId::mint(RegistryTime::from_millis(1), Bucket::all().next().unwrap(), Region::default(), entropy)
}

/// Reports the content of a member at a second, with member 1 as the host. Returns the seconds of difference.
async fn report(ledger: &Ledger, member: u64, content: Option<&str>, second: u64) -> Option<u64> {
    let at = RegistryTime::from_millis(0) + Span::from_secs(second);
    let report = ContentReport { member: id(member), host: id(1), content, at, ttl: Span::from_secs(60) };
    ledger.report_group_content(report).await.unwrap().map(Span::as_secs_floor)
}

#[tokio::test]
async fn a_member_differs_from_its_first_different_report_on_and_a_host_never() {
    let (_place, ledger) = ledger().await;
    assert_eq!(report(&ledger, 2, Some("film"), 0).await, Some(0), "the host has named none");
    assert_eq!(report(&ledger, 1, Some("film"), 10).await, None);
    assert_eq!(report(&ledger, 2, Some("film"), 20).await, None);
    assert_eq!(report(&ledger, 2, Some("other"), 30).await, Some(0));
    assert_eq!(report(&ledger, 2, Some("third"), 50).await, Some(20), "different content all along");
    assert_eq!(report(&ledger, 2, None, 89).await, Some(59), "no content is no way out");
    assert_eq!(report(&ledger, 2, None, 90).await, Some(60));
    assert_eq!(report(&ledger, 2, Some("film"), 91).await, None);
    assert_eq!(report(&ledger, 1, Some("serial"), 100).await, None);
    assert_eq!(report(&ledger, 2, Some("film"), 110).await, Some(0), "the host has moved on");
    assert_eq!(report(&ledger, 1, None, 120).await, None);
    assert_eq!(report(&ledger, 3, None, 130).await, Some(0), "two without content do not agree");
    let kept = [ledger.group_content(id(1)).await.unwrap(), ledger.group_content(id(2)).await.unwrap()];
    assert_eq!(kept, [None, Some("film".to_owned())]);
}

#[tokio::test]
async fn a_difference_counts_from_anew_after_a_pause() {
    let (_place, ledger) = ledger().await;
    report(&ledger, 1, Some("film"), 0).await;
    assert_eq!(report(&ledger, 2, Some("other"), 0).await, Some(0));
    assert_eq!(report(&ledger, 2, Some("other"), 50).await, Some(50));
    assert_eq!(report(&ledger, 2, Some("other"), 110).await, Some(110), "a pause of the TTL counts");
    assert_eq!(report(&ledger, 2, Some("other"), 171).await, Some(0), "a longer pause does not");
}
