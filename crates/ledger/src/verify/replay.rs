//! Replays the records of one pool and checks every rule of the log.

use std::collections::BTreeMap;

use seatkeeper_core::{EndReason, PoolId, PoolKind, RegistryTime, SessionId};

use super::fold::Fold;
use super::grants::Grants;
use super::lost_terms::{Losses, LostTerms};
use super::node_local::NodeLocal;
use super::plans::PlanStream;
use super::{Breach, BreachSite, Finding, PlanHistory};
use crate::audit::{Action, AuditRecord, Stream};
use crate::sessions::{SessionEnd, SessionRecord};

/// The cut left by retention in a pool's session stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The number of the last deleted record. Of the records up to `seq`, only the admissions of sessions
    /// live at the cut are kept.
    pub seq: u64,
    /// Sessions live at the cut.
    pub live: u32,
}

/// The counts of everything replayed without a violation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Pools.
    pub pools: u64,
    /// Records of all streams.
    pub records: u64,
    /// Admissions within the pool's limit.
    pub admissions: u64,
    /// Ends of sessions, at most one per session.
    pub ends: u64,
    /// Denied claims, including folded denials.
    pub denials: u64,
    /// Sessions live at the end of the log.
    pub live: u64,
    /// Admissions by nodes alone, within the pool's limit on each node.
    pub node_local: u64,
    /// Repairs of registry time. Time ran back only at repairs.
    pub clock_repairs: u64,
    /// Terms lost by a copy of the ledger. Each admission by lost terms is within the limit of its own record.
    pub lost_terms: Vec<LostTerms>,
}

impl Proof {
    /// Adds the proof of other pools.
    pub fn add(&mut self, other: Self) {
        self.pools += other.pools;
        self.records += other.records;
        self.admissions += other.admissions;
        self.ends += other.ends;
        self.denials += other.denials;
        self.live += other.live;
        self.node_local += other.node_local;
        self.clock_repairs += other.clock_repairs;
        self.lost_terms.extend(other.lost_terms);
    }
}

/// The replay of one pool. The records come in order, first the entitlement stream, then the node stream, the
/// plan stream and the session stream. Then come the heads of the streams and the rows of table `sessions`.
#[derive(Debug)]
pub struct Replay<'p> {
    pool: PoolId,
    // The cut, until the first record after the cut.
    cut: Option<Cut>,
    seq_next: u64,
    /// The number of the last record of each stream.
    last: BTreeMap<Stream, u64>,
    now: RegistryTime,
    /// The id of the last record of the session stream.
    last_id: u64,
    /// The id of the newest record before each repair of registry time.
    repaired_after: Vec<u64>,
    grants: Grants<'p>,
    losses: Losses,
    plan: PlanStream,
    version_newest: u64,
    fold: Fold,
    node_local: NodeLocal,
    rows: u64,
    proof: Proof,
}

impl<'p> Replay<'p> {
    /// Starts a replay at the pool's first record, or after the cut. `plans` are the plans of the pool's
    /// tenant, needed only for subscribers' pools.
    pub fn new(pool: PoolId, cut: Option<Cut>, plans: &'p PlanHistory) -> Self {
        Self {
            grants: Grants::new(pool.kind, plans),
            losses: Losses::default(),
            plan: PlanStream::default(),
            pool,
            cut,
            seq_next: cut.map_or(1, |cut| cut.seq + 1),
            last: cut.map(|cut| (Stream::Session, cut.seq)).into_iter().collect(),
            now: RegistryTime::default(),
            last_id: 0,
            repaired_after: Vec::new(),
            version_newest: 0,
            fold: Fold::default(),
            node_local: NodeLocal::default(),
            rows: 0,
            proof: Proof { pools: 1, ..Proof::default() },
        }
    }

    /// Allows time to run back once at each repair of registry time. `audit_heads` are the ids of the newest
    /// records before the repairs.
    #[must_use]
    pub fn with_clock_repairs(mut self, audit_heads: Vec<u64>) -> Self {
        self.repaired_after = audit_heads;
        self
    }

    /// Lets versions go on at `floors`, the lowest versions of the changes made in each copy of the ledger, in order. Lets
    /// admissions go by terms that are not on record, if the last copy may have lost the terms: versions below its floor.
    #[must_use]
    pub fn with_version_floors(mut self, floors: &'p [u64]) -> Self {
        self.losses = Losses::new(floors.last().copied().unwrap_or_default());
        self.grants = self.grants.with_version_floors(floors);
        self
    }

    /// Replays the next record.
    pub fn record(&mut self, record: &AuditRecord) -> Result<(), Finding> {
        let checked = match record.stream {
            Stream::Entitlement => self.grants.record(record),
            Stream::Plan if self.pool.kind == PoolKind::Subscriber => {
                self.plan.record(&self.pool.name, record)
            }
            Stream::Plan => Err(Breach::Malformed),
            Stream::Node => self.node_local.record(record, &self.grants, &mut self.losses),
            Stream::Session if record.seq < self.seq_next && self.cut.is_some() => self.kept(record),
            Stream::Session => self.change(record),
        };
        self.proof.records += 1;
        let last = self.last.entry(record.stream).or_default();
        *last = record.seq.max(*last);
        let place = BreachSite::Record { stream: record.stream, seq: record.seq, id: record.id };
        checked.map_err(|breach| self.finding(place, breach))
    }

    /// Checks a row of table `sessions`, after the last record.
    pub fn session(&mut self, row: &SessionRecord) -> Result<(), Finding> {
        self.rows += 1;
        let compared = self.fold.compare(row);
        compared.map_err(|breach| self.finding(BreachSite::Session(row.session.id), breach))
    }

    /// Checks the head of a stream, after the last record. The head is the number of the last record ever
    /// appended; 0 for a stream without a head. The node stream has no head.
    pub fn head(&self, stream: Stream, head: u64) -> Result<(), Finding> {
        let recorded = self.last.get(&stream).copied().unwrap_or_default();
        if recorded == head {
            return Ok(());
        }
        Err(self.finding(BreachSite::Pool, Breach::HeadDiffers { stream, recorded, head }))
    }

    /// Ends the replay after the last record and row.
    pub fn finish(mut self) -> Result<Proof, Finding> {
        self.leave_cut().map_err(|breach| self.finding(BreachSite::Pool, breach))?;
        let missing = self.fold.len().saturating_sub(self.rows);
        if missing > 0 {
            return Err(self.finding(BreachSite::Pool, Breach::SessionsMissing { missing }));
        }
        let live = self.fold.live();
        let lost_terms = self.losses.found(&self.pool);
        Ok(Proof { live, node_local: self.node_local.admissions, lost_terms, ..self.proof })
    }

    /// Replays a record kept from before the cut.
    fn kept(&mut self, record: &AuditRecord) -> Result<(), Breach> {
        match (record.action, record.session, &record.holder) {
            (Action::Admitted, Some(id), Some(holder)) => self.fold.begin(id, holder, record),
            _ => Err(Breach::Malformed),
        }
    }

    /// Replays a record of the session stream after the cut.
    fn change(&mut self, record: &AuditRecord) -> Result<(), Breach> {
        self.leave_cut()?;
        if record.seq != self.seq_next {
            return Err(Breach::Gap { expected: self.seq_next });
        }
        let was_repaired = self.repaired_after.iter().any(|head| (self.last_id..record.id).contains(head));
        if record.at < self.now && !was_repaired {
            return Err(Breach::TimeRanBack);
        }
        if was_repaired && self.pool.kind == PoolKind::Subscriber {
            // A subscription has other terms before the start, until the end, and after the end.
            self.version_newest = 0;
        }
        self.last_id = record.id;
        self.seq_next += 1;
        self.now = record.at;
        match (record.action, record.session) {
            (Action::Admitted, Some(id)) => self.admitted(record, id)?,
            (Action::Ended, Some(id)) => self.ended(record, id)?,
            (Action::Denied, _) => self.denied(record)?,
            _ => return Err(Breach::Malformed),
        }
        let (told, counted) = (record.live.ok_or(Breach::Malformed)?, self.fold.live());
        if u64::from(told) == counted { Ok(()) } else { Err(Breach::LiveMiscounted { told, counted }) }
    }

    fn leave_cut(&mut self) -> Result<(), Breach> {
        let kept = self.fold.live();
        match self.cut.take() {
            Some(cut) if u64::from(cut.live) != kept => Err(Breach::CutMiscounted { told: cut.live, kept }),
            _ => Ok(()),
        }
    }

    fn admitted(&mut self, record: &AuditRecord, id: SessionId) -> Result<(), Breach> {
        self.proof.admissions += 1;
        let holder = record.holder.as_ref().ok_or(Breach::Malformed)?;
        self.fold.begin(id, holder, record)?;
        let (live, limit) = (self.fold.live(), record.limit);
        if live > u64::from(limit) {
            return Err(Breach::AboveLimit { live, limit });
        }
        self.granted_by_its_version(record)
    }

    /// Checks that an admission's limit is the limit of its version, and that the version is not older than
    /// before, if versions are ordered.
    fn granted_by_its_version(&mut self, record: &AuditRecord) -> Result<(), Breach> {
        let (limit, version, newest) = (record.limit, record.version, self.version_newest);
        if version != 0 && version < newest && self.grants.are_ordered() {
            return Err(Breach::OlderTerms { version, newest });
        }
        match self.grants.limit(version, record.at)? {
            Some(granted) if granted == limit => self.version_newest = newest.max(version),
            None if self.losses.explain(version, &self.grants) => {}
            granted => return Err(Breach::LimitNotGranted { limit, version, granted }),
        }
        Ok(())
    }

    fn ended(&mut self, record: &AuditRecord, id: SessionId) -> Result<(), Breach> {
        self.proof.ends += 1;
        let holder = record.holder.as_ref().ok_or(Breach::Malformed)?;
        let reason = record.reason.as_deref().and_then(|reason| reason.parse().ok());
        let reason: EndReason = reason.ok_or(Breach::Malformed)?;
        if reason == EndReason::Expired && record.expires.is_none_or(|expires| expires > record.at) {
            return Err(Breach::ExpiredEarly { session: id });
        }
        self.fold.end(id, holder, SessionEnd { at: record.at, reason })
    }

    fn denied(&mut self, record: &AuditRecord) -> Result<(), Breach> {
        self.proof.denials += record.count;
        let (live, limit) = (self.fold.live(), record.limit);
        let as_full = record.reason.as_deref() == Some("full") && !record.folded;
        if as_full && live < u64::from(limit) {
            return Err(Breach::DeniedWithSeatsFree { live, limit });
        }
        Ok(())
    }

    fn finding(&self, place: BreachSite, breach: Breach) -> Finding {
        Finding { pool: self.pool.clone(), place, breach }
    }
}
