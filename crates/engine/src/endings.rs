//! Wakes the listeners for ends of sessions.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, Change, Event, SessionId};
use tokio::sync::watch;
use tokio::time::Instant;

/// The listeners for ends of sessions.
#[derive(Default)]
pub struct Endings(Mutex<Listeners>);

#[derive(Default)]
struct Listeners {
    /// An entry for each session that is listened for, and none for the others.
    by_session: HashMap<SessionId, Waiting>,
    count: usize,
}

/// Who listens for one session.
#[derive(Default)]
struct Waiting {
    /// Rings when the session has ended.
    bell: watch::Sender<()>,
    /// Rings when it may have.
    rumour: watch::Sender<()>,
    count: usize,
}

/// How many may listen for one session, so that nobody takes all the places there are.
const LISTENERS_PER_SESSION_MAX: usize = 8;

/// Listens for the end of one session.
pub struct Listener {
    endings: Arc<Endings>,
    id: SessionId,
    ended: watch::Receiver<()>,
    rumoured: watch::Receiver<()>,
}

impl Endings {
    /// Listens for the end of a session from now on, unless there are `max` listeners already, or
    /// [`LISTENERS_PER_SESSION_MAX`] for this session.
    pub(crate) fn listen(self: &Arc<Self>, id: SessionId, max: usize) -> Option<Listener> {
        let mut listeners = self.0.lock();
        let of_session = listeners.by_session.get(&id).map_or(0, |waiting| waiting.count);
        if listeners.count >= max || of_session >= LISTENERS_PER_SESSION_MAX {
            return None;
        }
        listeners.count += 1;
        let waiting = listeners.by_session.entry(id).or_default();
        waiting.count += 1;
        let (ended, rumoured) = (waiting.bell.subscribe(), waiting.rumour.subscribe());
        Some(Listener { endings: Arc::clone(self), id, ended, rumoured })
    }

    /// Tells the listeners of sessions whose end is on record now.
    pub(crate) fn tell(&self, events: &[Event]) {
        let listeners = self.0.lock();
        if listeners.count == 0 {
            return;
        }
        for event in events {
            if let Change::Ended { session, .. } = &event.change
                && let Some(waiting) = listeners.by_session.get(session)
            {
                waiting.bell.send_replace(());
            }
        }
    }

    /// Wakes the listeners of sessions in these buckets: another node has recorded events there, which this node has not seen.
    pub fn tell_of_buckets(&self, buckets: &HashSet<Bucket>) {
        if buckets.is_empty() {
            return;
        }
        let listeners = self.0.lock();
        let there = listeners.by_session.iter().filter(|(id, _)| buckets.contains(&id.bucket()));
        there.for_each(|(_, waiting)| waiting.rumour.send_replace(()));
    }
}

impl Listener {
    /// Waits until an end of the session is on record that came after the listener was made. Wakes for a possible end as well,
    /// but not before `paced`. Dropping the future loses no wake-up.
    pub async fn heard(&mut self, paced: Instant) {
        let Self { ended, rumoured, .. } = self;
        // The senders stay for as long as this listener does.
        tokio::select! {
            _ = ended.changed() => {}
            _ = async { tokio::time::sleep_until(paced).await; rumoured.changed().await } => {}
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut listeners = self.endings.0.lock();
        listeners.count -= 1;
        if let Entry::Occupied(mut waiting) = listeners.by_session.entry(self.id) {
            waiting.get_mut().count -= 1;
            if waiting.get().count == 0 {
                waiting.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests;
