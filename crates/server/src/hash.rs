//! One hash over several things.

use aws_lc_rs::digest::{Context, SHA256};

/// The first bytes of a hash over the parts, each told by its length.
pub(crate) fn of<const BYTES: usize>(parts: &[&[u8]]) -> [u8; BYTES] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    let digest = context.finish();
    let mut first = [0; BYTES];
    first.copy_from_slice(&digest.as_ref()[..BYTES]);
    first
}
