//! Lost regions and their successors, as this region has them on record. Every node reads the record once a second, in the
//! background: no request waits for the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;
use seatkeeper_core::Region;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::Adoption;

/// The adoptions on record.
pub(super) struct Adoptions {
    ledger: Ledger,
    known: RwLock<Arc<[Adoption]>>,
    /// `known` is not empty. Every heartbeat reads the flag alone, so that processors do not wait for each other at the lock.
    has_any: AtomicBool,
}

impl Adoptions {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self { ledger, known: RwLock::new(Arc::from([])), has_any: AtomicBool::new(false) }
    }

    /// Returns the adoptions on record, as of the last read.
    pub(super) fn known(&self) -> Arc<[Adoption]> {
        Arc::clone(&self.known.read())
    }

    /// Reads the record now. Returns whether the record has changed since the last read.
    pub(super) async fn refresh(&self) -> Result<bool, seatkeeper_ledger::Error> {
        let read: Arc<[Adoption]> = self.ledger.adoptions().await?.into();
        let mut known = self.known.write();
        let has_changed = *known != read;
        self.has_any.store(!read.is_empty(), Ordering::Release);
        *known = read;
        Ok(has_changed)
    }

    /// Returns the adoption of a lost region.
    pub(super) fn of_lost(&self, region: Region) -> Option<Adoption> {
        self.known.read().iter().find(|adoption| adoption.lost == region).copied()
    }

    /// Returns the lost regions whose chain of successors leads to `region`, without `region`.
    pub(super) fn leading_to(&self, region: Region) -> Vec<Region> {
        leading_to(&self.known(), region)
    }

    /// Returns the last adoption of the pools of a region: the successor may be lost as well.
    pub(super) fn last_for(&self, region: Region) -> Option<Adoption> {
        if !self.has_any.load(Ordering::Acquire) {
            return None;
        }
        let known = self.known();
        let mut last = None;
        // Each lost region is looked up once at most, so a ring on record ends as well.
        for _ in 0..known.len() {
            let at = last.map_or(region, |adoption: Adoption| adoption.successor);
            match known.iter().find(|adoption| adoption.lost == at) {
                Some(adoption) => last = Some(*adoption),
                None => break,
            }
        }
        last
    }
}

fn leading_to(known: &[Adoption], region: Region) -> Vec<Region> {
    let mut leading: Vec<Region> = Vec::new();
    loop {
        let is_new = |adoption: &&Adoption| {
            let leads = adoption.successor == region || leading.contains(&adoption.successor);
            leads && adoption.lost != region && !leading.contains(&adoption.lost)
        };
        // Each round adds a region, so a ring on record ends as well.
        match known.iter().find(is_new).map(|adoption| adoption.lost) {
            Some(lost) => leading.push(lost),
            None => return leading,
        }
    }
}

#[cfg(test)]
mod tests;
