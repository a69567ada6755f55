//! Steps on a whole pool.

use async_trait::async_trait;
use seatkeeper_core::{EndReason, LoadBound, Origin, PoolId, Terms};

use super::PostgresRegistry;
use super::read_pool::Target;
use crate::Error;
use crate::contract::{EndedAll, PoolView, Pools};

#[async_trait]
impl Pools for PostgresRegistry {
    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error> {
        let made = self.step(
            Target::pool(pool),
            |_| LoadBound::Whole,
            |open, now, events| open.end_all(reason, origin, now, events).len(),
        );
        let made = made.await?.ok_or(Error::PoolNotOpen)?;
        Ok(EndedAll { count: made.value, receipt: made.receipt })
    }

    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error> {
        let made = self.step(
            Target::pool(pool),
            |seen| LoadBound::to_revise(seen.terms, Some(terms), seen.now),
            |open, now, events| open.revise(terms, origin, now, events).len(),
        );
        let made = made.await?.ok_or(Error::PoolNotOpen)?;
        Ok(EndedAll { count: made.value, receipt: made.receipt })
    }

    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error> {
        let made = self.step(
            Target::pool(pool),
            |seen| match LoadBound::to_forget(seen.terms, seen.now) {
                LoadBound::Stalest(_) if max < seen.live as usize => LoadBound::Stalest(max as u32),
                LoadBound::Stalest(_) | LoadBound::Whole => LoadBound::Whole,
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
