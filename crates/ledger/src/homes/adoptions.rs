//! Adoptions of lost regions. A lost region has one successor, on record in every other region and in the restored ledger
//! of the lost region. Every step may be repeated.

use seatkeeper_core::{
    Origin, Particulars, PoolId, Region, RegistryTime, Session, Span, TenantId, Terms, UserId,
};
use uuid::Uuid;

use super::moves::{Admissions, admit, departures, departures_to, last_event, note_left};
use super::{Home, HomeState, region_from, stored};
use crate::database::{Row, Tx};
use crate::licenses::{License, adopt};
use crate::row::{Fields, corrupt, stored_json, stored_whole};
use crate::{Error, KeptAnswer, Ledger, Write, buckets, idempotency, tenants, times};

/// Homes, or kept sessions, in a transaction of the end of an adoption. Each transaction stays far below the time
/// limit of a statement.
const END_PAGE: i64 = 1_000;

/// Kept sessions that are admitted at once. The time limit of statements, and of the pauses between two statements of a
/// transaction, holds for any number of sessions.
const ARRIVING_PAGE: u32 = 2_000;

/// A time later than every heartbeat: the end of the year 9999.
const LATEST: RegistryTime = RegistryTime::from_millis(253_402_300_799_999);

/// A region that is lost for good, and its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adoption {
    /// The lost region.
    pub lost: Region,
    /// The region that takes over the pools.
    pub successor: Region,
    /// The time before which the successor admits nobody to the pools.
    pub admits_from: RegistryTime,
    /// `true` once the successor has all that is on record of the lost region.
    pub is_done: bool,
    /// The id of the last audit record of this ledger when the adoption came on record.
    pub audit_head: u64,
}

/// A subscriber with a home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownHome {
    /// The subscriber's tenant.
    pub tenant: TenantId,
    /// The subscriber.
    pub user: UserId,
    /// The home, as far as the region knows.
    pub home: Home,
}

impl Adoption {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            lost: region_from(fields.value("lost")?)?,
            successor: region_from(fields.value("successor")?)?,
            admits_from: fields.time("admits_from")?,
            is_done: fields.whole("is_done")? > 0,
            audit_head: fields.whole("audit_head")?,
        })
    }
}

impl KnownHome {
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            tenant: TenantId::new(fields.value::<&str>("tenant_id")?),
            user: UserId::new(fields.value::<&str>("user_id")?),
            home: Home::read(row)?,
        })
    }
}

fn arriving_session(row: &Row) -> Result<(Session, Particulars), Error> {
    let record = Fields(row).value::<&str>("record")?;
    serde_json::from_str(record).map_err(|source| corrupt("record", source))
}

/// Returns the adoption of region `lost`, and locks the adoption until the transaction ends.
async fn lock(tx: &mut Tx, lost: Region) -> Result<Option<Adoption>, Error> {
    let adoption = tx.query(include_str!("../../sql/lock_adoption.sql")).bind(stored(lost));
    adoption.fetch_optional().await?.as_ref().map(Adoption::read).transpose()
}

/// Places the first page of homes in region `lost` in `own`. Returns whether there was a home. The caller has
/// locked the adoption, so no home comes to `lost` between the statements.
async fn adopt_page(tx: &mut Tx, lost: Region, adoption: &Adoption, own: Region) -> Result<bool, Error> {
    let page = tx.query(include_str!("../../sql/lost_homes_page.sql")).bind(stored(lost)).bind(END_PAGE);
    let rows = page.fetch_all().await?;
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(false) };
    let (first, last) = (subscriber(first)?, subscriber(last)?);
    let now = tx.now().await?;
    for departure in departures_to(tx, lost).await? {
        if (departure.tenant.as_str(), departure.user.as_str()) <= last {
            note_left(tx, &departure, now).await?;
        }
    }
    let noted = tx.query(include_str!("../../sql/note_homes_adopted.sql")).bind(stored(lost)).bind(now);
    noted.bind(first.0).bind(first.1).bind(last.0).bind(last.1).execute().await?;
    let adopted = tx.query(include_str!("../../sql/adopt_homes.sql")).bind(stored(lost)).bind(stored(own));
    let adopted = adopted.bind(now).bind(times::stored(adoption.admits_from));
    adopted.bind(first.0).bind(first.1).bind(last.0).bind(last.1).execute().await?;
    Ok(true)
}

fn subscriber(row: &Row) -> Result<(&str, &str), Error> {
    let fields = Fields(row);
    Ok((fields.value("tenant_id")?, fields.value("user_id")?))
}

impl Ledger {
    /// Returns every lost region with its successor.
    pub async fn adoptions(&self) -> Result<Vec<Adoption>, Error> {
        let rows = self.readers().query(include_str!("../../sql/adoptions.sql")).fetch_all().await?;
        rows.iter().map(Adoption::read).collect()
    }

    /// Records the successor of a lost region, and returns the adoption on record: a lost region keeps its first
    /// successor. The successor admits from `admits_from`: the latest of several begins before the end counts, also for the
    /// homes taken over since an earlier begin. The homes on their way from here to the lost region go to the
    /// successor, unless the successor is `own`, the region of this ledger. A home that arrives from the lost region by a move
    /// is on record before the adoption, or is refused.
    pub async fn note_adoption(
        &self,
        (lost, successor): (Region, Region),
        admits_from: RegistryTime,
        own: Region,
    ) -> Result<Option<Adoption>, Error> {
        let mut tx = self.write().await?;
        tx.query(include_str!("../../sql/lock_own_region.sql")).execute().await?;
        let now = tx.now().await?;
        let noted = tx.query(include_str!("../../sql/note_adoption.sql"));
        let noted = noted.bind(stored(lost)).bind(stored(successor)).bind(times::stored(admits_from));
        let is_first = noted.bind(now).execute().await? > 0;
        let prolonged = tx.query(include_str!("../../sql/prolong_adoption.sql"));
        let prolonged = prolonged.bind(stored(lost)).bind(stored(successor));
        let has_begun = prolonged.bind(times::stored(admits_from)).execute().await? > 0 || is_first;
        if has_begun && successor != own {
            let retargeted = tx.query(include_str!("../../sql/retarget_homes_moving.sql"));
            retargeted.bind(stored(lost)).bind(stored(successor)).execute().await?;
        }
        let adoption = lock(&mut tx, lost).await?;
        tx.commit().await?;
        Ok(adoption)
    }

    /// Carries the end of an adoption by `own`, the region of this ledger, on by one page, and returns whether the adoption is
    /// done. The caller repeats the call until then. Each page is a transaction, so a repetition after a crash goes on
    /// behind the last page on record.
    ///
    /// Homes in the regions `earlier`, which the lost region had adopted, come to `own` without sessions. So do homes that are
    /// still in the lost region by this ledger: the command takes these over before, with a number from the restored ledger.
    /// Sessions that are still kept for a pool of the lost region are deleted. The adoption is done once no home is left:
    /// until then `own` admits nobody to a pool whose home is in a lost region.
    pub async fn end_adoption_page(
        &self,
        adoption: &Adoption,
        earlier: &[Region],
        own: Region,
    ) -> Result<bool, Error> {
        let mut tx = self.write().await?;
        // A begin may have moved the time since the caller read the adoption.
        let Some(adoption) = lock(&mut tx, adoption.lost).await?.filter(|known| !known.is_done) else {
            return Ok(true);
        };
        let mut is_done = true;
        for lost in earlier.iter().copied().chain([adoption.lost]) {
            let deleted = tx.query(include_str!("../../sql/delete_arriving_from.sql"));
            let deleted = deleted.bind(stored(lost)).bind(END_PAGE).execute().await?;
            if deleted > 0 || adopt_page(&mut tx, lost, &adoption, own).await? {
                is_done = false;
                break;
            }
        }
        if is_done {
            let ended = tx.query(include_str!("../../sql/end_adoption.sql"));
            ended.bind(stored(adoption.lost)).execute().await?;
        }
        tx.commit().await?;
        Ok(is_done)
    }

    /// Returns at most `max` homes known here, after the subscriber `after`, in the order of tenants and users.
    pub async fn homes_after(
        &self,
        (tenant, user): (&TenantId, &UserId),
        max: u32,
    ) -> Result<Vec<KnownHome>, Error> {
        let page = self.readers().query(include_str!("../../sql/homes_after.sql"));
        let rows = page.bind(tenant.as_str()).bind(user.as_str()).bind(i64::from(max)).fetch_all().await?;
        rows.iter().map(KnownHome::read).collect()
    }

    /// Returns the longest TTL of a license, a plan or a live session with heartbeats; zero without any.
    pub async fn longest_ttl(&self) -> Result<Span, Error> {
        let longest = self.readers().query(include_str!("../../sql/longest_ttl.sql"));
        Ok(Span::from_millis(longest.scalar::<i64>().await?.unsigned_abs()))
    }

    /// Returns the tenants with `anchor` on record, and every tenant without an anchor on record.
    pub async fn tenants_of_anchor(&self, anchor: Region) -> Result<Vec<(TenantId, Option<Region>)>, Error> {
        let rows = self.readers().query(include_str!("../../sql/anchored_tenants.sql"));
        let tenant = |row: &Row| {
            let fields = Fields(row);
            let anchor = fields.number_maybe::<u8>("anchor_region")?.map(Region::new);
            Ok((TenantId::new(fields.value::<&str>("id")?), anchor))
        };
        rows.bind(stored(anchor)).fetch_all().await?.iter().map(tenant).collect()
    }

    /// Takes over a license of a lost region with id and key, at version 1, unless the license is on record. The kept
    /// `answers` of the writes to the license come along. Returns the license on record.
    pub async fn adopt_license(
        &self,
        license: License,
        answers: &[KeptAnswer],
        at: RegistryTime,
    ) -> Result<License, Error> {
        let mut tx = self.write().await?;
        tenants::hold(&mut tx, &license.tenant, at).await?;
        let write =
            Write { origin: &Origin::SYSTEM, at, idempotency: None, home: None, expected_version: None };
        let adopted = adopt(&mut tx, license, &write).await?;
        idempotency::keep_arrived(&mut tx, &adopted.pool(), answers).await?;
        tx.commit().await?;
        Ok(adopted)
    }

    /// Keeps sessions of a license's pool that region `lost` has left, until [`Ledger::adopt_sessions`] admits them. A kept
    /// session is not live.
    pub async fn keep_arriving_sessions(
        &self,
        lost: Region,
        pool: &PoolId,
        sessions: &[(Session, Particulars)],
    ) -> Result<(), Error> {
        let mut tx = self.write().await?;
        for kept in sessions {
            let keep = tx.query(include_str!("../../sql/keep_arriving_session.sql")).bind_pool(pool);
            let keep = keep.bind(kept.0.id.as_uuid()).bind(stored_json(kept)?);
            keep.bind(times::stored(kept.0.last_heartbeat)).bind(stored(lost)).execute().await?;
        }
        tx.commit().await
    }

    /// Deletes the kept sessions of a pool that is open already: none of them can go on there.
    pub async fn drop_arriving_sessions(&self, pool: &PoolId) -> Result<(), Error> {
        let mut tx = self.write().await?;
        tx.query(include_str!("../../sql/delete_arriving_sessions.sql")).bind_pool(pool).execute().await?;
        tx.commit().await
    }

    /// Admits the kept sessions of a pool in one transaction, by `terms`. The registry's time `now` is read once the pool is
    /// locked, so that no session loses a part of its TTL to the wait for the lock. Every session that is on record here, live
    /// or over, is left out. If the sessions are more than the limit, those with the oldest heartbeats are left out. The
    /// inner result is an error of `now`; then nothing has changed.
    pub async fn adopt_sessions<E>(
        &self,
        pool: &PoolId,
        terms: Terms,
        now: impl Future<Output = Result<RegistryTime, E>>,
    ) -> Result<Result<(), E>, Error> {
        let mut tx = self.write().await?;
        let epochs = buckets::hold(&mut tx, std::iter::once(pool.bucket())).await?;
        let epoch = epochs.get(&pool.bucket()).copied().unwrap_or_default();
        let now = match now.await {
            Ok(now) => now,
            Err(error) => return Ok(Err(error)),
        };
        let seq = last_event(&mut tx, pool).await?.unsigned_abs();
        let live = tx.query(include_str!("../../sql/count_live_sessions.sql")).bind_pool(pool);
        let live: i64 = live.scalar().await?;
        let live = u32::try_from(live).unwrap_or(u32::MAX);
        let mut admissions = Admissions { pool, seq, live, epoch, terms, now };
        let mut before = (LATEST, Uuid::max());
        loop {
            let free = terms.limit.0.saturating_sub(admissions.live).min(ARRIVING_PAGE);
            let page = tx.query(include_str!("../../sql/arriving_sessions.sql")).bind_pool(pool);
            let page = page.bind(i64::from(free)).bind(times::stored(before.0)).bind(before.1);
            let rows = page.fetch_all().await?;
            let fresh = rows.iter().map(arriving_session).collect::<Result<Vec<_>, _>>()?;
            let Some((last, _)) = fresh.last() else { break };
            before = (last.last_heartbeat, last.id.as_uuid());
            admit(&mut tx, &admissions.events(&fresh)).await?;
            admissions.seq += fresh.len() as u64;
            admissions.live += u32::try_from(fresh.len()).unwrap_or(u32::MAX);
        }
        tx.query(include_str!("../../sql/delete_arriving_sessions.sql")).bind_pool(pool).execute().await?;
        tx.commit().await?;
        Ok(Ok(()))
    }

    /// Records the homes that region `teller` tells the successor of region `lost`. Homes that are here, or of an older
    /// version, stay unchanged. A home on its way out of the telling region is still in the telling region. A home on its
    /// way from here is replaced by a newer home: only a home that the target of the move took over has a greater version.
    /// Nothing is recorded once the adoption is done.
    pub async fn learn_homes(
        &self,
        homes: &[KnownHome],
        (lost, teller): (Region, Region),
        own: Region,
    ) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let shared = tx.query(include_str!("../../sql/share_adoption.sql")).bind(stored(lost));
        if let Some(row) = shared.fetch_optional().await?
            && Fields(&row).whole("is_done")? > 0
        {
            // No later page would take a home in the lost region over.
            return Ok(());
        }
        let now = tx.now().await?;
        let departures = departures(&mut tx).await?;
        for KnownHome { tenant, user, home } in homes {
            let (region, version) = match home.state {
                HomeState::Moving => (teller, home.version.saturating_sub(1)),
                HomeState::Here | HomeState::Moved => (home.region, home.version),
            };
            if region == own || version < Home::FIRST_VERSION {
                continue;
            }
            let open = departures.iter().find(|open| open.is_of(tenant, user));
            if let Some(open) = open.filter(|open| open.home.version < version) {
                note_left(&mut tx, open, now).await?;
            }
            let learned = tx.query(include_str!("../../sql/learn_home_for_adoption.sql"));
            let learned = learned.bind(tenant.as_str()).bind(user.as_str()).bind(stored(region));
            learned.bind(stored_whole(version)).bind(now).bind(stored(own)).execute().await?;
        }
        tx.commit().await
    }
}
