//! Subscriptions and kept answers of writes that come along with a home. A subscription is written in the home alone.

use seatkeeper_core::{PoolId, PoolKind, Region};
use seatkeeper_ledger::homes::{Arrival, HomeState};
use seatkeeper_ledger::licenses::License;
use seatkeeper_ledger::subscriptions::{
    Subscription, SubscriptionChange, SubscriptionFilter, SubscriptionId, SubscriptionStatus,
};
use seatkeeper_ledger::{Effect, Error, Idempotency, Ledger, Write};

use crate::homes::{LOST, NOW, OWN, TARGET, arrival, subscriber, terms};
use crate::story::{START, TTL, admin, by, ledger, new_license, new_subscription, tenant};

/// Creates a license under an idempotency key, and returns its id and the effect of the write.
async fn create_once(ledger: &Ledger, key: &str, hash: u8) -> (License, Effect) {
    let once = Idempotency { key: key.to_owned(), request_hash: vec![hash; 32] };
    let origin = admin();
    let write = Write { idempotency: Some(&once), ..by(&origin) };
    let new = new_license(&format!("KEY-{}", uuid::Uuid::new_v4()), 3);
    let written = ledger.create_license(new, write).await.unwrap();
    (written.value, written.effect)
}

#[tokio::test]
async fn the_kept_answers_of_a_license_come_along_and_replace_none() {
    let (_lost, from) = ledger().await;
    let (_place, into) = ledger().await;
    let (license, _) = create_once(&from, "first", 1).await;
    let (other, _) = create_once(&from, "second", 2).await;
    let (own, _) = create_once(&into, "second", 3).await;
    for license in [&license, &other] {
        let answers = from.kept_answers(&license.pool()).await.unwrap();
        assert_eq!(answers.len(), 1, "an answer goes along with its own pool");
        into.adopt_license(license.clone(), &answers, NOW).await.unwrap();
    }
    let (again, effect) = create_once(&into, "first", 1).await;
    assert_eq!((again.id, effect), (license.id, Effect::Replayed));
    let (again, effect) = create_once(&into, "second", 3).await;
    assert_eq!((again.id, effect), (own.id, Effect::Replayed));
}

#[tokio::test]
async fn the_kept_answers_of_a_subscription_arrive_with_the_home() {
    let (_left, from) = ledger().await;
    let (_place, into) = ledger().await;
    let (tenant, user) = subscriber();
    let pool = PoolId::new(PoolKind::Subscriber, tenant, user.as_str());
    let (once, origin) = (Idempotency { key: "once".to_owned(), request_hash: vec![1; 32] }, admin());
    let write = Write { idempotency: Some(&once), ..by(&origin) };
    let first = from.create_subscription(new_subscription("ann", "basic"), write).await.unwrap().value;
    let answers = from.kept_answers(&pool).await.unwrap();
    let terms = terms(&into).await;
    // An arrival that changes nothing brings no answer.
    let late = Arrival { answers: answers.clone(), ..arrival(1, Vec::new()) };
    into.take_home(&arrival(2, Vec::new()), OWN, terms, NOW).await.unwrap();
    into.take_home(&late, OWN, terms, NOW).await.unwrap();
    assert_eq!(into.kept_answers(&pool).await.unwrap(), []);
    into.take_home(&Arrival { answers, ..arrival(3, Vec::new()) }, OWN, terms, NOW).await.unwrap();
    let again = into.create_subscription(new_subscription("ann", "basic"), write).await.unwrap();
    assert_eq!((again.effect, again.value.id), (Effect::Replayed, first.id));
    // The answers go along with the next move as well.
    assert_eq!(into.kept_answers(&pool).await.unwrap().len(), 1);
}

/// Creates a subscription of `ann` if the home is in `home`.
pub(crate) async fn subscribe_at(ledger: &Ledger, home: Option<Region>) -> Result<Subscription, Error> {
    let origin = admin();
    let write = Write { home, ..by(&origin) };
    Ok(ledger.create_subscription(new_subscription("ann", "basic"), write).await?.value)
}

/// Cancels a subscription if the subscriber's home is in `OWN`.
async fn cancel_at_home(ledger: &Ledger, id: SubscriptionId) -> Result<(), Error> {
    let origin = admin();
    let cancel = SubscriptionChange { cancel: true, ..SubscriptionChange::default() };
    let write = Write { home: Some(OWN), ..by(&origin) };
    ledger.update_subscription(&tenant(), id, &cancel, write).await.map(drop)
}

#[tokio::test]
async fn a_subscription_is_written_in_the_home_alone() {
    let (_place, ledger) = ledger().await;
    let (tenant, user) = subscriber();
    let made = subscribe_at(&ledger, Some(OWN)).await.unwrap();
    ledger.assign_home(&tenant, &user, OWN, OWN).await.unwrap();
    ledger.begin_home_move(&tenant, &user, OWN, TARGET).await.unwrap();
    let departure = ledger.home_moving(&tenant, &user).await.unwrap().unwrap();
    for state in [HomeState::Moving, HomeState::Moved] {
        let elsewhere =
            |refused: Error| matches!(refused, Error::HomeElsewhere { home, .. } if home.state == state);
        assert!(elsewhere(cancel_at_home(&ledger, made.id).await.unwrap_err()), "{state:?}");
        assert!(elsewhere(subscribe_at(&ledger, Some(OWN)).await.unwrap_err()), "{state:?}");
        ledger.end_home_move(&departure).await.unwrap();
    }
    // A subscription that comes along with a home is written before the home arrives.
    assert!(matches!(subscribe_at(&ledger, None).await, Err(Error::SubscriptionExists)));
    let (_place, target) = self::ledger().await;
    target.learn_home(&tenant, &user, (OWN, 1), TARGET).await.unwrap();
    assert!(matches!(subscribe_at(&target, Some(TARGET)).await, Err(Error::HomeElsewhere { .. })));
    subscribe_at(&target, None).await.unwrap();
}

/// Returns the plan of `ann`'s active subscription.
async fn active_plan(ledger: &Ledger) -> Option<String> {
    let (tenant, user) = subscriber();
    let entitled = ledger.subscriber(&tenant, &user).await.unwrap().entitled(START, TTL);
    entitled.plan.map(|plan| plan.as_str().to_owned())
}

#[tokio::test]
async fn a_subscription_comes_along_with_a_home_and_a_repeated_arrival_undoes_no_later_change() {
    let (_place, ledger) = ledger().await;
    let (tenant, user) = subscriber();
    let origin = admin();
    let take = async |plan: Option<&str>, arrival: (u64, Option<Region>)| {
        let told = plan.map(|plan| new_subscription("ann", plan));
        ledger.take_subscription((&tenant, &user), told, arrival, by(&origin)).await.unwrap()
    };
    let arrive = async |version| {
        let terms = terms(&ledger).await;
        ledger.take_home(&arrival(version, Vec::new()), OWN, terms, NOW).await.unwrap();
    };
    // The arrival may be cut off before the home is here.
    for (plan, effect) in [
        (Some("basic"), Effect::Changed),
        (Some("basic"), Effect::Unchanged),
        (None, Effect::Changed),
        (None, Effect::Unchanged),
        (Some("basic"), Effect::Changed),
        (Some("premium"), Effect::Changed),
    ] {
        assert_eq!(take(plan, (2, None)).await, effect, "{plan:?}");
        assert_eq!(active_plan(&ledger).await.as_deref(), plan);
    }
    arrive(2).await;
    let active = SubscriptionFilter { status: Some(SubscriptionStatus::Active), ..Default::default() };
    let active = ledger.list_subscriptions(&tenant, &active, NOW, None, 10).await.unwrap();
    cancel_at_home(&ledger, active.items[0].id).await.unwrap();
    assert_eq!(take(Some("premium"), (2, None)).await, Effect::Unchanged);
    assert_eq!(active_plan(&ledger).await, None, "the cancellation goes on");

    // A home on its way out of here is taken back by its adoption alone.
    ledger.begin_home_move(&tenant, &user, OWN, LOST).await.unwrap();
    assert_eq!(take(Some("basic"), (4, None)).await, Effect::Unchanged);
    assert_eq!(take(Some("basic"), (4, Some(TARGET))).await, Effect::Unchanged);
    assert_eq!(take(Some("basic"), (4, Some(LOST))).await, Effect::Changed);
    assert_eq!(active_plan(&ledger).await.as_deref(), Some("basic"));
}
