//! Clauses on pools of groups, whose members watch together: the version of the terms is the limit.

use seatkeeper_core::{EndReason, Seats};

use super::harness::{Harness, Scene};
use super::plan::group;
use super::pool::{admin, owner};
use crate::{Ended, Heartbeat};

pub async fn a_full_group_admits_nobody_and_ends_no_member(h: &impl Harness) {
    let pool = h.pool(group(2)).await;
    let host = pool.claim("tv-home").await.admitted();
    let phone = pool.claim("phone-home").by("bob").await.admitted();
    pool.claim("tablet-home").by("eve").await.full();
    assert_eq!(pool.view().await.live, 2);
    let again = pool.claim("phone-home").by("bob").await.resumed();
    assert_eq!(again.session.id, phone.session.id, "a member that joins again stays the member that it is");
    assert_eq!(pool.end_by(&owner(&phone), host.session.id, EndReason::Released).await, Ended::Missing);
}

pub async fn the_end_of_a_screen_ends_all_members_with_its_reason(h: &impl Harness) {
    let pool = h.pool(group(8)).await;
    let host = pool.claim("tv-home").await.admitted();
    pool.claim("phone-home").by("bob").await.admitted();
    let ended = pool.end_by(&admin(), host.session.id, EndReason::GroupContent).await;
    assert!(matches!(ended, Ended::Now { reason: EndReason::GroupContent, .. }), "{ended:?}");
    assert_eq!(pool.heartbeat_by(&owner(&host), host.session.id).await, Heartbeat::Missing);
    assert_eq!(pool.end_all(EndReason::Evicted).await.count, 1);
    assert_eq!(pool.view().await.live, 0);
}

pub async fn a_larger_group_counts_from_the_next_join_on_and_a_smaller_one_for_new_groups(h: &impl Harness) {
    let pool = h.pool(group(2)).await;
    for device in ["tv-home", "phone-home"] {
        pool.claim(device).await.admitted();
    }
    let sized = |members: u32| {
        pool.after(|terms| (terms.version, terms.limit) = (u64::from(members), Seats(members)))
    };
    sized(3).claim("tablet-home").await.admitted();
    sized(2).claim("watch-home").await.full();
    assert_eq!(pool.view().await.terms.map(|terms| terms.limit), Some(Seats(3)));
}
