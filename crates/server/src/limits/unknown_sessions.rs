//! A caller's quota of heartbeats with ids of no session.

use seatkeeper_engine::SearchQuota;

use super::key::Key;
use super::local::Local;
use super::rate::Rate;
use super::standing::Standing;
use crate::error::Error;

/// Counts the searches of one caller that found no session. Each search costs a query of the ledger.
pub(crate) struct UnknownSessions<'a> {
    pub(super) local: &'a Local,
    pub(super) key: Key,
    /// `None` without a limit.
    pub(super) rate: Option<Rate>,
}

impl SearchQuota for UnknownSessions<'_> {
    type Error = Error;

    fn check(&self) -> Result<(), Error> {
        let Some(rate) = self.rate else { return Ok(()) };
        let verdict = self.local.peek(self.key, rate);
        let wait_seconds = Standing::new(rate, verdict).wait_seconds;
        if verdict.passes { Ok(()) } else { Err(Error::TooOften { wait_seconds }) }
    }

    fn charge(&self) {
        if let Some(rate) = self.rate {
            self.local.count(self.key, rate);
        }
    }
}
