//! Steps on a whole pool.

use async_trait::async_trait;
use seatkeeper_core::{EndReason, Origin, PoolId, Sight, Terms};

use super::PostgresRegistry;
use super::read_pool::Target;
use crate::Error;
use crate::contract::{EndedAll, PoolView, Pools};

#[async_trait]
impl Pools for PostgresRegistry {
    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error> {
        let made = self.step(
            Target::pool(pool),
            |_| Sight::Whole,
            |open, now, events| open.end_all(reason, origin, now, events).len(),
        );
        let made = made.await?.ok_or(Error::PoolNotOpen)?;
        Ok(EndedAll { count: made.value, receipt: made.receipt })
    }

    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error> {
        let made = self.step(
            Target::pool(pool),
            |seen| Sight::to_revise(seen.terms, Some(terms), seen.now),
            |open, now, events| open.revise(terms, origin, now, events).len(),
        );
        let made = made.await?.ok_or(Error::PoolNotOpen)?;
        Ok(EndedAll { count: made.value, receipt: made.receipt })
    }

    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error> {
        let made = self.step(
            Target::pool(pool),
            |seen| match Sight::to_forget(seen.terms, seen.now) {
                Sight::Stalest(_) if max < seen.live as usize => Sight::Stalest(max as u32),
                Sight::Stalest(_) | Sight::Whole => Sight::Whole,
            },
            |open, now, events| {
                open.forget_over(now, events);
                let sessions =
                    open.pool.stalest_first().take(max).map(|session| open.live_view(session, now)).collect();
                PoolView { live: open.pool.live(), terms: open.pool.terms(), sessions }
            },
        );
        Ok(made.await?.ok_or(Error::PoolNotOpen)?.value)
    }
}
