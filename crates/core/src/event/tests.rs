//! Tests of the names and classes of events.

use super::{Actor, EndReason, Origin};
use crate::NotNamed;
use crate::{Denial, RegistryTime};

#[test]
fn an_end_reason_reads_back_from_its_name() {
    for (reason, name) in [
        (EndReason::Released, "released"),
        (EndReason::Expired, "expired"),
        (EndReason::Evicted, "evicted"),
        (EndReason::Superseded, "superseded"),
        (EndReason::Upgraded, "upgraded"),
        (EndReason::Revoked, "revoked"),
        (EndReason::EntitlementEnded, "entitlement_ended"),
        (EndReason::GroupContent, "group_content"),
    ] {
        assert_eq!(reason.as_str(), name);
        assert_eq!(name.parse(), Ok(reason));
    }
    assert_eq!("Released".parse::<EndReason>(), Err(NotNamed("not a reason for an end")));
}

#[test]
fn a_denial_has_a_name() {
    let ended_at = RegistryTime::default();
    assert_eq!(Denial::Full { free_in: None }.as_str(), "full");
    assert_eq!(Denial::EntitlementOver { ended_at }.as_str(), "entitlement_over");
    assert_eq!(Denial::EntitlementClosed.as_str(), "entitlement_closed");
}

#[test]
fn the_systems_own_work_comes_with_no_request() {
    assert_eq!(Origin::SYSTEM, Origin { actor: Actor::System, request: None });
}

#[test]
fn time_alone_ends_what_expired_and_nothing_else() {
    let by_time: Vec<_> = EndReason::ALL.into_iter().filter(|reason| reason.is_by_time()).collect();
    assert_eq!(by_time, [EndReason::Expired]);
}
