use super::{Authority, Reach};
use crate::{Bucket, PoolId, PoolKind, Region, RegistryTime, Session, SessionId, Span, Tier, UserId, Users};

fn authority(tenant: &str, reach: Reach) -> Authority {
    Authority { tenant: tenant.into(), reach }
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
