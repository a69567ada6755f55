//! The roll call extends a lease only if every named node reports the ledger as unreachable.

use std::time::Duration;

use seatkeeper_host_clock::HostInstant;
use seatkeeper_registry::redis::Sighting;
use uuid::Uuid;

use super::{LEASE, unreached_since};

const OWN: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);
const THIRD: Uuid = Uuid::from_u128(3);

const A_MOMENT: Duration = Duration::from_millis(400);

fn without_ledger(node: Uuid, ago: Duration) -> Sighting {
    Sighting { node, ago: Some(ago), may_reach_ledger: false }
}

fn with_ledger(node: Uuid, ago: Duration) -> Sighting {
    Sighting { may_reach_ledger: true, ..without_ledger(node, ago) }
}

/// Returns the time for which no node can have reached the ledger, if all nodes vouch for it.
fn unreached_for(sightings: &[Sighting], named: &[Uuid]) -> Option<Duration> {
    let now = HostInstant::now();
    unreached_since(now, OWN, sightings, &named.iter().copied().collect())
        .map(|since| now.saturating_duration_since(since))
}

#[test]
fn the_ledger_is_out_of_reach_for_all_since_the_oldest_word_of_any_node() {
    let own = without_ledger(OWN, Duration::ZERO);
    assert_eq!(unreached_for(&[own], &[OWN]), Some(Duration::ZERO));
    let others = [own, without_ledger(OTHER, A_MOMENT), without_ledger(THIRD, 2 * A_MOMENT)];
    assert_eq!(unreached_for(&others, &[OWN, OTHER, THIRD]), Some(2 * A_MOMENT));
}

#[test]
fn one_node_that_may_reach_the_ledger_is_enough_to_let_the_lease_end() {
    let own = without_ledger(OWN, Duration::ZERO);
    assert_eq!(unreached_for(&[own, with_ledger(OTHER, A_MOMENT)], &[OWN, OTHER]), None);
    assert_eq!(unreached_for(&[own, with_ledger(OTHER, 20 * LEASE)], &[OWN, OTHER]), None);
    assert_eq!(
        unreached_for(&[own, with_ledger(THIRD, A_MOMENT)], &[OWN]),
        None,
        "it came after the reading"
    );
    assert_eq!(unreached_for(&[with_ledger(OWN, Duration::ZERO)], &[OWN]), None, "this node itself");
}

#[test]
fn a_node_that_is_not_seen_may_reach_the_ledger() {
    let own = without_ledger(OWN, Duration::ZERO);
    assert_eq!(unreached_for(&[own], &[OWN, OTHER]), None);
    assert_eq!(unreached_for(&[own, without_ledger(OTHER, LEASE)], &[OWN, OTHER]), None);
    let clock_went_back = Sighting { ago: None, ..without_ledger(OTHER, A_MOMENT) };
    assert_eq!(unreached_for(&[own, clock_went_back], &[OWN, OTHER]), None);
}

#[test]
fn a_node_that_was_not_named_need_not_answer() {
    let own = without_ledger(OWN, Duration::ZERO);
    assert_eq!(unreached_for(&[own, without_ledger(THIRD, 20 * LEASE)], &[OWN]), Some(Duration::ZERO));
}
