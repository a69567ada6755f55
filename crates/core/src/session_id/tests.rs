use proptest::prelude::*;
use uuid::{Uuid, Variant};

use super::{NotASessionId, Region, SessionId};
use crate::{BUCKETS, Bucket, RegistryTime};

const RANDOM_BITS: u32 = 62;

fn mint(seconds: u32, bucket: u16, region: u16, random: u64) -> SessionId {
    let started = RegistryTime::from_millis(u64::from(seconds) * 1_000 + 999);
    SessionId::mint(started, Bucket::new(bucket).unwrap(), Region::new(region).unwrap(), random)
}

proptest! {
    #[test]
    fn an_id_carries_what_it_was_made_of(
        seconds: u32,
        bucket in 0..BUCKETS,
        region in 0_u16..4_096,
        random: u64,
    ) {
        let id = mint(seconds, bucket, region, random);
        prop_assert_eq!(id.bucket().number(), bucket);
        prop_assert_eq!(id.region().number(), region);
        let (high, low) = id.as_uuid().as_u64_pair();
        prop_assert_eq!(high >> 32, u64::from(seconds));
        prop_assert_eq!(low & ((1 << RANDOM_BITS) - 1), random & ((1 << RANDOM_BITS) - 1));
    }

    #[test]
    fn an_id_is_a_uuid_of_version_8_and_reads_back_from_its_text(
        seconds: u32,
        bucket in 0..BUCKETS,
        region in 0_u16..4_096,
        random: u64,
    ) {
        let id = mint(seconds, bucket, region, random);
        prop_assert_eq!(id.as_uuid().get_version_num(), 8);
        prop_assert_eq!(id.as_uuid().get_variant(), Variant::RFC4122);
        prop_assert_eq!(SessionId::from_uuid(id.as_uuid()), Ok(id));
        prop_assert_eq!(id.to_string().parse(), Ok(id));
        prop_assert_eq!(id.to_string(), id.as_uuid().to_string());
        prop_assert_eq!(format!("{id:?}"), id.to_string());
    }

    #[test]
    fn ids_sort_by_their_start(earlier in 0..u32::MAX, bucket in 0..BUCKETS, random: u64) {
        prop_assert!(mint(earlier, bucket, 0, random) < mint(earlier + 1, 0, 0, 0));
    }
}

#[test]
fn the_stored_form_of_an_id_never_changes() {
    let id = mint(0x6543_2100, 0xab, 0xcde, 0x0123_4567_89ab_cdef);
    assert_eq!(id.to_string(), "65432100-00ab-8cde-8123-456789abcdef");
    let all_bits = mint(u32::MAX, 0xff, 0xfff, u64::MAX);
    assert_eq!(all_bits.to_string(), "ffffffff-00ff-8fff-bfff-ffffffffffff");
}

#[test]
fn a_text_that_can_be_no_session_id_is_refused() {
    let refused = [
        "",
        "65432100",
        "65432100-00ab-4cde-8123-456789abcdef", // version 4
        "65432100-00ab-8cde-0123-456789abcdef", // another variant
        "65432100-00ab-8cde-c123-456789abcdef", // another variant
        "65432100-0100-8cde-8123-456789abcdef", // bucket 256
        "65432100-00ab-8cde-8123-456789abcdeg",
    ];
    for text in refused {
        assert_eq!(text.parse::<SessionId>(), Err(NotASessionId), "{text}");
    }
    assert_eq!(SessionId::from_uuid(Uuid::nil()), Err(NotASessionId));
    assert!("65432100-00ff-8cde-8123-456789abcdef".parse::<SessionId>().is_ok());
}

#[test]
fn there_are_4096_regions() {
    assert_eq!(Region::new(4_095).map(Region::number), Some(4_095));
    assert_eq!(Region::new(4_096), None);
}
