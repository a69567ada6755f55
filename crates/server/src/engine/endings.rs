//! Tells who listens that a session has ended.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use seatkeeper_core::{Change, Event, SessionId};
use tokio::sync::watch;

/// The sessions that somebody listens for.
#[derive(Default)]
pub(crate) struct Endings(Mutex<Listeners>);

#[derive(Default)]
struct Listeners {
    /// An entry for each session that is listened for, and none for the others.
    by_session: HashMap<SessionId, watch::Sender<()>>,
    count: usize,
}

/// Listens for the end of one session.
pub(crate) struct Listener {
    endings: Arc<Endings>,
    id: SessionId,
    ended: watch::Receiver<()>,
}

impl Endings {
    /// Listens for the end of a session from now on, unless there are `max` listeners already.
    pub(crate) fn listen(self: &Arc<Self>, id: SessionId, max: usize) -> Option<Listener> {
        let mut listeners = self.0.lock();
        if listeners.count >= max {
            return None;
        }
        listeners.count += 1;
        let ended = listeners.by_session.entry(id).or_default().subscribe();
        Some(Listener { endings: Arc::clone(self), id, ended })
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
                waiting.send_replace(());
            }
        }
    }
}

impl Listener {
    /// Resolves once the session's end is on record, if that came after the listener was made. To drop the
    /// future loses nothing.
    pub(crate) async fn ended(&mut self) {
        // The sender stays for as long as this listener does.
        let _ = self.ended.changed().await;
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut listeners = self.endings.0.lock();
        listeners.count -= 1;
        // This listener still counts as a receiver.
        if listeners.by_session.get(&self.id).is_some_and(|waiting| waiting.receiver_count() <= 1) {
            listeners.by_session.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests;
