//! What things are called in Redis. The bucket is the hash tag, so that all of a bucket is in one slot.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use seatkeeper_core::{Bucket, Holder, PoolId};

use super::codec::pool_id_bytes;

/// Bytes of the hash that a pool or a holder goes by: as many as fit into Redis's smallest allocation. Two of one hash
/// cannot be found by chance, and who has them made wins nothing: a claim compares the names.
pub(super) const KEY_BYTES: usize = 14;

/// What Seatkeeper's keys begin with.
const PREFIX: &str = "sk:";

/// What a pool goes by in the due-index, or a holder in a large pool.
pub(super) type Key = [u8; KEY_BYTES];

/// The keys of one bucket.
#[derive(Debug)]
pub(super) struct BucketKeys {
    pub(super) head: String,
    pub(super) due: String,
    pub(super) journal: String,
}

impl BucketKeys {
    pub(super) fn of(bucket: Bucket) -> Self {
        let key = |part| format!("{}:{part}", bucket_tag(bucket));
        Self { head: key("head"), due: key("due"), journal: key("journal") }
    }
}

/// A key that holds nothing: it is written to see what replicas have.
pub(super) fn mark_key(bucket: Bucket) -> String {
    format!("{}:mark", bucket_tag(bucket))
}

/// The keys of one pool.
#[derive(Debug)]
pub(super) struct PoolKeys {
    /// What it is called in the due-index.
    pub(super) reference: Key,
    pub(super) pool: String,
    pub(super) sessions: String,
    pub(super) order: String,
}

impl PoolKeys {
    pub(super) fn of(pool: &PoolId) -> Self {
        Self::in_bucket(pool.bucket(), hash(&pool_id_bytes(pool)))
    }

    /// The keys of a pool that is known by what it is called in the due-index.
    pub(super) fn in_bucket(bucket: Bucket, reference: Key) -> Self {
        let name = base64(&reference);
        let key = |part| format!("{}:{part}{name}", bucket_tag(bucket));
        Self { reference, pool: key('p'), sessions: key('s'), order: key('o') }
    }
}

/// What a holder goes by in a large pool.
pub(super) fn holder_key(holder: &Holder) -> Key {
    hash(holder.as_str().as_bytes())
}

/// The hash tag of a bucket, with what tells Seatkeeper's keys from others.
pub(super) fn bucket_tag(bucket: Bucket) -> String {
    format!("{PREFIX}{{b{:03}}}", bucket.number())
}

fn hash(bytes: &[u8]) -> Key {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, bytes);
    let mut key = Key::default();
    key.copy_from_slice(&digest.as_ref()[..KEY_BYTES]);
    key
}

/// As base64url: a name that can be typed, and no longer than a small allocation has room for.
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
        Self(Bucket::all().map(BucketKeys::of).collect())
    }

    pub(super) fn of(&self, bucket: Bucket) -> &BucketKeys {
        &self.0[usize::from(bucket.number())]
    }
}
