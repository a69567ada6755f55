//! Versions of terms never decrease, and each version stands for one limit.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::plans::GroupScope;

const TTL: Span = Span::from_secs(90);
const GROUPS: GroupRules = GroupRules { members_max: 4, scope: GroupScope::AnyUser, same_content: true };

fn at(millis: u64) -> RegistryTime {
    RegistryTime::from_millis(millis)
}

fn held(version: u64) -> Held {
    Held {
        status: SubscriptionStatus::Active,
        starts_at: at(100),
        ends_at: Some(at(200)),
        version,
        plan: "family".parse().unwrap(),
        device_limit: Seats(3),
        when_full: WhenFull::Deny,
        ttl_seconds: Some(7),
        groups: GROUPS,
        plan_version: 2,
    }
}

fn entitled(held: &Held, millis: u64) -> Entitled {
    Subscriber::new(Some(held.clone())).entitled(at(millis), TTL)
}

fn without(version: u64) -> Entitled {
    let terms = Terms { version, limit: Seats(1), ttl: TTL, ends_at: None, standing: Standing::Open };
    let (when_full, groups) = (WhenFull::Evict, GroupRules::default());
    Entitled { plan: None, terms, when_full, groups, next_phase_in: None }
}

#[test]
fn without_a_subscription_there_is_one_seat() {
    assert_eq!(Subscriber::default().entitled(at(0), TTL), without(3));
}

#[test]
fn a_subscription_grants_what_its_plan_does_between_its_dates() {
    let held = held(5);
    let active = Entitled {
        plan: Some(held.plan.clone()),
        terms: Terms {
            version: 22,
            limit: Seats(3),
            ttl: Span::from_secs(7),
            ends_at: Some(at(200)),
            standing: Standing::Open,
        },
        when_full: WhenFull::Deny,
        groups: GROUPS,
        next_phase_in: Some(Span::from_millis(100)),
    };
    assert_eq!(entitled(&held, 100), active);
    let at_last = Entitled { next_phase_in: Some(Span::from_millis(1)), ..active };
    assert_eq!(entitled(&held, 199), at_last);
    assert_eq!(entitled(&held, 200), without(23));

    let open = Held { ends_at: None, ttl_seconds: None, ..held };
    let terms = entitled(&open, u64::MAX).terms;
    assert_eq!((terms.limit, terms.ttl, terms.ends_at), (Seats(3), TTL, None));
}

#[test]
fn before_its_start_a_subscription_grants_one_seat_until_its_end() {
    let ahead = without(21);
    let terms = Terms { ends_at: Some(at(200)), ..ahead.terms };
    let ahead = Entitled { terms, next_phase_in: Some(Span::from_millis(1)), ..ahead };
    assert_eq!(entitled(&held(5), 99), ahead);

    let open = Held { ends_at: None, ..held(5) };
    let ahead = entitled(&open, 60);
    assert_eq!((ahead.terms.ends_at, ahead.next_phase_in), (None, Some(Span::from_millis(40))));
    assert_eq!(entitled(&open, 100).next_phase_in, None);
}

#[test]
fn one_that_is_over_grants_nothing_whatever_its_dates() {
    for status in [SubscriptionStatus::Cancelled, SubscriptionStatus::Expired] {
        for millis in [0, 150, 300] {
            assert_eq!(entitled(&Held { status, ..held(5) }, millis), without(23));
        }
    }
}

#[test]
fn a_change_of_the_plan_counts_like_one_of_the_subscription() {
    let changed = Held { plan_version: 9, ..held(5) };
    assert_eq!(entitled(&changed, 150).terms.version, 38);
}

#[test]
fn a_version_tells_what_it_is_made_of() {
    for change in [0, 1, 7, 1 << 40] {
        for phase in [Phase::Ahead, Phase::Active, Phase::Over] {
            let named = NamedVersion { change, phase };
            assert_eq!(NamedVersion::from_number(named.number()), Some(named));
        }
    }
    assert_eq!((NamedVersion::from_number(0), NamedVersion::from_number(4)), (None, None));
}

/// A step in the life of a user's subscriptions and of the two plans.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pass(u64),
    Subscribe { plan: usize, starts_in: u64, ends_after: Option<u64> },
    Change { plan: usize, starts_in: u64, ends_after: Option<u64> },
    Cancel,
    Plan { plan: usize, limit: u32 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let plan = 0..2_usize;
    let dates = (plan.clone(), 0..20_u64, proptest::option::of(1..20_u64));
    let step = prop_oneof![
        (0..15_u64).prop_map(Step::Pass),
        dates.clone().prop_map(|(plan, starts_in, ends_after)| Step::Subscribe {
            plan,
            starts_in,
            ends_after
        }),
        dates.prop_map(|(plan, starts_in, ends_after)| Step::Change { plan, starts_in, ends_after }),
        Just(Step::Cancel),
        (plan, 0..5_u32).prop_map(|(plan, limit)| Step::Plan { plan, limit }),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A tenant with one user, numbered like in the ledger.
#[derive(Default)]
struct World {
    now: u64,
    version: u64,
    newest: Option<Held>,
    /// The limit and the version of each plan.
    plans: [(u32, u64); 2],
}

impl World {
    fn take(&mut self, step: Step) {
        let active = self.newest.as_ref().is_some_and(|held| {
            held.status == SubscriptionStatus::Active && held.phase(at(self.now)) != Phase::Over
        });
        match step {
            Step::Pass(millis) => self.now += millis,
            Step::Subscribe { plan, starts_in, ends_after } if !active => {
                // The old subscription is recorded as expired first.
                self.version += 1;
                self.write(plan, starts_in, ends_after);
            }
            Step::Change { plan, starts_in, ends_after } if active => self.write(plan, starts_in, ends_after),
            Step::Cancel if active => {
                self.version += 1;
                if let Some(held) = &mut self.newest {
                    (held.status, held.version) = (SubscriptionStatus::Cancelled, self.version);
                }
            }
            Step::Plan { plan, limit } => {
                self.version += 1;
                self.plans[plan] = (limit, self.version);
            }
            Step::Subscribe { .. } | Step::Change { .. } | Step::Cancel => {}
        }
        if let Some(held) = &mut self.newest {
            let (limit, version) = self.plans[held.plan.as_str().len() - 1];
            (held.device_limit, held.plan_version) = (Seats(limit), version);
        }
    }

    fn write(&mut self, plan: usize, starts_in: u64, ends_after: Option<u64>) {
        self.version += 1;
        let starts_at = self.now + starts_in;
        self.newest = Some(Held {
            starts_at: at(starts_at),
            ends_at: ends_after.map(|after| at(starts_at + after)),
            plan: ["a", "aa"][plan].parse().unwrap(),
            ..held(self.version)
        });
    }
}

proptest! {
    #[test]
    fn versions_never_go_back_and_each_stands_for_one_limit(steps in steps()) {
        let (mut world, mut newest, mut granted) = (World::default(), 0, HashMap::new());
        for step in steps {
            world.take(step);
            let terms = Subscriber::new(world.newest.clone()).entitled(at(world.now), TTL).terms;
            prop_assert!(terms.version >= newest.max(1), "{} after {newest}", terms.version);
            newest = terms.version;
            let before = *granted.entry(terms.version).or_insert((terms.limit, terms.ends_at));
            prop_assert_eq!(before, (terms.limit, terms.ends_at), "version {}", terms.version);
        }
    }
}

#[test]
fn a_subscription_has_just_changed_phase_from_its_start_and_from_its_end_on_for_the_span() {
    let span = Span::from_millis(20);
    let changes = |held: Held| {
        let subscriber = Subscriber::new(Some(held));
        [99, 100, 119, 120, 199, 200, 219, 220]
            .map(|millis| subscriber.has_changed_phase_within(span, at(millis)))
    };
    assert_eq!(changes(held(5)), [false, true, true, false, false, true, true, false]);
    let brief = Held { ends_at: Some(at(110)), ..held(5) };
    assert_eq!(changes(brief), [false, true, true, true, false, false, false, false]);
    let cancelled = Held { status: SubscriptionStatus::Cancelled, ..held(5) };
    assert_eq!(changes(cancelled), [false; 8]);
    assert!(!Subscriber::default().has_changed_phase_within(span, at(100)));
}
