//! A script, and how it is called.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use redis::{Cmd, ToRedisArgs};

/// What most calls have room in.
pub(super) const ARGS_USUAL: usize = 32;
pub(super) const CALL_BYTES_USUAL: usize = 1_024;

/// A script that runs on the server. It is sent there once, and then called by its digest.
#[derive(Debug)]
pub struct Script {
    pub(super) source: String,
    digest: String,
}

impl Script {
    /// The script with this text.
    pub fn new(source: impl Into<String>) -> Self {
        let source = source.into();
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, source.as_bytes());
        let digest = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { source, digest }
    }

    /// The call of it on these keys, which must be in one slot. Its arguments follow.
    pub fn call<K: ToRedisArgs>(&self, keys: impl ExactSizeIterator<Item = K>) -> Cmd {
        let mut call = Cmd::with_capacity(ARGS_USUAL, CALL_BYTES_USUAL);
        call.arg("EVALSHA").arg(&self.digest).arg(keys.len());
        keys.for_each(|key| {
            call.arg(key);
        });
        call
    }
}
