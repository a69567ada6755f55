//! Reads of a pool for a decision: an optimistic read without the bucket's lock, or a read with the lock.

use std::collections::HashMap;

use seatkeeper_core::rule::EVICTIONS_MAX;
use seatkeeper_core::{
    Bucket, Holder, LoadBound, Others, Pool, PoolId, RegistryTime, Session, SessionId, Span, Terms,
};
use sqlx::postgres::PgArguments;
use sqlx::query::QueryAs;
use sqlx::{PgConnection, Postgres};

use super::clock::warn_of_a_clock_that_is_behind;
use super::fault::Fault;
use super::row::{SeenRow, SeenSession, time, unsigned};
use super::section::Section;
use crate::contract::Receipt;
use crate::open_pool::OpenPool;

/// Number of stalest sessions per TTL that a read loads at first: nearly always enough.
const STALEST_SHOWN: u32 = 8;

/// The subject of a decision.
#[derive(Clone, Copy)]
pub(super) enum Target<'a> {
    /// A pool, with the holder and the sessions named by a claim.
    Pool { id: &'a PoolId, holder: Option<&'a Holder>, asked: [Option<SessionId>; 2] },
    /// A session, and its pool.
    Session(SessionId),
}

impl<'a> Target<'a> {
    pub(super) fn pool(id: &'a PoolId) -> Self {
        Self::Pool { id, holder: None, asked: [None; 2] }
    }

    pub(super) fn bucket(self) -> Bucket {
        match self {
            Self::Pool { id, .. } => id.bucket(),
            Self::Session(id) => id.bucket(),
        }
    }
}

/// The locking of a read.
#[derive(Clone, Copy)]
pub(super) enum Locking {
    /// Optimistic: the read waits for no lock. A later write fails if anything has changed.
    Without,
    /// The read waits for the bucket's lock, and holds the lock until the end of the transaction.
    With,
}

/// A snapshot of a bucket and a pool.
pub(super) struct PoolSnapshot {
    pub(super) bucket: Bucket,
    /// The bucket's number in the database.
    pub(super) number: i16,
    pub(super) epoch: u64,
    /// The epoch of receipts: in the lasting section, the generation of the database.
    pub(super) receipt_epoch: u64,
    pub(super) serving: bool,
    pub(super) fence: i64,
    /// End of the journal.
    pub(super) position: u64,
    /// Acknowledged position of the journal.
    pub(super) acknowledged: u64,
    pub(super) now: RegistryTime,
    /// The pool's row and revision; `None` if the pool is not open.
    pub(super) row: Option<(i64, i64)>,
    pub(super) open: Option<OpenPool>,
    /// The loaded sessions.
    pub(super) sessions: Vec<Session>,
    pub(super) terms: Option<Terms>,
    pub(super) live: u32,
    /// Number of stalest sessions loaded per TTL; `None` if all are loaded.
    shown: Option<u32>,
}

impl PoolSnapshot {
    /// Returns the receipt of a position in the snapshot's journal.
    pub(super) fn place(&self, position: u64) -> Receipt {
        Receipt { bucket: self.bucket, epoch: self.receipt_epoch, position }
    }
}

/// Reads the target, and loads at least the sessions that `load_bound` demands. Returns `Err(Conflict)` if an
/// optimistic read would have to load more than [`EVICTIONS_MAX`] per TTL.
pub(super) async fn read_pool(
    connection: &mut PgConnection,
    section: &Section,
    turn: Locking,
    target: Target<'_>,
    load_bound: impl Fn(&PoolSnapshot) -> LoadBound,
) -> Result<PoolSnapshot, Fault> {
    let mut stalest = Some(STALEST_SHOWN);
    loop {
        let seen = read_pool_once(connection, section, turn, target, stalest).await?;
        match (load_bound(&seen), seen.shown) {
            (_, None) => return Ok(seen),
            (LoadBound::Stalest(needed), Some(shown)) if needed <= shown => return Ok(seen),
            // As many as a claim ever needs are read again without the lock: other pools of the bucket do not wait.
            (LoadBound::Stalest(needed), Some(_)) if needed <= EVICTIONS_MAX => stalest = Some(needed),
            (LoadBound::Stalest(_) | LoadBound::Whole, Some(_)) if matches!(turn, Locking::Without) => {
                return Err(Fault::Conflict);
            }
            (LoadBound::Stalest(needed), Some(_)) => stalest = Some(needed),
            (LoadBound::Whole, Some(_)) => stalest = None,
        }
    }
}

async fn read_pool_once(
    connection: &mut PgConnection,
    section: &Section,
    turn: Locking,
    target: Target<'_>,
    stalest: Option<u32>,
) -> Result<PoolSnapshot, Fault> {
    let (number, receipt_epoch) = (section.number_of(target.bucket()), section.receipt_epoch());
    let rows = query(number, turn, target, stalest).fetch_all(connection).await?;
    let mut rows = rows.into_iter();
    let Some(first) = rows.next() else {
        return Err(Fault::Odd("a look shows at least the bucket"));
    };
    warn_of_a_clock_that_is_behind(first.behind);
    let mut view = View::default();
    view.add(first.session, stalest)?;
    for row in rows {
        view.add(row.session, stalest)?;
    }
    let (epoch, live) = (unsigned(first.epoch), first.pool.live.unwrap_or_default().cast_unsigned());
    let terms = first.pool.terms();
    let others = view.others(live);
    if stalest.is_none() && others.count > 0 {
        return Err(Fault::Odd("a pool counts sessions that are not there"));
    }
    let pool = Pool::in_view(terms, view.sessions.iter().cloned(), others);
    Ok(PoolSnapshot {
        bucket: target.bucket(),
        number,
        epoch,
        receipt_epoch: receipt_epoch.resolve(epoch),
        serving: first.serving,
        fence: first.fence,
        position: unsigned(first.position),
        acknowledged: unsigned(first.acknowledged),
        now: time(first.now),
        row: first.pool.pool.zip(first.pool.revision),
        terms,
        live,
        shown: (others.count > 0).then_some(stalest.unwrap_or_default()),
        open: first.pool.open(pool)?,
        sessions: view.sessions,
    })
}

fn query(
    number: i16,
    turn: Locking,
    target: Target<'_>,
    stalest: Option<u32>,
) -> QueryAs<'static, Postgres, SeenRow, PgArguments> {
    let (pool, session) = match target {
        Target::Pool { id, .. } => (Some(id), None),
        Target::Session(id) => (None, Some(id)),
    };
    let (holder, asked) = match target {
        Target::Pool { holder, asked, .. } => (holder, asked.into_iter().flatten().collect()),
        Target::Session(_) => (None, Vec::new()),
    };
    let sql = match turn {
        Locking::Without => include_str!("sql/glimpse.sql"),
        Locking::With => include_str!("sql/look.sql"),
    };
    sqlx::query_as(sql)
        .bind(number)
        .bind(pool.map(|pool| pool.kind.as_str()))
        .bind(pool.map(|pool| pool.tenant.to_string()))
        .bind(pool.map(|pool| pool.name.to_string()))
        .bind(session.map(SessionId::as_uuid))
        .bind(holder.map(Holder::to_string))
        .bind(asked.into_iter().map(SessionId::as_uuid).collect::<Vec<_>>())
        .bind(stalest.map(u32::cast_signed))
}

/// The sessions of a read, and a bound for the sessions left out.
#[derive(Default)]
struct View {
    sessions: Vec<Session>,
    /// For each TTL, the number of stalest sessions loaded, and the time at which the last of them falls
    /// silent.
    stalest: HashMap<Span, (u32, RegistryTime)>,
    /// Lower bound of the time at which a session left out falls silent.
    silent_from: Option<RegistryTime>,
}

impl View {
    fn add(&mut self, row: SeenSession, asked: Option<u32>) -> Result<(), Fault> {
        let is_stalest = row.is_stalest.unwrap_or_default();
        let Some(session) = row.read()? else { return Ok(()) };
        if is_stalest {
            let (count, last) = self.stalest.entry(session.ttl).or_default();
            *count += 1;
            *last = session.silent_until().max(*last);
            // A TTL with fewer sessions than asked for is loaded completely.
            if asked.is_some_and(|asked| *count >= asked) {
                self.silent_from = Some(self.silent_from.map_or(*last, |from| from.min(*last)));
            }
        }
        self.sessions.push(session);
        Ok(())
    }

    fn others(&self, live: u32) -> Others {
        Others {
            count: live.saturating_sub(self.sessions.len() as u32),
            silent_from: self.silent_from.unwrap_or_default(),
        }
    }
}
