//! A subscriber survives serialization, and an invalid text is no subscriber.

use seatkeeper_core::WhenFull;

use super::*;
use crate::plans::GroupScope;
use crate::subscriptions::SubscriptionStatus;

fn held() -> Held {
    Held {
        status: SubscriptionStatus::Active,
        starts_at: RegistryTime::from_millis(1),
        ends_at: Some(RegistryTime::MAX),
        version: u64::MAX,
        plan: "premium".parse().unwrap(),
        device_limit: Seats(4),
        when_full: WhenFull::Deny,
        groups: GroupRules { members_max: 4, scope: GroupScope::AnyUser, same_content: true },
        ttl_seconds: Some(2),
        plan_version: 7,
    }
}

#[test]
fn a_text_tells_all_of_a_subscriber() {
    let bare = Held { ends_at: None, ttl_seconds: None, when_full: WhenFull::Evict, ..held() };
    for held in [None, Some(held()), Some(bare)] {
        let subscriber = Subscriber::new(held);
        assert_eq!(Subscriber::from_text(&subscriber.to_text()), Some(subscriber));
    }
}

#[test]
fn a_text_that_is_of_no_subscriber_tells_of_none() {
    let unknown = Subscriber::new(Some(held())).to_text().replace("active", "asleep");
    for text in ["", "{}", "7", "{\"status\":\"active\"}", &unknown] {
        assert_eq!(Subscriber::from_text(text), None, "{text}");
    }
}
