//! Replies of scripts. A reply from a served bucket updates the backlog with the end of the bucket's journal.

use std::sync::Arc;
use std::vec;

use redis::Value;
use seatkeeper_core::{PoolId, RegistryTime, Session, Span};
use seatkeeper_redis::{Answer, Connection};

use super::RedisRegistry;
use super::codec::{Garbled, session_of};
use super::head::{Demand, Stage};
use super::scripts::{JOURNAL_FULL, KEY_NEEDED, NOT_OPEN, NOT_SERVING};
use crate::{Error, Live, Receipt};

/// A backward step of the server's clock beyond this span is logged.
const STEP_NOTABLE: Span = Span::from_secs(1);

/// An array of numbers and bytes, read from its start.
#[derive(Debug)]
pub(super) struct Values(vec::IntoIter<Value>);

/// The reply of a script on a bucket.
#[derive(Debug)]
pub(super) struct Reply {
    /// The server's time.
    pub(super) now: RegistryTime,
    /// End of the bucket's journal, which covers the step and every event that the step rests on.
    pub(super) receipt: Receipt,
    /// Number of acknowledged events of the journal.
    pub(super) acknowledged: u64,
    /// The connection to the server that replied.
    pub(super) connection: Arc<Connection>,
    /// True if the call was sent more than once: the script may have met the effect of its own first run.
    pub(super) is_repeated: bool,
    /// The result of the step.
    pub(super) values: Values,
}

impl RedisRegistry {
    /// Reads the answer to a call with this demand. Returns `None` if the script needs the key of a session's
    /// holder, which the call did not give.
    pub(super) fn read(&self, demand: Demand, answer: Answer) -> Result<Option<Reply>, Error> {
        let (Demand { bucket, stage, epoch }, Answer { value, connection, is_repeated }) = (demand, answer);
        let mut values = Values::from_value(value)?;
        match values.signed()? {
            NOT_SERVING => {
                connection.doubt_identity();
                Err(Error::NotServing { bucket })
            }
            NOT_OPEN => Err(Error::PoolNotOpen),
            JOURNAL_FULL => Err(Error::JournalFull { depth: values.number()? as usize }),
            KEY_NEEDED => Ok(None),
            now => {
                let now = RegistryTime::from_millis(now as u64);
                let behind = Span::from_millis(values.number()?);
                let receipt = Receipt { bucket, epoch, position: values.number()? };
                let acknowledged = values.number()?;
                warn_of_step(behind);
                self.clock_estimates.note_lag(bucket, behind);
                if stage == Stage::Serving {
                    self.backlog.note(receipt, acknowledged);
                }
                Ok(Some(Reply { now, receipt, acknowledged, connection, is_repeated, values }))
            }
        }
    }
}

impl Reply {
    /// Reads a session, in the order of `shown` in `lib/session.lua`: id, last heartbeat, TTL, expiry, body.
    pub(super) fn live(&mut self, pool: &PoolId) -> Result<Live, Garbled> {
        let values = &mut self.values;
        let id = values.bytes()?;
        let last_heartbeat = values.time()?;
        let ttl = Span::from_millis(values.number()?);
        let expires = values.time()?;
        let session: Session = session_of(pool, &id, last_heartbeat, ttl, &values.bytes()?)?;
        Ok(Live { session, pool: pool.clone(), expires, expires_in: expires.since(self.now) })
    }
}

impl Values {
    pub(super) fn from_value(value: Value) -> Result<Self, Garbled> {
        let Value::Array(values) = value else { return Err(Garbled("a reply is no array")) };
        Ok(Self(values.into_iter()))
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    /// Removes the events at the end of a reply: see `with_events` in `lib/record.lua`. Returns an empty list
    /// for a reply without events.
    pub(super) fn take_events(&mut self) -> Vec<Vec<u8>> {
        let Some(Value::Array(_)) = self.0.as_slice().last() else { return Vec::new() };
        let Some(Value::Array(events)) = self.0.next_back() else { return Vec::new() };
        let bytes = |event| if let Value::BulkString(bytes) = event { Some(bytes) } else { None };
        // An event that cannot be kept is read from the journal.
        events.into_iter().map(bytes).collect::<Option<_>>().unwrap_or_default()
    }

    pub(super) fn signed(&mut self) -> Result<i64, Garbled> {
        match self.0.next() {
            Some(Value::Int(number)) => Ok(number),
            _ => Err(Garbled("a reply lacks a number")),
        }
    }

    /// Reads a number and rejects negative numbers.
    pub(super) fn number(&mut self) -> Result<u64, Garbled> {
        u64::try_from(self.signed()?).map_err(|_| Garbled("a negative number"))
    }

    pub(super) fn time(&mut self) -> Result<RegistryTime, Garbled> {
        Ok(RegistryTime::from_millis(self.number()?))
    }

    /// Reads a time given as text, as Redis returns scores.
    pub(super) fn time_text(&mut self) -> Result<RegistryTime, Garbled> {
        let text = String::from_utf8(self.bytes()?).ok();
        let millis = text.and_then(|text| text.parse().ok()).ok_or(Garbled("a score is no time"))?;
        Ok(RegistryTime::from_millis(millis))
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Garbled> {
        match self.0.next() {
            Some(Value::BulkString(bytes)) => Ok(bytes),
            _ => Err(Garbled("a reply lacks bytes")),
        }
    }

    /// Reads bytes or nil.
    pub(super) fn bytes_if_any(&mut self) -> Result<Option<Vec<u8>>, Garbled> {
        match self.0.next() {
            Some(Value::BulkString(bytes)) => Ok(Some(bytes)),
            Some(Value::Nil) => Ok(None),
            _ => Err(Garbled("a reply lacks bytes or nothing")),
        }
    }

    /// Reads a nested array.
    pub(super) fn array(&mut self) -> Result<Vec<Value>, Garbled> {
        match self.0.next() {
            Some(Value::Array(values)) => Ok(values),
            _ => Err(Garbled("a reply lacks an array")),
        }
    }
}

/// Logs a backward step of the server's clock.
pub(super) fn warn_of_step(behind: Span) {
    if behind > STEP_NOTABLE {
        tracing::warn!(
            behind_ms = behind.as_millis(),
            "Redis's clock went back; no session expires until the clock has caught up; check time synchronisation"
        );
    }
}
