//! The slots of a cluster: each key is in one, and each slot on one master.

use seatkeeper_core::Bucket;

use super::keys::bucket_tag;

pub(super) const SLOTS: u16 = 16_384;

/// A slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(pub(super) u16);

impl Slot {
    /// That of a key: of what is between its first braces, if there is something.
    pub(super) fn of(key: &str) -> Self {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
        Self(crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key).as_bytes()) % SLOTS)
    }
}

/// The slot of each bucket.
#[derive(Debug)]
pub(super) struct BucketSlots(Box<[Slot]>);

impl BucketSlots {
    pub(super) fn new() -> Self {
        Self(Bucket::all().map(|bucket| Slot::of(&bucket_tag(bucket))).collect())
    }

    pub(super) fn of(&self, bucket: Bucket) -> Slot {
        self.0[usize::from(bucket.number())]
    }
}

/// The checksum that Redis Cluster goes by: CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |sum, &byte| {
        (0..8).fold(
            sum ^ u16::from(byte) << 8,
            |sum, _| {
                if sum & 0x8000 == 0 { sum << 1 } else { sum << 1 ^ 0x1021 }
            },
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_that_redis_gives() {
        // By `CLUSTER KEYSLOT`.
        for (key, slot) in [("foo", 12_182), ("{foo}:x", 12_182), ("a{}b", 13_694), ("123456789", 12_739)] {
            assert_eq!(Slot::of(key), Slot(slot), "{key}");
        }
    }
}
