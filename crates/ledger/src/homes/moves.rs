//! Moves of homes between regions. A move is on record in both regions before the target admits, and every step may be
//! repeated: a step of an older version, or of a version that is done, changes nothing.

use std::cmp::Reverse;

use chrono::{DateTime, Utc};
use seatkeeper_core::{
    Change, Event, Origin, Particulars, PoolId, PoolKind, Region, RegistryTime, Seats, Session, SessionId,
    TenantId, Terms, UserId,
};

use super::{Home, HomeState, read, region_from, stored};
use crate::audit::{self, Entry};
use crate::database::{Row, Tx};
use crate::row::{Fields, stored_whole};
use crate::sessions::SessionRecord;
use crate::{Error, KeptAnswer, Ledger, apply, buckets, chain, idempotency, tenants, times};

/// A home on its way out of this region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The subscriber's tenant.
    pub tenant: TenantId,
    /// The subscriber.
    pub user: UserId,
    /// The home, in its target.
    pub home: Home,
    /// The start of the move, by the database's clock.
    pub since: RegistryTime,
    /// The number of the pool's last event when the move began.
    pub seq: u64,
}

/// A home that arrives in a region, with the live sessions of the subscriber.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// The subscriber's tenant.
    pub tenant: TenantId,
    /// The subscriber.
    pub user: UserId,
    /// The version of the home in this region.
    pub version: u64,
    /// The region that the home left.
    pub from: Region,
    /// The number of the pool's last event in that region.
    pub peer_seq: u64,
    /// The sessions, each with the particulars of its admission.
    pub sessions: Vec<(Session, Particulars)>,
    /// The kept answers of the writes to the subscription.
    pub answers: Vec<KeptAnswer>,
    /// The way by which the home comes.
    pub kind: ArrivalKind,
    /// The end of the silence of a moved home. The silence of an adopted home ends at the time of the adoption on record.
    pub admits_from: Option<RegistryTime>,
}

/// The way by which a home comes to a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalKind {
    /// The old region hands the home over.
    Moved,
    /// The old region is lost, and its restored ledger has the home. Sessions on record here, and sessions beyond the
    /// limit, are left out.
    Adopted,
}

impl Departure {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            tenant: TenantId::new(fields.value::<&str>("tenant_id")?),
            user: UserId::new(fields.value::<&str>("user_id")?),
            home: Home::read(row)?,
            since: fields.time("since")?,
            seq: fields.whole("seq")?,
        })
    }

    /// Returns the pool of the subscriber.
    pub fn pool(&self) -> PoolId {
        subscriber_pool(&self.tenant, &self.user)
    }

    /// Returns whether the home of this subscriber departs.
    pub(super) fn is_of(&self, tenant: &TenantId, user: &UserId) -> bool {
        self.tenant == *tenant && self.user == *user
    }
}

impl Ledger {
    /// Begins the move of a home from `own`, the region of this ledger, to region `to`, and returns the home on record.
    /// A home that is not in `own` stays unchanged.
    pub async fn begin_home_move(
        &self,
        tenant: &TenantId,
        user: &UserId,
        own: Region,
        to: Region,
    ) -> Result<Option<Home>, Error> {
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        // A write to the subscription under way ends before the move begins, so the handover has its effect.
        tenants::hold(&mut tx, tenant, times::from_stored(now)).await?;
        let seq = last_event(&mut tx, &subscriber_pool(tenant, user)).await?;
        let begun = tx.query(include_str!("../../sql/begin_home_move.sql"));
        let begun = begun.bind(tenant.as_str()).bind(user.as_str()).bind(stored(to)).bind(stored(own));
        begun.bind(now).bind(seq).execute().await?;
        let home = read(&mut tx, tenant, user).await?;
        tx.commit().await?;
        Ok(home)
    }

    /// Returns the number of homes on their way out of this region.
    pub async fn count_homes_moving(&self) -> Result<u64, Error> {
        let moving = self.readers().query(include_str!("../../sql/count_homes_moving.sql"));
        Ok(moving.scalar::<i64>().await?.unsigned_abs())
    }

    /// Returns the homes on their way out of this region.
    pub async fn homes_moving(&self) -> Result<Vec<Departure>, Error> {
        let rows = self.readers().query(include_str!("../../sql/homes_moving.sql")).fetch_all().await?;
        rows.iter().map(Departure::read).collect()
    }

    /// Returns a subscriber's home on its way out of this region.
    pub async fn home_moving(&self, tenant: &TenantId, user: &UserId) -> Result<Option<Departure>, Error> {
        let home = self.readers().query(include_str!("../../sql/home.sql"));
        let Some(row) = home.bind(tenant.as_str()).bind(user.as_str()).fetch_optional().await? else {
            return Ok(None);
        };
        match Home::read(&row)?.state {
            HomeState::Moving => Departure::read(&row).map(Some),
            HomeState::Here | HomeState::Moved => Ok(None),
        }
    }

    /// Returns the sessions that a departing home takes along: the sessions that ended as `moved` since the move began.
    pub async fn departed_sessions(&self, departure: &Departure) -> Result<Vec<SessionRecord>, Error> {
        let query = self.readers().query(include_str!("../../sql/departed_sessions.sql"));
        let rows = query.bind_pool(&departure.pool()).bind(stored_whole(departure.seq)).fetch_all().await?;
        rows.iter().map(SessionRecord::read).collect()
    }

    /// Returns the region to which a session moved on when its home left this region. `None` for a session that did not end
    /// here as `moved`, and while the move is under way.
    pub async fn session_moved_to(&self, id: SessionId) -> Result<Option<Region>, Error> {
        let target = self.readers().query(include_str!("../../sql/session_moved_to.sql"));
        let target: Option<i64> = target.bind(id.as_uuid()).scalar_optional().await?;
        target.map(region_from).transpose()
    }

    /// Ends the move of a home out of this region: the target has taken over.
    pub async fn end_home_move(&self, departure: &Departure) -> Result<(), Error> {
        let (tenant, user) = (departure.tenant.as_str(), departure.user.as_str());
        let version = stored_whole(departure.home.version);
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        let ended = tx.query(include_str!("../../sql/end_home_move.sql"));
        let ended = ended.bind(tenant).bind(user).bind(version).bind(now);
        let ended = ended.bind(stored(departure.home.region)).execute().await?;
        if ended > 0 {
            note_left(&mut tx, departure, now).await?;
        }
        tx.commit().await
    }

    /// Takes over a home in `own`, the region of this ledger: the home, its sessions and the mark of the move, in one
    /// transaction. The sessions are admitted by `terms` at `now`, the registry's time. Returns the home on record. An
    /// arrival of an older version, or of a version on record, changes nothing.
    ///
    /// Returns `Err(RegionAdopted)` for a home moved from a region whose adoption is on record: the successor of the region
    /// takes the home over.
    pub async fn take_home(
        &self,
        arrival: &Arrival,
        own: Region,
        terms: Terms,
        now: RegistryTime,
    ) -> Result<Option<Home>, Error> {
        let (tenant, user) = (arrival.tenant.as_str(), arrival.user.as_str());
        let pool = subscriber_pool(&arrival.tenant, &arrival.user);
        let version = stored_whole(arrival.version);
        let mut tx = self.write().await?;
        if !arrival.answers.is_empty() {
            // A write under way may have found no answer under the same key. The arrival waits for the write's own answer.
            tenants::hold(&mut tx, &arrival.tenant, now).await?;
        }
        let epochs = buckets::hold(&mut tx, std::iter::once(pool.bucket())).await?;
        if arrival.kind == ArrivalKind::Moved {
            check_not_adopted(&mut tx, arrival.from).await?;
        }
        let clock = tx.now().await?;
        let admits_from = arrival.silence(&mut tx).await?;
        if let Some(lost) = arrival.lost() {
            let open = departure(&mut tx, &arrival.tenant, &arrival.user).await?;
            let open = open.filter(|open| open.home.region == lost && open.home.version < arrival.version);
            if let Some(open) = open {
                note_left(&mut tx, &open, clock).await?;
            }
        }
        let placed = tx.query(include_str!("../../sql/place_home.sql")).bind(tenant).bind(user);
        let placed = placed.bind(stored(own)).bind(version).bind(clock);
        let placed = placed.bind(admits_from).bind(arrival.lost().map(stored));
        if placed.execute().await? > 0 {
            let seq = last_event(&mut tx, &pool).await?;
            let noted = tx.query(include_str!("../../sql/note_home_move.sql")).bind(tenant).bind(user);
            let noted = noted.bind(version).bind(arrival.direction()).bind(stored(arrival.from)).bind(seq);
            noted.bind(Some(stored_whole(arrival.peer_seq))).bind(clock).execute().await?;
            let epoch = epochs.get(&pool.bucket()).copied().unwrap_or_default();
            let sessions = arrival.admissible(&mut tx, terms).await?;
            let first = Admissions { pool: &pool, seq: seq.unsigned_abs(), live: 0, epoch, terms, now };
            admit(&mut tx, &first.events(&sessions)).await?;
            idempotency::keep_arrived(&mut tx, &pool, &arrival.answers).await?;
        }
        let home = read(&mut tx, &arrival.tenant, &arrival.user).await?;
        tx.commit().await?;
        Ok(home)
    }
}

impl Arrival {
    fn direction(&self) -> &'static str {
        match self.kind {
            ArrivalKind::Moved => "arrived",
            ArrivalKind::Adopted => "adopted",
        }
    }

    /// Returns the lost region of an adopted home.
    fn lost(&self) -> Option<Region> {
        (self.kind == ArrivalKind::Adopted).then_some(self.from)
    }

    /// Returns the end of the home's silence, and locks the adoption until the transaction ends.
    async fn silence(&self, tx: &mut Tx) -> Result<Option<DateTime<Utc>>, Error> {
        let Some(lost) = self.lost() else { return Ok(self.admits_from.map(times::stored)) };
        let silence = tx.query(include_str!("../../sql/share_adoption.sql")).bind(stored(lost));
        Ok(silence.scalar_optional().await?)
    }

    /// Returns the sessions that go on here. The subscription may have ended on the way, so the sessions with the oldest
    /// heartbeats may stay behind.
    async fn admissible(&self, tx: &mut Tx, terms: Terms) -> Result<Vec<(Session, Particulars)>, Error> {
        if self.kind == ArrivalKind::Moved {
            let mut sessions = self.sessions.clone();
            sessions.sort_by_key(|(session, _)| Reverse(session.last_heartbeat));
            sessions.truncate(terms.limit.0 as usize);
            return Ok(sessions);
        }
        let mut fresh = Vec::new();
        for session in &self.sessions {
            if !is_on_record(tx, &session.0).await? {
                fresh.push(session.clone());
            }
        }
        fresh.truncate(terms.limit.0 as usize);
        Ok(fresh)
    }
}

/// Returns `Err(RegionAdopted)` if an adoption of region `from` is on record. Until the transaction ends, no adoption comes on
/// record: the departure may have been checked before an adoption began.
async fn check_not_adopted(tx: &mut Tx, from: Region) -> Result<(), Error> {
    tx.query(include_str!("../../sql/share_own_region.sql")).execute().await?;
    let adoption = tx.query(include_str!("../../sql/share_adoption.sql")).bind(stored(from));
    match adoption.fetch_optional().await? {
        Some(_) => Err(Error::RegionAdopted { lost: from }),
        None => Ok(()),
    }
}

/// Returns the home of a subscriber on its way out of this region.
async fn departure(tx: &mut Tx, tenant: &TenantId, user: &UserId) -> Result<Option<Departure>, Error> {
    let home = tx.query(include_str!("../../sql/home.sql")).bind(tenant.as_str()).bind(user.as_str());
    let Some(row) = home.fetch_optional().await? else { return Ok(None) };
    match Home::read(&row)?.state {
        HomeState::Moving => Departure::read(&row).map(Some),
        HomeState::Here | HomeState::Moved => Ok(None),
    }
}

/// Returns the homes on their way out of this region.
pub(super) async fn departures(tx: &mut Tx) -> Result<Vec<Departure>, Error> {
    let moving = tx.query(include_str!("../../sql/homes_moving.sql")).fetch_all().await?;
    moving.iter().map(Departure::read).collect()
}

/// Returns the homes on their way out of this region to a lost region.
pub(super) async fn departures_to(tx: &mut Tx, lost: Region) -> Result<Vec<Departure>, Error> {
    let moving = departures(tx).await?;
    Ok(moving.into_iter().filter(|departure| departure.home.region == lost).collect())
}

/// Records that a home left this region. A home on its way left as well once a later home replaces the open move: `audit
/// verify` reads the end of this region's tenure from the record.
pub(super) async fn note_left(tx: &mut Tx, departure: &Departure, now: DateTime<Utc>) -> Result<(), Error> {
    let seq = last_event(tx, &departure.pool()).await?;
    let noted = tx.query(include_str!("../../sql/note_home_move.sql"));
    let noted = noted.bind(departure.tenant.as_str()).bind(departure.user.as_str());
    let noted = noted.bind(stored_whole(departure.home.version)).bind("left");
    let noted = noted.bind(stored(departure.home.region)).bind(seq);
    noted.bind(None::<i64>).bind(now).execute().await?;
    Ok(())
}

/// The common part of the admissions of arrived sessions.
pub(super) struct Admissions<'a> {
    pub(super) pool: &'a PoolId,
    /// The number of the pool's last event.
    pub(super) seq: u64,
    /// The number of the pool's live sessions.
    pub(super) live: u32,
    pub(super) epoch: u64,
    pub(super) terms: Terms,
    pub(super) now: RegistryTime,
}

impl Admissions<'_> {
    pub(super) fn events(&self, sessions: &[(Session, Particulars)]) -> Vec<Event> {
        let event = |((session, particulars), count): (&(Session, Particulars), u32)| {
            // A holder that is not told its new interval keeps to the old one.
            let ttl = self.terms.ttl.max(session.ttl);
            let session = Session { started: self.now, last_heartbeat: self.now, ttl, ..session.clone() };
            Event {
                pool: self.pool.clone(),
                seq: self.seq + u64::from(count),
                epoch: self.epoch,
                at: self.now,
                live: self.live + count,
                limit: Seats(self.terms.limit.0),
                version: self.terms.version,
                origin: Origin::SYSTEM,
                change: Change::Admitted {
                    expires: session.silent_until(),
                    session: Box::new(session),
                    particulars: Box::new(particulars.clone()),
                },
            }
        };
        sessions.iter().zip(1..).map(event).collect()
    }
}

/// Records the admissions of arrived sessions.
pub(super) async fn admit(tx: &mut Tx, events: &[Event]) -> Result<(), Error> {
    if events.is_empty() {
        return Ok(());
    }
    let entries: Vec<_> = events.iter().map(Entry::from_event).collect();
    chain::continues(tx, events).await?;
    let head = audit::head(tx).await?;
    if audit::append(tx, &entries).await? < entries.len() {
        let pool = Box::new(events[0].pool.clone());
        return Err(Error::Contradiction { pool, seq: events[0].seq });
    }
    apply::project(tx, head, &entries).await
}

/// Returns the number of a pool's last event.
pub(super) async fn last_event(tx: &mut Tx, pool: &PoolId) -> Result<i64, Error> {
    Ok(tx.query(include_str!("../../sql/pool_seq.sql")).bind_pool(pool).scalar().await?)
}

pub(super) fn subscriber_pool(tenant: &TenantId, user: &UserId) -> PoolId {
    PoolId::new(PoolKind::Subscriber, tenant.clone(), user.as_str())
}

/// Returns whether a session was ever admitted in this region.
async fn is_on_record(tx: &mut Tx, session: &Session) -> Result<bool, Error> {
    let found = tx.query(include_str!("../../sql/find_session.sql")).bind(session.id.as_uuid());
    Ok(found.fetch_optional().await?.is_some())
}
