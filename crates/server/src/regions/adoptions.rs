//! Lost regions and their successors, as this region has them on record. Every node reads the record once a second.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use seatkeeper_core::Region;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::Adoption;

/// Pause between two reads of the record.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// The adoptions on record.
pub(super) struct Adoptions {
    ledger: Ledger,
    known: RwLock<Arc<[Adoption]>>,
    looked: Mutex<Option<Instant>>,
}

impl Adoptions {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self { ledger, known: RwLock::new(Arc::from([])), looked: Mutex::default() }
    }

    /// Returns the adoptions on record, as of the last read.
    pub(super) fn known(&self) -> Arc<[Adoption]> {
        Arc::clone(&self.known.read())
    }

    /// Reads the record, unless the last read is younger than a second. Without the ledger, the last read goes on.
    pub(super) async fn look(&self) {
        {
            let mut looked = self.looked.lock();
            if looked.is_some_and(|looked| looked.elapsed() < LOOK_PAUSE) {
                return;
            }
            *looked = Some(Instant::now());
        }
        drop(self.refresh().await);
    }

    /// Reads the record now.
    pub(super) async fn refresh(&self) -> Result<(), seatkeeper_ledger::Error> {
        let known = self.ledger.adoptions().await?;
        *self.known.write() = known.into();
        Ok(())
    }

    /// Returns the adoption of a lost region.
    pub(super) fn of_lost(&self, region: Region) -> Option<Adoption> {
        self.known.read().iter().find(|adoption| adoption.lost == region).copied()
    }

    /// Returns the lost regions whose chain of successors leads to `region`, without `region`.
    pub(super) fn leading_to(&self, region: Region) -> Vec<Region> {
        let known = self.known();
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

    /// Returns the last adoption of the pools of a region: the successor may be lost as well.
    pub(super) fn last_for(&self, region: Region) -> Option<Adoption> {
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
