//! What a script replies.

use std::vec;

use redis::Value;
use seatkeeper_core::{Bucket, PoolId, RegistryTime, Session, Span};

use super::codec::{Garbled, session_of};
use crate::{Live, Receipt};

/// A script's reply: an array of numbers and bytes, read from its start.
#[derive(Debug)]
pub(super) struct Reply(vec::IntoIter<Value>);

/// What every script on a served bucket says first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preamble {
    pub(super) epoch: u64,
    pub(super) now: RegistryTime,
    /// How far the server's clock is behind that.
    pub(super) behind: Span,
    /// The position of the journal's last event.
    pub(super) last: u64,
    /// How many events are acknowledged.
    pub(super) acknowledged: u64,
}

impl Preamble {
    /// The place in the journal that covers all that the step did and rests on.
    pub(super) const fn receipt(&self, bucket: Bucket) -> Receipt {
        Receipt { bucket, epoch: self.epoch, position: self.last }
    }
}

impl Reply {
    pub(super) fn of(value: Value) -> Result<Self, Garbled> {
        let Value::Array(values) = value else { return Err(Garbled("a reply is no array")) };
        Ok(Self(values.into_iter()))
    }

    /// The rest of what comes first, behind the time.
    pub(super) fn preamble(&mut self, epoch: u64, now: i64) -> Result<Preamble, Garbled> {
        Ok(Preamble {
            epoch,
            now: RegistryTime::from_millis(now as u64),
            behind: Span::from_millis(self.number()?),
            last: self.number()?,
            acknowledged: self.number()?,
        })
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    pub(super) fn signed(&mut self) -> Result<i64, Garbled> {
        match self.0.next() {
            Some(Value::Int(number)) => Ok(number),
            _ => Err(Garbled("a reply lacks a number")),
        }
    }

    /// A number that is not negative.
    pub(super) fn number(&mut self) -> Result<u64, Garbled> {
        u64::try_from(self.signed()?).map_err(|_| Garbled("a negative number"))
    }

    pub(super) fn time(&mut self) -> Result<RegistryTime, Garbled> {
        Ok(RegistryTime::from_millis(self.number()?))
    }

    /// A time that Redis gives as a text, as it does with scores.
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

    /// Bytes that may be missing.
    pub(super) fn bytes_if_any(&mut self) -> Result<Option<Vec<u8>>, Garbled> {
        match self.0.next() {
            Some(Value::BulkString(bytes)) => Ok(Some(bytes)),
            Some(Value::Nil) => Ok(None),
            _ => Err(Garbled("a reply lacks bytes or nothing")),
        }
    }

    /// An array within the reply.
    pub(super) fn array(&mut self) -> Result<Vec<Value>, Garbled> {
        match self.0.next() {
            Some(Value::Array(values)) => Ok(values),
            _ => Err(Garbled("a reply lacks an array")),
        }
    }

    /// A session as a script shows it: id, last heartbeat, TTL, expiry, body.
    pub(super) fn live(&mut self, pool: &PoolId, now: RegistryTime) -> Result<Live, Garbled> {
        let id = self.bytes()?;
        let last_heartbeat = self.time()?;
        let ttl = Span::from_millis(self.number()?);
        let expires = self.time()?;
        let session: Session = session_of(pool, &id, last_heartbeat, ttl, &self.bytes()?)?;
        Ok(Live { session, pool: pool.clone(), expires, expires_in: expires.since(now) })
    }
}
