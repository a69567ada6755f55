//! A subscriber's terms follow the changes of subscriptions and plans.

use std::collections::HashMap;

use seatkeeper_core::{RegistryTime, Seats, Span, Terms, UserId, WhenFull};
use seatkeeper_ledger::plans::{NewPlan, PlanChange};
use seatkeeper_ledger::subscriptions::{NewSubscription, Subscription, SubscriptionChange};
use seatkeeper_ledger::verify::Verdict;
use seatkeeper_ledger::{Error, Ledger, Write, Written};

use crate::story::{
    START, Story, TTL, admin, by, ledger, named, new_plan, new_subscription, planned, tenant,
};

async fn terms(ledger: &Ledger, now: RegistryTime) -> Terms {
    ledger.subscriber(&tenant(), &UserId::from("ann")).await.unwrap().entitled(now, TTL).terms
}

#[tokio::test]
async fn a_subscriber_has_what_the_newest_subscription_and_its_plan_grant() {
    let (_place, ledger) = ledger().await;
    assert_eq!(terms(&ledger, START).await.limit, Seats(1));

    let plan = NewPlan { when_full: WhenFull::Deny, ttl_seconds: Some(60), ..new_plan("family", 6) };
    ledger.create_plan(plan, by(&admin())).await.unwrap();
    let end = START + Span::from_secs(100);
    let new = NewSubscription { ends_at: Some(end), ..new_subscription("ann", "family") };
    ledger.create_subscription(new, by(&admin())).await.unwrap();

    let subscriber = ledger.subscriber(&tenant(), &UserId::from("ann")).await.unwrap();
    let entitled = subscriber.entitled(START, TTL);
    assert_eq!((entitled.plan, entitled.when_full), (Some(named("family")), WhenFull::Deny));
    assert_eq!(
        (entitled.terms.limit, entitled.terms.ttl, entitled.terms.ends_at),
        (Seats(6), Span::from_secs(60), Some(end))
    );
    assert_eq!(subscriber.entitled(end, TTL).terms.limit, Seats(1));

    let change = PlanChange { device_limit: Some(Seats(7)), ..PlanChange::default() };
    ledger.update_plan(&tenant(), &named("family"), change, by(&admin())).await.unwrap();
    let raised = terms(&ledger, START).await;
    assert_eq!(raised.limit, Seats(7));
    assert!(raised.version > entitled.terms.version);
}

/// A deterministic random sequence, so a failure can be reproduced.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// Makes random changes to one user's subscriptions and plans, with a claim after each step.
#[tokio::test]
async fn whatever_happens_versions_never_go_back_each_stands_for_one_limit_and_all_is_proven() {
    let (_place, ledger) = ledger().await;
    planned(&ledger, "family", 3).await;
    let seed = 0x5eed;
    println!("seed {seed:#x}");
    let (mut dice, origin) = (Dice(seed), admin());
    let (mut story, mut newest) = (Story::devices("ann"), None::<Subscription>);
    let (mut granted, mut live) = (HashMap::new(), Vec::new());
    for step in 0..300 {
        story.pass(Span::from_secs(dice.below(20)));
        let write = Write { at: story.now, ..by(&origin) };
        let plan = ["basic", "premium", "family"][dice.below(3) as usize];
        let starts_at = Some(story.now + Span::from_secs(dice.below(15)));
        let ends_at = starts_at.map(|start| start + Span::from_secs(1 + dice.below(60)));
        let ends_at = ends_at.filter(|_| dice.below(3) > 0);
        let written = match (dice.below(5), &newest) {
            (0, _) => {
                let devices = Some(Seats(dice.below(6) as u32));
                let change = PlanChange { device_limit: devices, ..PlanChange::default() };
                ledger.update_plan(&tenant(), &named(plan), change, write).await.unwrap();
                None
            }
            (1, _) => {
                let new = NewSubscription { starts_at, ends_at, ..new_subscription("ann", plan) };
                Some(ledger.create_subscription(new, write).await)
            }
            (2, Some(newest)) => {
                let cancel = dice.below(2) == 0;
                let change =
                    SubscriptionChange { plan: Some(named(plan)), starts_at, ends_at: Some(ends_at), cancel };
                Some(ledger.update_subscription(&tenant(), newest.id, &change, write).await)
            }
            _ => None,
        };
        match written {
            Some(Ok(Written { value, .. })) => newest = Some(value),
            Some(Err(Error::SubscriptionExists | Error::SubscriptionOver)) | None => {}
            Some(Err(error)) => panic!("step {step}: {error}"),
        }
        let terms = terms(&ledger, story.now).await;
        assert!(
            terms.version >= story.version.max(1),
            "step {step}: {} after {}",
            terms.version,
            story.version
        );
        let before = *granted.entry(terms.version).or_insert(terms.limit);
        assert_eq!(before, terms.limit, "step {step}: version {}", terms.version);

        (story.version, story.limit) = (terms.version, terms.limit.0);
        let mut events = Vec::new();
        while live.len() >= terms.limit.0 as usize && !live.is_empty() {
            events.push(story.end(live.remove(0), seatkeeper_core::EndReason::Evicted));
        }
        if terms.limit.0 > 0 {
            let (id, admitted) = story.admit(&format!("device-{step}"));
            live.push(id);
            events.push(admitted);
        }
        ledger.apply(&events).await.unwrap();
    }
    let verdict = ledger.verify(|_| ()).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");
    let limits: std::collections::BTreeSet<_> = granted.values().collect();
    assert!(granted.len() > 50 && limits.len() > 3, "a dull life: {granted:?}");
}
