//! Tests of a claim that reaches Redis twice.

use std::sync::Arc;

use seatkeeper_core::{
    Claim, EndReason, Origin, Particulars, Policy, PoolId, PoolKind, RegistryTime, Seats, Span, Standing,
    Terms, Tier, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_redis::Servers;
use seatkeeper_testbed::redis::Redis;

use super::LocationHints;
use crate::contract::{Admission as _, Answer, Claimed, Request};
use crate::redis::session_location::LocationHint;
use crate::redis::{NoRecord, RedisRegistry, Settings};
use crate::{Epochs, Rebuild as _};

const EPOCH: u64 = 1;

const TERMS: Terms =
    Terms { version: 1, limit: Seats(3), ttl: Span::from_secs(60), ends_at: None, standing: Standing::Open };

async fn registry(server: &Redis, pool: &PoolId) -> RedisRegistry {
    let epochs = Arc::new(Epochs::default());
    let servers = Servers::new(server.url().parse().expect("a URL"));
    let registry = RedisRegistry::new(servers, Settings::default(), Arc::clone(&epochs), Arc::new(NoRecord));
    while registry.rebuild_begin(pool.bucket(), EPOCH).await.is_err() {}
    registry.rebuild_clear(pool.bucket(), EPOCH, RegistryTime::default()).await.expect("it has begun");
    registry.rebuild_finish(pool.bucket(), EPOCH, None).await.expect("it has begun");
    epochs.set(pool.bucket(), EPOCH);
    registry.open(pool, 0, None, Vec::new()).await.expect("it can be opened");
    registry
}

/// After a broken connection the node sends a claim again, and the server runs both in one millisecond. Calls
/// of one command have equal times, so the test sends both claims in one command.
#[tokio::test]
async fn a_claim_that_is_carried_out_twice_at_once_starts_two_sessions() {
    let server = Redis::start();
    let pool = PoolId::new(PoolKind::Subscriber, "acme".into(), "viewer");
    let registry = registry(&server, &pool).await;
    let claim =
        Claim { holder: "tv".into(), user: "ann".into(), tier: Tier(1), session: None, replace: None };
    let policy = Policy {
        terms: Some(TERMS),
        ttl_default: TERMS.ttl,
        when_named: WhenNamed::SameDevice,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Supersede,
    };
    let (origin, particulars) = (&Origin::SYSTEM, &Particulars::default());
    let request = Request { pool: &pool, claim: &claim, policy: &policy, origin, particulars };
    let call = registry.claim_call(
        request,
        &LocationHints { session: LocationHint::Unknown, replace: LocationHint::Unknown },
    );

    let mut sessions = Vec::new();
    for reply in registry.call_together(&[call.clone(), call]).await {
        let claimed = registry.claimed(request, reply.expect("it is carried out")).expect("it can be read");
        let Some(Claimed { answer: Answer::Granted { session, ended, .. }, .. }) = claimed else {
            panic!("{claimed:?}");
        };
        sessions.push((session.session.id, session.session.started, ended));
    }
    let [(first, began, _), (second, began_again, ended)] = &sessions[..] else { panic!("{sessions:?}") };
    assert_eq!(began, began_again);
    assert_ne!(first, second);
    assert_eq!(*ended, [(*first, EndReason::Superseded)]);
}
