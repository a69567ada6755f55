//! A set of buckets as a bitmap.

use crate::{BUCKETS, Bucket};

const BYTES: usize = BUCKETS as usize / 8;

/// A set of buckets: a bit per bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BucketSet([u8; BYTES]);

impl BucketSet {
    /// The set of every bucket.
    pub const ALL: Self = Self([u8::MAX; BYTES]);

    /// Creates a set from a bitmap. The lowest bit of the first byte is bucket 0.
    pub const fn from_bytes(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bitmap.
    pub const fn as_bytes(&self) -> &[u8; BYTES] {
        &self.0
    }

    /// Adds a bucket.
    pub fn insert(&mut self, bucket: Bucket) {
        let (byte, bit) = place(bucket);
        self.0[byte] |= bit;
    }

    /// Returns `true` if the set contains the bucket.
    pub fn contains(&self, bucket: Bucket) -> bool {
        let (byte, bit) = place(bucket);
        self.0[byte] & bit != 0
    }

    /// Returns the number of buckets in the set.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|byte| byte.count_ones()).sum()
    }

    /// Returns `true` if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Iterates over the buckets, in order.
    pub fn iter(&self) -> impl Iterator<Item = Bucket> + '_ {
        Bucket::all().filter(|bucket| self.contains(*bucket))
    }
}

impl FromIterator<Bucket> for BucketSet {
    fn from_iter<I: IntoIterator<Item = Bucket>>(buckets: I) -> Self {
        let mut set = Self::default();
        buckets.into_iter().for_each(|bucket| set.insert(bucket));
        set
    }
}

fn place(bucket: Bucket) -> (usize, u8) {
    let number = bucket.number();
    (usize::from(number / 8), 1 << (number % 8))
}

#[cfg(test)]
mod tests {
    use super::BucketSet;
    use crate::Bucket;

    #[test]
    fn a_set_holds_what_was_put_in_and_nothing_else() {
        assert!(BucketSet::default().is_empty());
        assert!(BucketSet::ALL.iter().eq(Bucket::all()));
        let some: BucketSet = Bucket::all().filter(|bucket| bucket.number() % 7 == 3).collect();
        assert!(some.iter().eq(Bucket::all().filter(|bucket| bucket.number() % 7 == 3)));
        assert_eq!(some.len(), 37);
        assert_eq!(BucketSet::from_bytes(*some.as_bytes()), some);
        assert_eq!(some.as_bytes()[..2], [0b0000_1000, 0b0000_0100]);
    }
}
