//! A caller's quota of searches for ids of no session.

use std::collections::HashMap;
use std::pin::pin;

use parking_lot::Mutex;
use seatkeeper_core::PoolKind;
use seatkeeper_engine::{ChargedSearch, SearchQuota};
use tokio::sync::Notify;

use super::key::Key;
use super::local::Local;
use super::rate::Rate;
use super::standing::Standing;
use crate::auth::Caller;
use crate::error::Error;

/// The searches under way on this node, by the key of the rate.
#[derive(Default)]
pub(super) struct Searches {
    under_way: Mutex<HashMap<Key, usize>>,
    /// Notified at the end of each search.
    ended: Notify,
}

/// Counts the searches of one caller that found no session. Each search costs a query of the ledger.
pub(crate) struct UnknownSessions<'a> {
    pub(super) local: &'a Local,
    pub(super) searches: &'a Searches,
    pub(super) kind: PoolKind,
    pub(super) who: &'a Caller,
    /// `None` without a limit.
    pub(super) rate: Option<Rate>,
}

/// A search under way; `None` without a limit.
pub(crate) struct Search<'a>(Option<Charge<'a>>);

struct Charge<'a> {
    local: &'a Local,
    searches: &'a Searches,
    key: Key,
    rate: Rate,
}

impl<'a> SearchQuota for UnknownSessions<'a> {
    type Error = Error;
    type Search = Search<'a>;

    async fn charge(&self) -> Result<Search<'a>, Error> {
        let Some(rate) = self.rate else { return Ok(Search(None)) };
        // Most heartbeats find their session and need no such key.
        let key = Key::of_unknown_sessions(self.kind, self.who);
        loop {
            let mut ended = pin!(self.searches.ended.notified());
            // Waits from here on for the end of a search, so that no end is missed after the count below.
            ended.as_mut().enable();
            if let Some(charge) = self.count(key, rate)? {
                return Ok(Search(Some(charge)));
            }
            ended.await;
        }
    }
}

impl<'a> UnknownSessions<'a> {
    /// Counts a search. Returns `None` while searches under way have the rest of the quota.
    fn count(&self, key: Key, rate: Rate) -> Result<Option<Charge<'a>>, Error> {
        let mut under_way = self.searches.under_way.lock();
        let verdict = self.local.count(key, rate);
        if verdict.passes {
            *under_way.entry(key).or_default() += 1;
            return Ok(Some(Charge { local: self.local, searches: self.searches, key, rate }));
        }
        if under_way.contains_key(&key) {
            return Ok(None);
        }
        Err(Error::TooOften { wait_seconds: Standing::new(rate, verdict).wait_seconds })
    }
}

impl ChargedSearch for Search<'_> {
    fn give_back(self) {
        if let Some(charge) = &self.0 {
            charge.local.give_back(charge.key, charge.rate);
        }
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        let mut under_way = self.searches.under_way.lock();
        if let Some(count) = under_way.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                under_way.remove(&self.key);
            }
        }
        drop(under_way);
        self.searches.ended.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
