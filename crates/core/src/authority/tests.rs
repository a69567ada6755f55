//! Tests of ownership checks.

use super::{Authority, Reach};
use crate::{Bucket, PoolId, PoolKind, Region, RegistryTime, Session, SessionId, Span, Tier, UserId, Users};

fn authority(tenant: &str, reach: Reach) -> Authority {
    Authority::new(tenant.into(), reach)
}

fn session_of(users: &[&str]) -> Session {
    let mut shared = Users::one(users[0].into());
    users.iter().for_each(|&user| shared.join(&UserId::from(user)));
    let now = RegistryTime::default();
    Session {
        id: SessionId::mint(now, Bucket::new(0).unwrap(), Region::default(), 0),
        holder: "machine".into(),
        users: shared,
        started: now,
        last_heartbeat: now,
        ttl: Span::from_secs(1),
        tier: Tier(0),
    }
}

#[test]
fn a_session_is_its_users_and_their_tenants_admins() {
    let pool = PoolId::new(PoolKind::License, "acme".into(), "photo");
    let session = session_of(&["ann", "bob"]);
    let covered = [
        authority("acme", Reach::Own("ann".into())),
        authority("acme", Reach::Own("bob".into())),
        authority("acme", Reach::Tenant),
    ];
    let foreign = [
        authority("acme", Reach::Own("eve".into())),
        authority("globex", Reach::Own("ann".into())),
        authority("globex", Reach::Tenant),
    ];
    assert!(covered.iter().all(|who| who.covers(&pool, &session)));
    assert!(!foreign.iter().any(|who| who.covers(&pool, &session)));
}

#[test]
fn who_comes_for_one_kind_finds_no_other() {
    let session = session_of(&["ann"]);
    let ann = || authority("acme", Reach::Own("ann".into())).through(PoolKind::Subscriber);
    let pool = |kind| PoolId::new(kind, "acme".into(), "ann");
    assert!(ann().covers(&pool(PoolKind::Subscriber), &session));
    assert!(!ann().covers(&pool(PoolKind::License), &session));
    assert!(!ann().covers(&pool(PoolKind::Capacity), &session));
}

#[test]
fn a_service_abroad_finds_what_it_acquired_and_nothing_else() {
    let pool = PoolId::new(PoolKind::Capacity, "acme".into(), "ann/photo");
    let robot = UserId::from("robot");
    let abroad = UserId::from_abroad(&"globex".into(), &robot);
    let service =
        Authority { abroad: Some(abroad.clone()), ..authority("globex", Reach::Own(robot.clone())) };
    let acquired = session_of(&[abroad.as_str()]);
    assert!(service.covers(&pool, &acquired));
    assert!(!service.covers(&pool, &session_of(&["ann"])));
    assert!(!service.covers(&pool, &session_of(&["robot"])), "a namesake of the other tenant");
    assert!(!authority("acme", Reach::Own(robot)).covers(&pool, &acquired));
    assert!(!authority("globex", Reach::Tenant).covers(&pool, &acquired), "an admin of the service's tenant");
    assert!(authority("acme", Reach::Tenant).covers(&pool, &acquired), "an admin of the session's tenant");
}
