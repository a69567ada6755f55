//! Tests of the layout of session ids.

use proptest::prelude::*;
use uuid::{Uuid, Variant};

use super::{NotASessionId, Region, SessionId};
use crate::{BUCKETS, Bucket, RegistryTime};

const RANDOM_BITS: u32 = 61;

const MILLIS_END: u64 = 1 << 44;

fn mint(millis: u64, bucket: u16, region: u8, random: u64) -> SessionId {
    let started = RegistryTime::from_millis(millis);
    SessionId::mint(started, Bucket::new(bucket).unwrap(), Region::new(region), random)
}

proptest! {
    #[test]
    fn an_id_carries_what_it_was_made_of(
        millis in 0..MILLIS_END,
        bucket in 0..BUCKETS,
        region: u8,
        random: u64,
    ) {
        let id = mint(millis, bucket, region, random);
        prop_assert_eq!(id.bucket().number(), bucket);
        prop_assert_eq!(id.region().number(), region);
        let (high, low) = id.as_uuid().as_u64_pair();
        prop_assert_eq!(high >> 20, millis);
        prop_assert_eq!(id.started().as_millis(), millis);
        prop_assert_eq!(low & ((1 << RANDOM_BITS) - 1), random & ((1 << RANDOM_BITS) - 1));
        prop_assert!(!id.has_handed_over_seat());
        let marked = id.with_handed_over_seat();
        prop_assert!(marked.has_handed_over_seat());
        prop_assert_eq!(marked.with_handed_over_seat(), marked);
        prop_assert_eq!(marked.as_uuid().as_u128() ^ id.as_uuid().as_u128(), 1 << RANDOM_BITS);
    }

    #[test]
    fn an_id_is_a_uuid_of_version_8_and_reads_back_from_its_text(
        millis in 0..MILLIS_END,
        bucket in 0..BUCKETS,
        region: u8,
        random: u64,
    ) {
        let id = mint(millis, bucket, region, random);
        prop_assert_eq!(id.as_uuid().get_version_num(), 8);
        prop_assert_eq!(id.as_uuid().get_variant(), Variant::RFC4122);
        prop_assert_eq!(SessionId::try_from(id.as_uuid()), Ok(id));
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert_eq!(id.to_string(), id.as_uuid().to_string());
        prop_assert_eq!(format!("{id:?}"), id.to_string());
    }

    #[test]
    fn ids_sort_by_their_start(earlier in 0..MILLIS_END - 1, bucket in 0..BUCKETS, random: u64) {
        prop_assert!(mint(earlier, bucket, 0, random) < mint(earlier + 1, 0, 0, 0));
    }
}

#[test]
fn the_stored_form_of_an_id_never_changes() {
    let id = mint(0x654_3210_0abc, 0xab, 0xde, 0x0123_4567_89ab_cdef);
    assert_eq!(id.to_string(), "65432100-abcd-8eab-8123-456789abcdef");
    let all_bits = mint(MILLIS_END - 1, 0xff, 0xff, u64::MAX);
    assert_eq!(all_bits.to_string(), "ffffffff-ffff-8fff-9fff-ffffffffffff");
    assert_eq!(all_bits.with_handed_over_seat().to_string(), "ffffffff-ffff-8fff-bfff-ffffffffffff");
}

#[test]
fn a_text_that_can_be_no_session_id_is_refused() {
    let refused = [
        "",
        "65432100",
        "65432100-00ab-4cde-8123-456789abcdef", // version 4
        "65432100-00ab-8cde-0123-456789abcdef", // another variant
        "65432100-00ab-8cde-c123-456789abcdef", // another variant
        "65432100-00ab-8cde-8123-456789abcdeg",
    ];
    for text in refused {
        assert_eq!(text.parse::<SessionId>(), Err(NotASessionId), "{text}");
    }
    assert_eq!(SessionId::try_from(Uuid::nil()), Err(NotASessionId));
    assert!("65432100-00ff-8cde-8123-456789abcdef".parse::<SessionId>().is_ok());
}
