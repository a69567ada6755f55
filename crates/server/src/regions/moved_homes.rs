//! The homes that have moved, in memory on every node. Every other subscriber is at home in the region of the ids of
//! the subscriber's sessions, so a heartbeat needs no look-up in the ledger.
//!
//! Every node reads the changes once a second, in the background. A node that has missed a move asks the old home,
//! whose closed pool answers no heartbeat: the refusal, or the answer 421 of another region, makes the node read the
//! record.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::{Mutex, RwLock};
use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_engine::{Progress, Worker};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::{Home, HomeState, HomesCursor, KnownHome};

use super::Regions;
use crate::hash;

/// Pause between two reads of the changes.
const READ_INTERVAL: Duration = Duration::from_secs(1);

/// Homes in a page of a read.
const PAGE: u32 = 5_000;

/// The span that a read repeats. The repetitions end once the newest change has been known for the span.
const OVERLAP: Duration = HomesCursor::COMMIT_MAX;

/// The homes that have moved, 40 to 75 bytes each.
pub(super) struct MovedHomes {
    ledger: Ledger,
    homes: RwLock<HashMap<Subscriber, Option<MovedHome>>>,
    /// `homes` is not empty. Every heartbeat of a device reads the flag alone, so that processors do not wait for each other at
    /// the lock.
    has_any: AtomicBool,
    newest: Mutex<Newest>,
    /// A read has reached the newest change.
    is_whole: AtomicBool,
}

/// The newest change that was read.
#[derive(Default)]
struct Newest {
    position: HomesCursor,
    /// The instant at which the change was first read. `None`: no earlier change can follow any more.
    read: Option<Instant>,
}

/// A digest of tenant and user.
type Subscriber = [u8; 16];

/// A home that has moved. The time from which an adopted home admits is not kept: sessions that are live need none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MovedHome {
    version: u64,
    region: Region,
    state: HomeState,
}

/// The knowledge of a subscriber's home.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// The home has moved, and is in this region.
    Moved(Home),
    /// The home has not moved, as far as this region knows.
    First,
    /// The record must be read: the home is changing, or this node has just started.
    Unread,
}

/// The worker that reads the changes once a second.
pub(crate) struct MovedHomesReader(pub(crate) Arc<Regions>);

impl MovedHomes {
    pub(super) fn new(ledger: Ledger) -> Self {
        Self {
            ledger,
            homes: RwLock::default(),
            has_any: AtomicBool::new(false),
            newest: Mutex::default(),
            is_whole: AtomicBool::new(false),
        }
    }

    /// Returns `true` if no home has moved, as far as this region knows. The answer may be a second late.
    pub(super) fn is_empty(&self) -> bool {
        self.is_whole.load(Ordering::Acquire) && !self.has_any.load(Ordering::Acquire)
    }

    /// Returns the knowledge of a subscriber's home. The answer may be a second late.
    pub(super) fn find(&self, tenant: &TenantId, user: &UserId) -> Knowledge {
        if self.is_empty() {
            return Knowledge::First;
        }
        let known = self.homes.read().get(&digest(tenant, user)).copied();
        match known {
            Some(Some(MovedHome { version, region, state })) => {
                Knowledge::Moved(Home { version, state, ..Home::first(region) })
            }
            None if self.is_whole.load(Ordering::Acquire) => Knowledge::First,
            Some(None) | None => Knowledge::Unread,
        }
    }

    /// Notes the home of a subscriber on record. A home on its way stays unread, for the end of the move.
    pub(super) fn note(&self, tenant: &TenantId, user: &UserId, home: Option<Home>) {
        let Some(Home { version, region, state, .. }) = home.filter(|home| !home.is_first()) else {
            return self.note_first(tenant, user);
        };
        let is_settled = state != HomeState::Moving;
        let noted = is_settled.then_some(MovedHome { version, region, state });
        self.change(|homes| {
            let known = homes.entry(digest(tenant, user)).or_default();
            // An older record was read before the newer record.
            if known.is_none_or(|known| known.version <= version) {
                *known = noted;
            }
        });
    }

    /// Notes that the home of a subscriber on record has not moved.
    fn note_first(&self, tenant: &TenantId, user: &UserId) {
        if !self.has_any.load(Ordering::Acquire) {
            return;
        }
        let subscriber = digest(tenant, user);
        if self.homes.read().contains_key(&subscriber) {
            self.change(|homes| {
                // A home that has moved never becomes a first home: the record of the first home is older.
                if homes.get(&subscriber) == Some(&None) {
                    homes.remove(&subscriber);
                }
            });
        }
    }

    /// Notes that the record of a subscriber must be read, because the home may have moved.
    pub(super) fn invalidate(&self, tenant: &TenantId, user: &UserId) {
        self.change(|homes| {
            homes.insert(digest(tenant, user), None);
        });
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<Subscriber, Option<MovedHome>>)) {
        let mut homes = self.homes.write();
        change(&mut homes);
        self.has_any.store(!homes.is_empty(), Ordering::Release);
    }

    /// Reads the changes since the last read, and tells each home to `changed`.
    pub(super) async fn refresh(&self, changed: impl Fn(&KnownHome)) -> Result<(), seatkeeper_ledger::Error> {
        let began = Instant::now();
        let mut after = self.newest.lock().reread_from();
        loop {
            let (page, last) = self.ledger.moved_homes_after(&after, PAGE).await?;
            for known in &page {
                self.note(&known.tenant, &known.user, Some(known.home));
                changed(known);
            }
            self.note_newest(&last);
            if page.len() < PAGE as usize {
                self.newest.lock().settle(began);
                self.is_whole.store(true, Ordering::Release);
                return Ok(());
            }
            after = last;
        }
    }

    fn note_newest(&self, read: &HomesCursor) {
        let mut newest = self.newest.lock();
        if *read > newest.position {
            *newest = Newest { position: read.clone(), read: Some(Instant::now()) };
        }
    }
}

impl Newest {
    /// Returns the position after which the next read starts.
    fn reread_from(&self) -> HomesCursor {
        match self.read {
            Some(_) => self.position.earlier_by(OVERLAP),
            None => self.position.clone(),
        }
    }

    /// Notes the end of a read that began at `began`.
    fn settle(&mut self, began: Instant) {
        self.read = self.read.filter(|read| began.saturating_duration_since(*read) < OVERLAP);
    }
}

#[async_trait]
impl Worker for MovedHomesReader {
    type Error = Infallible;

    fn name(&self) -> &'static str {
        "moved homes"
    }

    fn rest(&self) -> Duration {
        READ_INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Self::Error> {
        // Without the ledger, the last read goes on. The ledger's absence is logged elsewhere.
        drop(self.0.homes.refresh_moved().await);
        Ok(Progress::Idle)
    }
}

fn digest(tenant: &TenantId, user: &UserId) -> Subscriber {
    hash::digest(&[tenant.as_str().as_bytes(), user.as_str().as_bytes()])
}

#[cfg(test)]
mod tests;
