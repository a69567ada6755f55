//! Events of a pool, numbered without a gap.

use seatkeeper_core::{
    Change, Denial, DenialFold, Denied, Ending, Event, Folded, Holder, Origin, RegistryTime,
};

use super::OpenPool;

/// A journal that takes the events of a step, in order.
pub(crate) trait Record {
    /// Returns the epoch of the journal's bucket.
    fn epoch(&self) -> u64;
    /// Appends an event.
    fn push(&mut self, event: Event);
    /// Returns the position of the last event.
    fn end(&self) -> u64;
}

impl OpenPool {
    /// Records ended sessions. `newcomers`, already live, were admitted after the ends.
    pub(super) fn record_ends(
        &mut self,
        ended: &[Ending],
        newcomers: u32,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut impl Record,
    ) {
        let live = self.pool.live() - newcomers;
        for (ending, after) in ended.iter().zip((0..ended.len() as u32).rev()) {
            let change = Change::Ended {
                session: ending.session.id,
                holder: ending.session.holder.clone(),
                tier: ending.session.tier,
                reason: ending.reason,
                last_heartbeat: ending.session.last_heartbeat,
                expires: ending.expires,
            };
            let origin = if ending.reason.is_by_time() { &Origin::SYSTEM } else { origin };
            self.record(live + after, change, origin, now, journal);
        }
    }

    /// Records a denial, or only counts it.
    pub(super) fn record_denial(
        &mut self,
        holder: Holder,
        why: Denial,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut impl Record,
    ) {
        let Some(fold) = &mut self.denials else {
            let (fold, first) = DenialFold::start(holder, why, now);
            self.denials = Some(Box::new(fold));
            return self.record(self.pool.live(), Change::Denied(first), origin, now, journal);
        };
        let Folded { earlier, this } = fold.note(holder, why, now);
        self.record_counted(earlier, now, journal);
        if let Some(this) = this {
            self.record(self.pool.live(), Change::Denied(this), origin, now, journal);
        }
    }

    /// Records the counted denials, once their window is over.
    pub(super) fn flush_denials(&mut self, now: RegistryTime, journal: &mut impl Record) {
        let Some(fold) = &mut self.denials else { return };
        let counted = fold.flush(now);
        if fold.is_spent(now) {
            self.denials = None;
        }
        self.record_counted(counted, now, journal);
    }

    fn record_counted(&mut self, counted: Option<Denied>, now: RegistryTime, journal: &mut impl Record) {
        if let Some(counted) = counted {
            self.record(self.pool.live(), Change::Denied(counted), &Origin::SYSTEM, now, journal);
        }
    }

    pub(super) fn record(
        &mut self,
        live: u32,
        change: Change,
        origin: &Origin,
        now: RegistryTime,
        journal: &mut impl Record,
    ) {
        self.seq += 1;
        journal.push(Event {
            pool: self.id.clone(),
            seq: self.seq,
            epoch: journal.epoch(),
            at: now,
            live,
            limit: self.limit(),
            version: self.pool.terms().map_or(0, |terms| terms.version),
            origin: origin.clone(),
            change,
        });
        self.last_event = journal.end();
    }
}
