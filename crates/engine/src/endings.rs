//! Wakes the listeners for ends of sessions, among them the listeners of a group for the ends of its members. A listener
//! misses no end: a wake-up sent before the wait completes the next wait. Wake-ups may be spurious.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, Change, Event, PoolKind, SessionId, UserId};
use tokio::sync::watch;
use tokio::time::Instant;

/// The listeners for ends of sessions.
#[derive(Default)]
pub struct Endings(Mutex<Listeners>);

#[derive(Default)]
struct Listeners {
    /// The listeners of each session. A session without a listener has no entry.
    by_session: HashMap<SessionId, Waiting>,
    count: usize,
}

/// The listeners of one session.
#[derive(Default)]
struct Waiting {
    /// Wakes the listeners when the session has ended.
    bell: watch::Sender<()>,
    /// Wakes the listeners when the session may have ended.
    rumour: watch::Sender<()>,
    count: usize,
    /// The listeners of each user with a share.
    by_user: HashMap<UserId, usize>,
    /// The bucket of the members, if the session is the screen of a group. Ends of members wake the listeners as well.
    members: Option<Bucket>,
}

/// The most listeners for a session. A single client must not use up the limit for the whole node.
/// The screen of a group has a listener for each of up to 8 members, and more while members reconnect.
const LISTENERS_PER_SESSION_MAX: usize = 16;

/// Listens for the end of one session.
pub struct Listener {
    endings: Arc<Endings>,
    id: SessionId,
    /// The user whose share the listener takes.
    user: Option<UserId>,
    ended: watch::Receiver<()>,
    rumoured: watch::Receiver<()>,
}

impl Endings {
    /// Starts to listen for the end of a session. Returns `None` if `max` listeners exist already, or
    /// [`LISTENERS_PER_SESSION_MAX`] for this session, or `share` for a user with a share of the session's listeners.
    pub(crate) fn listen(
        self: &Arc<Self>,
        id: SessionId,
        user: Option<(&UserId, usize)>,
        max: usize,
    ) -> Option<Listener> {
        let mut listeners = self.0.lock();
        let waiting = listeners.by_session.get(&id);
        let of_session = waiting.map_or(0, |waiting| waiting.count);
        let has_share = user.is_none_or(|(user, share)| {
            waiting.and_then(|waiting| waiting.by_user.get(user)).is_none_or(|count| *count < share)
        });
        if listeners.count >= max || of_session >= LISTENERS_PER_SESSION_MAX || !has_share {
            return None;
        }
        listeners.count += 1;
        let waiting = listeners.by_session.entry(id).or_default();
        waiting.count += 1;
        let user = user.map(|(user, _)| user.clone());
        if let Some(user) = &user {
            *waiting.by_user.entry(user.clone()).or_default() += 1;
        }
        let (ended, rumoured) = (waiting.bell.subscribe(), waiting.rumour.subscribe());
        Some(Listener { endings: Arc::clone(self), id, user, ended, rumoured })
    }

    /// Wakes the listeners of each session with an end in `events`. The ledger has committed `events`.
    pub(crate) fn tell(&self, events: &[Event]) {
        let listeners = self.0.lock();
        if listeners.count == 0 {
            return;
        }
        for event in events {
            if let Change::Ended { session, .. } = &event.change {
                listeners.wake(*session);
                // The pool of a group's members is named by the session of the screen.
                if event.pool.kind == PoolKind::Group
                    && let Ok(screen) = event.pool.name.parse()
                {
                    listeners.wake(screen);
                }
            }
        }
    }

    /// Wakes the listeners of a session, which may be over for one of its users.
    pub(crate) fn tell_of_session(&self, id: SessionId) {
        self.0.lock().wake(id);
    }

    /// Wakes the listeners of every session in `buckets`, because another node has committed events in these
    /// buckets.
    pub fn tell_of_buckets(&self, buckets: &HashSet<Bucket>) {
        if buckets.is_empty() {
            return;
        }
        let listeners = self.0.lock();
        let there = listeners.by_session.iter().filter(|(id, waiting)| {
            buckets.contains(&id.bucket())
                || waiting.members.is_some_and(|members| buckets.contains(&members))
        });
        there.for_each(|(_, waiting)| waiting.rumour.send_replace(()));
    }
}

impl Listeners {
    fn wake(&self, id: SessionId) {
        if let Some(waiting) = self.by_session.get(&id) {
            waiting.bell.send_replace(());
        }
    }
}

impl Listener {
    /// Also listens for ends in the bucket `members`, for all listeners of the session: the session is the screen of a group
    /// with its members there.
    pub(crate) fn with_members(self, members: Bucket) -> Self {
        if let Some(waiting) = self.endings.0.lock().by_session.get_mut(&self.id) {
            waiting.members = Some(members);
        }
        self
    }

    /// Waits until the ledger has an end of the session from after the listener's creation. Also wakes for a
    /// possible end, but not before `paced`. Dropping the future loses no wake-up.
    pub async fn heard(&mut self, paced: Instant) {
        let Self { ended, rumoured, .. } = self;
        // The senders live as long as this listener.
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
            if let Some(user) = &self.user
                && let Entry::Occupied(mut of_user) = waiting.get_mut().by_user.entry(user.clone())
            {
                *of_user.get_mut() -= 1;
                if *of_user.get() == 0 {
                    of_user.remove();
                }
            }
            if waiting.get().count == 0 {
                waiting.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests;
