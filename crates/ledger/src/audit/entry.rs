//! An audit record before the write, with its values in stored form.

use std::borrow::Cow;

use chrono::{DateTime, Utc};
use seatkeeper_core::{
    Actor, Change, Denied, Device, Event, Holder, Origin, Particulars, PoolId, RegistryTime, Session,
    SessionId, Span, Tier, UserId,
};
use uuid::Uuid;

use super::{Action, Stream};
use crate::row::stored_whole;
use crate::times;

/// A record to append.
pub(crate) struct Entry<'a> {
    pub(crate) at: RegistryTime,
    pub(crate) pool: &'a PoolId,
    pub(crate) stream: Stream,
    pub(crate) seq: u64,
    pub(crate) epoch: u64,
    pub(crate) action: Action,
    pub(crate) origin: &'a Origin,
    pub(crate) limit: u32,
    pub(crate) version: u64,
    pub(crate) live: Option<u32>,
    pub(crate) count: u64,
    pub(crate) folded: bool,
    pub(crate) reason: Option<&'static str>,
    pub(crate) holder: Option<&'a Holder>,
    pub(crate) session: Option<Subject<'a>>,
    pub(crate) detail: Option<String>,
}

/// The part of a record about a session.
pub(crate) struct Subject<'a> {
    id: SessionId,
    tier: Tier,
    last_heartbeat: RegistryTime,
    expires: RegistryTime,
    admitted: Option<Admission<'a>>,
}

/// The part of a record found only in admissions.
struct Admission<'a> {
    user: &'a UserId,
    ttl: Span,
    particulars: &'a Particulars,
}

impl<'a> Entry<'a> {
    /// Builds the record of a registry's event.
    pub(crate) fn from_event(event: &'a Event) -> Self {
        let entry = Self {
            at: event.at,
            pool: &event.pool,
            stream: Stream::Session,
            seq: event.seq,
            epoch: event.epoch,
            action: Action::Denied,
            origin: &event.origin,
            limit: event.limit.0,
            version: event.version,
            live: Some(event.live),
            count: 1,
            folded: false,
            reason: None,
            holder: None,
            session: None,
            detail: None,
        };
        match &event.change {
            Change::Admitted { session, expires, particulars } => {
                entry.admitted(session, *expires, particulars)
            }
            Change::Ended { session, holder, tier, reason, last_heartbeat, expires } => Self {
                action: Action::Ended,
                reason: Some(reason.as_str()),
                holder: Some(holder),
                session: Some(Subject {
                    id: *session,
                    tier: *tier,
                    last_heartbeat: *last_heartbeat,
                    expires: *expires,
                    admitted: None,
                }),
                ..entry
            },
            Change::Denied(denied) => entry.denied(denied),
        }
    }

    fn admitted(self, session: &'a Session, expires: RegistryTime, particulars: &'a Particulars) -> Self {
        let admission = Admission { user: session.users.first(), ttl: session.ttl, particulars };
        Self {
            action: Action::Admitted,
            holder: Some(&session.holder),
            session: Some(Subject {
                id: session.id,
                tier: session.tier,
                last_heartbeat: session.last_heartbeat,
                expires,
                admitted: Some(admission),
            }),
            ..self
        }
    }

    fn denied(self, denied: &'a Denied) -> Self {
        Self {
            reason: Some(denied.why.as_str()),
            holder: Some(&denied.holder),
            count: denied.count,
            folded: denied.folded,
            ..self
        }
    }
}

/// Columns whose stored form differs from the field's type.
impl Entry<'_> {
    pub(crate) fn at(&self) -> DateTime<Utc> {
        times::stored(self.at)
    }

    pub(crate) fn seq(&self) -> i64 {
        stored_whole(self.seq)
    }

    pub(crate) fn epoch(&self) -> i64 {
        stored_whole(self.epoch)
    }

    pub(crate) fn session_id(&self) -> Option<Uuid> {
        self.session.as_ref().map(|session| session.id.as_uuid())
    }

    pub(crate) fn holder(&self) -> Option<&str> {
        self.holder.map(Holder::as_str)
    }

    pub(crate) fn actor(&self) -> Cow<'static, str> {
        match &self.origin.actor {
            Actor::User(user) => format!("user:{user}").into(),
            Actor::Admin(user) => format!("admin:{user}").into(),
            Actor::System => "system".into(),
        }
    }

    pub(crate) fn request(&self) -> Option<&str> {
        self.origin.request.as_ref().map(|request| request.as_str())
    }

    pub(crate) fn limit(&self) -> i64 {
        i64::from(self.limit)
    }

    pub(crate) fn version(&self) -> i64 {
        stored_whole(self.version)
    }

    pub(crate) fn live(&self) -> Option<i64> {
        self.live.map(i64::from)
    }

    pub(crate) fn count(&self) -> i64 {
        stored_whole(self.count)
    }

    pub(crate) fn user(&self) -> Option<&str> {
        self.admission().map(|admission| admission.user.as_str())
    }

    pub(crate) fn tier(&self) -> Option<i64> {
        self.session.as_ref().map(|session| i64::from(session.tier.0))
    }

    pub(crate) fn ip(&self) -> Option<String> {
        self.particulars().and_then(|told| told.ip).map(|ip| ip.to_string())
    }

    pub(crate) fn user_agent(&self) -> Option<&str> {
        self.particulars().and_then(|told| told.user_agent.as_deref())
    }

    pub(crate) fn metadata(&self) -> Option<&str> {
        self.particulars().and_then(|told| told.metadata.as_deref())
    }

    pub(crate) fn device_type(&self) -> Option<&str> {
        self.device().map(|device| &*device.kind)
    }

    pub(crate) fn device_name(&self) -> Option<&str> {
        self.device().and_then(|device| device.name.as_deref())
    }

    pub(crate) fn ttl(&self) -> Option<i64> {
        self.admission().map(|admission| stored_whole(admission.ttl.as_millis()))
    }

    pub(crate) fn last_heartbeat(&self) -> Option<DateTime<Utc>> {
        self.session.as_ref().map(|session| times::stored(session.last_heartbeat))
    }

    pub(crate) fn expires(&self) -> Option<DateTime<Utc>> {
        self.session.as_ref().map(|session| times::stored(session.expires))
    }

    fn admission(&self) -> Option<&Admission<'_>> {
        self.session.as_ref().and_then(|session| session.admitted.as_ref())
    }

    fn particulars(&self) -> Option<&Particulars> {
        self.admission().map(|admission| admission.particulars)
    }

    fn device(&self) -> Option<&Device> {
        self.particulars().and_then(|told| told.device.as_ref())
    }
}
