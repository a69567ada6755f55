//! Writes the changes of a decision, and its events, by one statement (`registry.write`).

use std::collections::HashSet;

use seatkeeper_core::{DenialFold, Event, RegistryTime, Session, SessionId, Standing};
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::types::Json;
use uuid::Uuid;

use super::fault::Fault;
use super::read_pool::PoolSnapshot;
use super::row::{signed, unsigned};
use super::unreadable::Unreadable;
use crate::contract::Receipt;
use crate::open_pool::{OpenPool, Record};

/// The events of a step.
pub(super) struct Events {
    epoch: u64,
    /// End of the journal before the step.
    before: u64,
    list: Vec<Event>,
}

impl Record for Events {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn push(&mut self, event: Event) {
        self.list.push(event);
    }

    fn end(&self) -> u64 {
        self.before + self.list.len() as u64
    }
}

impl Events {
    pub(super) fn count(&self) -> usize {
        self.list.len()
    }

    /// Creates an empty list for a step on a pool.
    pub(super) fn of_step(seen: &PoolSnapshot) -> Self {
        Self { epoch: seen.epoch, before: seen.position, list: Vec::new() }
    }
}

/// The fate of a pool in a step.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The pool stays open.
    Open,
    /// The pool closes, because nobody needs it.
    Closed,
}

/// A pool before and after a step.
pub(super) struct Change<'a> {
    pub(super) seen: &'a PoolSnapshot,
    /// The pool's columns before the step; `None` for a pool without a row.
    pub(super) before: Option<Columns>,
    pub(super) open: &'a OpenPool,
    pub(super) events: &'a Events,
    pub(super) fate: Fate,
}

/// A session that stays, with changes.
#[derive(Serialize)]
struct Kept<'a> {
    id: Uuid,
    users: Vec<&'a str>,
    last_heartbeat: i64,
    ttl: i64,
}

/// A new session.
#[derive(Serialize)]
struct New<'a> {
    id: Uuid,
    holder: &'a str,
    users: Vec<&'a str>,
    started: i64,
    last_heartbeat: i64,
    ttl: i64,
    tier: u8,
}

/// The columns of a pool that a step can change.
#[derive(PartialEq)]
pub(super) struct Columns {
    seq: i64,
    live: i32,
    terms_version: Option<i64>,
    seats: Option<i64>,
    ttl: Option<i64>,
    ends_at: Option<i64>,
    closed: Option<bool>,
    due: i64,
    empty_since: Option<i64>,
    denials: Option<DenialFold>,
}

impl Columns {
    pub(super) fn new(open: &OpenPool, now: RegistryTime) -> Self {
        let terms = open.pool.terms();
        let millis = |time: RegistryTime| signed(time.as_millis());
        Self {
            seq: signed(open.seq),
            live: open.pool.live().cast_signed(),
            terms_version: terms.map(|terms| signed(terms.version)),
            seats: terms.map(|terms| i64::from(terms.limit.0)),
            ttl: terms.map(|terms| signed(terms.ttl.as_millis())),
            ends_at: terms.and_then(|terms| terms.ends_at).map(millis),
            closed: terms.map(|terms| terms.standing == Standing::Closed),
            due: millis(open.due.unwrap_or(now)),
            empty_since: open.empty_since.map(millis),
            denials: open.denials.as_deref().cloned(),
        }
    }
}

impl Change<'_> {
    /// Writes the change, if the decision made a change. Returns the position that must be durable before the
    /// result is told.
    pub(super) async fn write(self, connection: &mut PgConnection) -> Result<Receipt, Fault> {
        let Self { seen, before, open, events, fate } = self;
        let ids: HashSet<SessionId> = seen.sessions.iter().map(|session| session.id).collect();
        let gone: Vec<&Session> =
            seen.sessions.iter().filter(|session| open.pool.get(session.id).is_none()).collect();
        let kept: Vec<_> = seen.sessions.iter().filter_map(|before| kept(before, open)).collect();
        let new: Vec<_> =
            open.pool.iter().filter(|session| !ids.contains(&session.id)).map(New::from).collect();
        let columns = Columns::new(open, seen.now);
        let nothing = before.is_some_and(|before| before == columns)
            && fate == Fate::Open
            && gone.is_empty()
            && kept.is_empty()
            && new.is_empty()
            && events.list.is_empty();
        if nothing {
            return Ok(seen.place(seen.position));
        }
        let texts: Result<Vec<_>, _> = events.list.iter().map(serde_json::to_string).collect();
        let texts = texts.map_err(Unreadable::from)?;
        let position: i64 = sqlx::query_scalar(include_str!("sql/write.sql"))
            .bind(seen.number)
            .bind(seen.fence)
            .bind(signed(seen.now.as_millis()))
            .bind(seen.row.map(|(pool, _)| pool))
            .bind(seen.row.map(|(_, revision)| revision))
            .bind(open.id.kind.as_str())
            .bind(open.id.tenant.as_str())
            .bind(&*open.id.name)
            .bind(columns.seq)
            .bind(columns.live)
            .bind(columns.terms_version)
            .bind(columns.seats)
            .bind(columns.ttl)
            .bind(columns.ends_at)
            .bind(columns.closed)
            .bind(columns.due)
            .bind(columns.empty_since)
            .bind(columns.denials.map(Json))
            .bind(fate == Fate::Closed)
            .bind(gone.iter().map(|session| session.id.as_uuid()).collect::<Vec<_>>())
            .bind(gone.iter().map(|session| signed(session.last_heartbeat.as_millis())).collect::<Vec<_>>())
            .bind((!kept.is_empty()).then_some(Json(kept)))
            .bind((!new.is_empty()).then_some(Json(new)))
            .bind(texts)
            .fetch_one(connection)
            .await
            .map_err(Fault::of_commit)?;
        Ok(seen.place(unsigned(position)))
    }
}

/// Returns the session's new state, if the session stays and has changed.
fn kept<'a>(before: &Session, open: &'a OpenPool) -> Option<Kept<'a>> {
    let after = open.pool.get(before.id).filter(|after| *after != before)?;
    Some(Kept {
        id: after.id.as_uuid(),
        users: after.users.iter().map(|user| user.as_str()).collect(),
        last_heartbeat: signed(after.last_heartbeat.as_millis()),
        ttl: signed(after.ttl.as_millis()),
    })
}

impl<'a> From<&'a Session> for New<'a> {
    fn from(session: &'a Session) -> Self {
        Self {
            id: session.id.as_uuid(),
            holder: session.holder.as_str(),
            users: session.users.iter().map(|user| user.as_str()).collect(),
            started: signed(session.started.as_millis()),
            last_heartbeat: signed(session.last_heartbeat.as_millis()),
            ttl: signed(session.ttl.as_millis()),
            tier: session.tier.0,
        }
    }
}
