//! A connection kept between two statements of a frequent caller.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPool;
use tokio::runtime::Handle;

/// The kept connection, with the time since which the connection is idle.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<Option<(PoolConnection<Postgres>, Instant)>>);

impl Kept {
    /// Takes the connection. A connection idle for `max` or longer returns to the pool, and `None` is returned.
    pub(crate) fn take_idle_for_less_than(&self, max: Duration) -> Option<PoolConnection<Postgres>> {
        let kept = self.0.lock().take();
        kept.filter(|(_, idle_since)| idle_since.elapsed() < max).map(|(connection, _)| connection)
    }

    /// Keeps a connection of `pool`, unless another caller may wait for the connection. The connection kept before
    /// returns to the pool.
    pub(crate) fn put(&self, connection: PoolConnection<Postgres>, pool: &PgPool) {
        let mut kept = self.0.lock();
        let has_more = pool.num_idle() > 0 || pool.size() < pool.options().get_max_connections();
        let returned = if has_more && !pool.is_closed() {
            kept.replace((connection, Instant::now())).map(|(before, _)| before)
        } else {
            Some(connection)
        };
        drop(kept);
        drop(returned);
    }

    /// Returns the connection to the pool.
    pub(crate) fn clear(&self) {
        let kept = self.0.lock().take();
        drop(kept);
    }
}

impl Drop for Kept {
    /// Outside a runtime a connection cannot return to its pool, which is gone as well.
    fn drop(&mut self) {
        if let Some((connection, _)) = self.0.get_mut().take()
            && Handle::try_current().is_err()
        {
            drop(connection.detach());
        }
    }
}
