//! A hash over several parts.

use aws_lc_rs::digest::{Context, SHA256};

/// Returns the first `BYTES` bytes of SHA-256 over the parts. Each part is preceded by its length, so that
/// different lists of parts never give the same input.
pub(crate) fn digest<const BYTES: usize>(parts: &[&[u8]]) -> [u8; BYTES] {
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
