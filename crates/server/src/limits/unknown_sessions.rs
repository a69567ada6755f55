//! A caller's quota of heartbeats with ids of no session.

use seatkeeper_core::PoolKind;
use seatkeeper_engine::SearchQuota;

use super::key::Key;
use super::local::Local;
use super::rate::Rate;
use super::standing::Standing;
use crate::auth::Caller;
use crate::error::Error;

/// Counts the searches of one caller that found no session. Each search costs a query of the ledger.
pub(crate) struct UnknownSessions<'a> {
    pub(super) local: &'a Local,
    pub(super) kind: PoolKind,
    pub(super) who: &'a Caller,
    /// `None` without a limit.
    pub(super) rate: Option<Rate>,
}

impl UnknownSessions<'_> {
    /// Hashes the key of the rate. Most heartbeats find their session and need no such key.
    fn key(&self) -> Key {
        Key::of_unknown_sessions(self.kind, self.who)
    }
}

impl SearchQuota for UnknownSessions<'_> {
    type Error = Error;

    fn check(&self) -> Result<(), Error> {
        let Some(rate) = self.rate else { return Ok(()) };
        let verdict = self.local.peek(self.key(), rate);
        let wait_seconds = Standing::new(rate, verdict).wait_seconds;
        if verdict.passes { Ok(()) } else { Err(Error::TooOften { wait_seconds }) }
    }

    fn charge(&self) {
        if let Some(rate) = self.rate {
            self.local.count(self.key(), rate);
        }
    }
}
