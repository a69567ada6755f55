//! Records as they are written.

use std::borrow::Cow;

use super::{Action, Stream};
use crate::chunks::{ChunkedStatement, sized_texts};
use crate::database::{Query, Tx};
use crate::row::stored_whole;
use crate::{Error, times};
use seatkeeper_core::{
    Actor, Change, Denied, Event, Holder, Origin, Particulars, PoolId, RegistryTime, Session, SessionId,
    Span, Tier, UserId,
};

/// The columns of `append_audit.sql`, in its order.
const COLUMNS: usize = 29;
/// Rows in one statement: past some hundred, a row costs no less.
const ROWS_MAX: usize = 256;

static APPEND: ChunkedStatement =
    ChunkedStatement::new(|| sized_texts(include_str!("../../sql/append_audit.sql"), COLUMNS, ROWS_MAX));

/// A record to be appended.
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

/// What a record tells of a session.
pub(crate) struct Subject<'a> {
    id: SessionId,
    tier: Tier,
    last_heartbeat: RegistryTime,
    expires: RegistryTime,
    admitted: Option<Admission<'a>>,
}

/// What only the record of an admission tells.
struct Admission<'a> {
    user: &'a UserId,
    ttl: Span,
    particulars: &'a Particulars,
}

impl<'a> Entry<'a> {
    /// The record of a registry's event.
    pub(crate) fn of(event: &'a Event) -> Self {
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

    fn bind<'c>(&self, query: Query<'c>) -> Query<'c> {
        let query = query
            .bind(times::stored(self.at))
            .bind(self.pool.tenant.as_str())
            .bind(self.pool.kind.as_str())
            .bind(&*self.pool.name)
            .bind(self.stream.as_str())
            .bind(stored_whole(self.seq))
            .bind(stored_whole(self.epoch))
            .bind(self.action.as_str())
            .bind(self.session.as_ref().map(|session| session.id.as_uuid()))
            .bind(self.holder.map(Holder::as_str))
            .bind(actor_text(&self.origin.actor))
            .bind(self.origin.request.as_ref().map(|request| request.as_str()))
            .bind(self.reason)
            .bind(i64::from(self.limit))
            .bind(stored_whole(self.version))
            .bind(self.live.map(i64::from))
            .bind(stored_whole(self.count))
            .bind(self.folded);
        bind_session(query, self.session.as_ref()).bind(self.detail.as_deref())
    }
}

fn bind_session<'c>(query: Query<'c>, session: Option<&Subject<'_>>) -> Query<'c> {
    let admitted = session.and_then(|session| session.admitted.as_ref());
    let particulars = admitted.map(|admitted| admitted.particulars);
    let device = particulars.and_then(|told| told.device.as_ref());
    query
        .bind(admitted.map(|admitted| admitted.user.as_str()))
        .bind(session.map(|session| i64::from(session.tier.0)))
        .bind(particulars.and_then(|told| told.ip).map(|ip| ip.to_string()))
        .bind(particulars.and_then(|told| told.user_agent.as_deref()))
        .bind(particulars.and_then(|told| told.metadata.as_deref()))
        .bind(device.map(|device| &*device.kind))
        .bind(device.and_then(|device| device.name.as_deref()))
        .bind(admitted.map(|admitted| stored_whole(admitted.ttl.as_millis())))
        .bind(session.map(|session| times::stored(session.last_heartbeat)))
        .bind(session.map(|session| times::stored(session.expires)))
}

fn actor_text(actor: &Actor) -> Cow<'static, str> {
    match actor {
        Actor::User(user) => format!("user:{user}").into(),
        Actor::Admin(user) => format!("admin:{user}").into(),
        Actor::System => "system".into(),
    }
}

/// The id of the newest record: what this transaction appends has greater ones.
pub(crate) async fn head(tx: &mut Tx) -> Result<i64, Error> {
    Ok(tx.query(include_str!("../../sql/audit_head.sql")).scalar().await?)
}

/// Appends records, but for those whose place is taken, and returns how many it appended.
pub(crate) async fn append(tx: &mut Tx, entries: &[Entry<'_>]) -> Result<usize, Error> {
    let mut appended = 0;
    for (statement, chunk) in APPEND.cut_filled(tx.dialect(), entries) {
        let query = chunk.fold(tx.query(statement), |query, entry| entry.bind(query));
        appended += query.execute().await? as usize;
    }
    Ok(appended)
}
