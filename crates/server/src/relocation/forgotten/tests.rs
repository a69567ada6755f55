//! The consequences of homes in peers.

use super::*;

const OWN: Region = Region::new(1);
const PEER: Region = Region::new(2);
const THIRD: Region = Region::new(3);

fn home(region: Region, version: u64, state: HomeState) -> Home {
    Home { version, state, ..Home::first(region) }
}

fn of_told(known: Option<Home>, version: u64, is_anchor: bool) -> Consequence {
    consequence(OWN, known, &home(PEER, version, HomeState::Here), || is_anchor)
}

#[test]
fn only_the_anchor_learns_homes_of_subscribers_without_a_record() {
    assert_eq!(of_told(None, 1, true), Consequence::Learn);
    assert_eq!(of_told(None, 2, false), Consequence::Nothing);
}

#[test]
fn a_newer_home_in_another_region_replaces_the_record() {
    let here = Some(home(OWN, 2, HomeState::Here));
    assert_eq!(of_told(here, 1, true), Consequence::Nothing);
    assert_eq!(of_told(here, 2, true), Consequence::Conflict);
    assert_eq!(of_told(here, 3, false), Consequence::Move);
    let third = Some(home(THIRD, 2, HomeState::Here));
    assert_eq!(of_told(third, 2, true), Consequence::Nothing);
    assert_eq!(of_told(third, 3, true), Consequence::Nothing, "the home on record tells the anchor");
    assert_eq!(of_told(third, 3, false), Consequence::Learn);
    let moved = Some(home(PEER, 2, HomeState::Moved));
    assert_eq!(of_told(moved, 2, true), Consequence::Nothing);
    assert_eq!(of_told(moved, 4, false), Consequence::Learn);
}

#[test]
fn a_home_on_its_way_stays_on_its_way() {
    let moving = Some(home(PEER, 2, HomeState::Moving));
    for version in 1..4 {
        assert_eq!(of_told(moving, version, true), Consequence::Nothing);
    }
}
