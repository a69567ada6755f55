//! Names of keys in Redis. A group of buckets shares a hash tag, so that a bucket's keys are in one slot, and
//! one command reads the heads of a group.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use seatkeeper_core::{Bucket, Holder, PoolId};

use super::codec::pool_id_bytes;

/// Bytes of the hash that stands for a pool or a holder: the most that fit into Redis's smallest allocation.
/// No two names collide by chance. A deliberate collision wins no seat: a claim compares the names, and no small pool with
/// two holders of one key becomes large.
pub(super) const KEY_BYTES: usize = 14;

/// Prefix of all keys of Seatkeeper.
const PREFIX: &str = "sk:";

/// Hash tags of the groups of buckets: bucket `n` is in group `n % 32`.
///
/// The tags' slots are evenly spaced, so that masters with equal ranges of slots have equally many groups,
/// plus or minus one. More groups spread better over many masters; fewer groups take fewer commands to read
/// all heads.
const GROUP_TAGS: [&str; 32] = [
    "mi", "by", "qx", "f9", "tf", "db", "o2", "gg", "sj", "lo", "po", "oj", "ed", "m1", "fa", "iq", "k4",
    "ca", "ot", "x5", "jj", "ez", "io", "yk", "z6", "rc", "ab", "i7", "c9", "tx", "gy", "p8",
];

/// The hash of a pool in the due-index, or of a holder in a large pool.
pub(super) type Key = [u8; KEY_BYTES];

/// The keys of one bucket.
#[derive(Debug)]
pub(super) struct BucketKeys {
    pub(super) head: String,
    pub(super) due: String,
    pub(super) journal: String,
    /// The admission ring: see `scripts/admissions.lua`.
    pub(super) admissions: String,
}

impl BucketKeys {
    pub(super) fn new(bucket: Bucket) -> Self {
        let key = |part| format!("{}:{part}", bucket_tag(bucket));
        Self { head: key("head"), due: key("due"), journal: key("journal"), admissions: key("admissions") }
    }
}

/// Returns the bucket's key without content, written to learn the progress of replicas.
pub(super) fn mark_key(bucket: Bucket) -> String {
    format!("{}:mark", bucket_tag(bucket))
}

/// The keys of one pool.
#[derive(Debug)]
pub(super) struct PoolKeys {
    /// The pool's name in the due-index.
    pub(super) reference: Key,
    pub(super) pool: String,
    pub(super) sessions: String,
    pub(super) order: String,
}

impl PoolKeys {
    pub(super) fn new(pool: &PoolId) -> Self {
        Self::in_bucket(pool.bucket(), hash(&pool_id_bytes(pool)))
    }

    /// Returns the keys of a pool known by its name in the due-index.
    pub(super) fn in_bucket(bucket: Bucket, reference: Key) -> Self {
        let name = base64(&reference);
        let key = |part| format!("{}:{part}{name}", bucket_tag(bucket));
        Self { reference, pool: key('p'), sessions: key('s'), order: key('o') }
    }
}

/// Returns a holder's key in a large pool.
pub(super) fn holder_key(holder: &Holder) -> Key {
    hash(holder.as_str().as_bytes())
}

/// Returns the prefix of a bucket's keys: Seatkeeper's prefix, the hash tag of the group, the bucket's
/// number.
pub(super) fn bucket_tag(bucket: Bucket) -> String {
    let number = bucket.number();
    let group = GROUP_TAGS[usize::from(number) % GROUP_TAGS.len()];
    format!("{PREFIX}{{{group}}}{number:03}")
}

fn hash(bytes: &[u8]) -> Key {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let mut key = Key::default();
    key.copy_from_slice(&digest.as_ref()[..KEY_BYTES]);
    key
}

/// Encodes bytes as base64url: printable, and short enough for a small allocation.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digits_of = |chunk: &[u8]| {
        let bits =
            chunk.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - chunk.len()));
        (0..=chunk.len()).map(move |n| char::from(DIGITS[(bits >> (18 - 6 * n) & 63) as usize]))
    };
    bytes.chunks(3).flat_map(digits_of).collect()
}

/// The keys of every bucket, made once.
#[derive(Debug)]
pub(super) struct AllKeys(Box<[BucketKeys]>);

impl AllKeys {
    pub(super) fn new() -> Self {
        Self(Bucket::all().map(BucketKeys::new).collect())
    }

    pub(super) fn bucket(&self, bucket: Bucket) -> &BucketKeys {
        &self.0[usize::from(bucket.number())]
    }
}

#[cfg(test)]
mod tests {
    use seatkeeper_redis::{SLOTS, Slot};

    use super::*;

    #[test]
    fn masters_with_equal_ranges_of_slots_have_equally_many_groups_give_or_take_one() {
        for masters in 1..=GROUP_TAGS.len() {
            let mut groups = vec![0; masters];
            for tag in GROUP_TAGS {
                let Slot(slot) = Slot::from_key(&format!("{{{tag}}}"));
                groups[usize::from(slot) * masters / usize::from(SLOTS)] += 1;
            }
            let (least, most) = (groups.iter().min(), groups.iter().max());
            assert!(most <= least.map(|least| least + 1).as_ref(), "{masters} masters have {groups:?}");
        }
    }

    #[test]
    fn each_bucket_has_keys_of_its_own_and_shares_its_slot_with_seven() {
        let mut heads = std::collections::BTreeMap::<Slot, std::collections::BTreeSet<String>>::new();
        for bucket in Bucket::all() {
            let BucketKeys { head, due, journal, admissions } = BucketKeys::new(bucket);
            let slot = Slot::from_key(&head);
            let others = [due, journal, admissions, mark_key(bucket)];
            assert_eq!(others.map(|key| Slot::from_key(&key)), [slot; 4]);
            assert!(heads.entry(slot).or_default().insert(head), "two buckets have one head");
        }
        assert!(heads.values().all(|heads| heads.len() == 8), "{heads:?}");
    }
}
