//! The hash slots of a cluster: a key belongs to a slot, and a slot to a master.

/// The number of slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// A hash slot, 0 to [`SLOTS`] − 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot(pub u16);

impl Slot {
    /// Returns the slot of a key, by the hash tag between the first braces unless the tag is empty.
    pub fn from_key(key: &str) -> Self {
        let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
        Self(crc16(tag.filter(|tag| !tag.is_empty()).unwrap_or(key).as_bytes()) % SLOTS)
    }
}

/// The checksum of Redis Cluster: CRC-16/XMODEM.
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
        // Expected slots by `CLUSTER KEYSLOT`.
        for (key, slot) in [("foo", 12_182), ("{foo}:x", 12_182), ("a{}b", 13_694), ("123456789", 12_739)] {
            assert_eq!(Slot::from_key(key), Slot(slot), "{key}");
        }
    }
}
