//! A region's own record of a home, as a question about a move reads it.

use seatkeeper_core::Region;

use super::{DepartureStep, HomeRecord};

const OWN: Region = Region::new(1);
const FROM: Region = Region::new(2);

fn record(region: u8, version: u64, is_moving: bool) -> HomeRecord {
    HomeRecord { region, version, is_moving }
}

#[test]
fn a_home_on_its_way_out_is_still_in_its_region() {
    assert_eq!(record(3, 5, true).settled(FROM), (FROM, 4));
    assert_eq!(record(3, 5, false).settled(FROM), (Region::new(3), 5));
}

#[test]
fn a_home_leaves_by_the_record_of_its_region_alone() {
    let leaves = |record: HomeRecord, step| record.is_leaving_for(OWN, FROM, (step, 5));
    assert!(leaves(record(2, 4, false), DepartureStep::Planned));
    assert!(leaves(record(1, 5, true), DepartureStep::Begun));
    for other in [record(2, 4, false), record(1, 5, false), record(3, 5, true), record(1, 6, true)] {
        assert!(!leaves(other, DepartureStep::Begun), "{other:?}");
    }
    for other in [record(2, 5, false), record(3, 4, false), record(1, 3, false)] {
        assert!(!leaves(other, DepartureStep::Planned), "{other:?}");
    }
}
