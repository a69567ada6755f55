//! Expiry of sessions in small pools, computed on the node. After a mass failure of clients nearly every due
//! pool is small, so the node computes each pool's next value, and Redis only compares and swaps
//! (`expire.lua`). A pool that changed meanwhile, and any pool of another kind, is swept by `sweep.lua`.

use seatkeeper_core::{Bucket, RegistryTime};
use seatkeeper_redis::Script;

mod expiring;

use self::expiring::Expiring;
use super::RedisRegistry;
use super::call::Call;
use super::keys::{BucketKeys, PoolKeys};
use super::scripts::SCRIPTS;
use crate::Error;

/// The result of a read of due pools.
pub(super) struct ExpiryScan<'p> {
    pub(super) at: RegistryTime,
    pub(super) expiring: Vec<Overdue<'p>>,
    /// Pools that need `sweep.lua`.
    pub(super) others: Vec<&'p PoolKeys>,
}

/// A pool as read, and its expiring sessions.
pub(super) struct Overdue<'p> {
    pool: &'p PoolKeys,
    kept: Vec<u8>,
    expiring: Expiring,
}

impl RedisRegistry {
    /// Reads due pools, and computes the expiry of small pools.
    pub(super) async fn scan<'p>(
        &self,
        bucket: Bucket,
        pools: &'p [PoolKeys],
    ) -> Result<ExpiryScan<'p>, Error> {
        let call = self.on_pools(&SCRIPTS.kept, bucket, pools.iter());
        let mut reply = self.call(call).await?;
        let mut scan = ExpiryScan { at: reply.now, expiring: Vec::new(), others: Vec::new() };
        for pool in pools {
            let kept = reply.values.bytes_if_any()?;
            // Undecodable pools are left to `sweep.lua`, which reports the error after the rest is swept.
            let found = kept.as_deref().and_then(|kept| Expiring::from_kept(kept, scan.at).ok().flatten());
            match (kept, found) {
                (Some(kept), Some(expiring)) => scan.expiring.push(Overdue { pool, kept, expiring }),
                _ => scan.others.push(pool),
            }
        }
        Ok(scan)
    }

    /// Ends the sessions computed at `at`, except in pools that changed since. Returns the number of ended
    /// sessions, and the changed pools, still to be swept.
    pub(super) async fn expire<'p>(
        &self,
        bucket: Bucket,
        at: RegistryTime,
        expiring: &[Overdue<'p>],
    ) -> Result<(usize, Vec<&'p PoolKeys>), Error> {
        let mut call = self.on_pools(&SCRIPTS.expire, bucket, expiring.iter().map(|found| found.pool));
        call = call.arg(at.as_millis());
        for Overdue { pool, kept, expiring: Expiring { before, behind, due, events } } in expiring {
            call = call.arg(&pool.reference).arg(kept).arg(before).arg(behind);
            call = call.arg(due.as_millis()).arg(events.len());
            call = events.iter().fold(call, Call::arg);
        }
        let mut reply = self.call(call).await?;
        self.expect(reply.receipt);
        let (mut ended, mut changed) = (0, Vec::new());
        for Overdue { pool, .. } in expiring {
            match reply.values.number()? {
                0 => changed.push(*pool),
                some => ended += some as usize,
            }
        }
        Ok((ended, changed))
    }

    /// Builds a call on several pools of a bucket.
    fn on_pools<'p>(
        &self,
        script: &'static Script,
        bucket: Bucket,
        pools: impl Iterator<Item = &'p PoolKeys>,
    ) -> Call {
        let BucketKeys { head, due, journal, .. } = self.keys.bucket(bucket);
        let keys: Vec<_> = [head, due, journal].into_iter().chain(pools.map(|pool| &pool.pool)).collect();
        self.on_keys(script, bucket, keys.into_iter())
    }
}

#[cfg(test)]
mod tests;
