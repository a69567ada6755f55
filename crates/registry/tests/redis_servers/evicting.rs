//! A limit lowered by thousands delays no other caller: a script ends a bounded number of sessions.

use seatkeeper_core::{
    Claim, Origin, Particulars, Policy, PoolId, PoolKind, Region, RegistryTime, Seats, Session, SessionId,
    Span, Standing, Terms, Tier, Users, WhenFull, WhenHeld, WhenNamed,
};
use seatkeeper_registry::redis::Settings;
use seatkeeper_registry::{Admission as _, Error, Pools as _, Request};
use seatkeeper_testbed::redis::Redis;

use crate::node::Node;

const DEVICES: u64 = 3_000;

/// Maximum number of sessions ended by one script: 256 expired and 256 evicted.
const ENDS_MAX: u32 = 512;

/// Bound of the journal, filled by the second step of the claim.
const JOURNAL_EVENTS_MAX: usize = 257;

fn terms(version: u64, limit: u32) -> Terms {
    let ttl = Span::from_secs(3_600);
    Terms { version, limit: Seats(limit), ttl, ends_at: None, standing: Standing::Open }
}

#[tokio::test]
async fn one_script_evicts_a_bounded_number_and_nobody_is_admitted_before_the_last() {
    let redis = Redis::start();
    let settings = Settings { journal_events_max: JOURNAL_EVENTS_MAX, ..Settings::default() };
    let node = Node::with(redis.url().parse().expect("a URL"), settings).await;
    let pool = PoolId::new(PoolKind::Subscriber, "acme".into(), "household");
    let live = (1..=DEVICES).map(|number| device(&pool, number)).collect();
    node.registry.open(&pool, DEVICES, Some(terms(1, DEVICES as u32)), live).await.expect("a pool");

    let claim =
        Claim { holder: "new".into(), user: "new".into(), tier: Tier(1), session: None, replace: None };
    let policy = Policy {
        terms: Some(terms(2, 2)),
        ttl_default: Span::from_secs(3_600),
        when_named: WhenNamed::SameDevice,
        when_full: WhenFull::Evict,
        when_held: WhenHeld::Supersede,
    };
    let (origin, particulars) = (&Origin::SYSTEM, &Particulars::default());
    let request = Request { pool: &pool, claim: &claim, policy: &policy, origin, particulars };
    // The journal has room for the first steps only, and so shows the progress of the claim.
    let refused = node.registry.claim(request).await;
    assert!(matches!(refused, Err(Error::JournalFull { .. })), "{refused:?}");
    let view = node.registry.view(&pool, 1).await.expect("it is open");
    let ended = DEVICES as u32 - view.live;
    assert!(ended > 0 && ended <= JOURNAL_EVENTS_MAX as u32 + ENDS_MAX, "{ended} ended");
}

fn device(pool: &PoolId, number: u64) -> Session {
    let started = RegistryTime::from_millis(1_700_000_000_000 + number);
    let name = format!("device {number}");
    Session {
        id: SessionId::mint(started, pool.bucket(), Region::default(), number),
        holder: name.as_str().into(),
        users: Users::one(name.as_str().into()),
        started,
        last_heartbeat: started,
        ttl: Span::from_secs(3_600),
        tier: Tier(1),
    }
}
