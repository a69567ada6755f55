//! A Lua script, and the command that calls it.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use redis::{Cmd, ToRedisArgs};

/// Initial capacity of a call, in arguments and in bytes.
const CALL_ARGS: usize = 32;
const CALL_BYTES: usize = 1_024;

/// A Lua script for the server. The source is sent once to each server; calls name the SHA-1 digest of the
/// source.
#[derive(Debug)]
pub struct Script {
    pub(crate) source: String,
    digest: String,
}

impl Script {
    /// Creates a script from its source.
    pub fn new(source: impl Into<String>) -> Self {
        let source = source.into();
        let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, source.as_bytes());
        let digest = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { source, digest }
    }

    /// Returns the `EVALSHA` command for `keys`, which must be in a single slot. The caller appends the
    /// arguments.
    pub fn call<K: ToRedisArgs>(&self, keys: impl ExactSizeIterator<Item = K>) -> Cmd {
        let mut call = Cmd::with_capacity(CALL_ARGS, CALL_BYTES);
        call.arg("EVALSHA").arg(&self.digest).arg(keys.len());
        keys.for_each(|key| {
            call.arg(key);
        });
        call
    }
}
